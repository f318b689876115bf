package fetch

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/archive"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

const (
	maxHops    = 10
	maxPage    = 1 << 20 // of a page that is searched for the module's location
	maxArchive = 4 << 30
)

// http downloads an archive, or follows the location of the package: the header
// X-Terraform-Get of the response, or a meta element "terraform-get" of the page.
func (w *work) http(ctx context.Context, dir string) error {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return err
	}
	q := u.Query()
	sumText, kindText := q.Get("checksum"), q.Get("archive")
	q.Del("checksum")
	q.Del("archive")
	u.RawQuery = q.Encode()
	kind := archive.KindOf(path.Base(u.Path))
	switch kindText {
	case "":
	case "false", "0":
		kind = ""
	default:
		if kind = archive.KindOf(kindText); kind == "" {
			return fmt.Errorf("%q is not a format of archives", kindText)
		}
	}
	header, err := w.credentials(u)
	if err != nil {
		return err
	}
	if kind == "" && !w.sniff {
		if kindText != "" {
			return errors.New("the address does not lead to an archive")
		}
		return w.indirect(ctx, u, header, dir)
	}
	sum, err := w.checksum(ctx, sumText, u.Path)
	if err != nil {
		return err
	}
	d := transfer.Download{URL: u.String(), Header: header, Max: maxArchive}
	return w.archive(ctx, d, packed{sum, kind, u.Path}, dir)
}

// packed describes an archive before it is downloaded.
type packed struct {
	sum  checksum
	kind archive.Kind // "" to detect it from the content
	name string       // the file name
}

// kindAsked returns the kind of archive from the query of an address, or else from the
// file name. It returns "" if it is no archive.
func kindAsked(q url.Values, name string) archive.Kind {
	switch asked := q.Get("archive"); asked {
	case "":
		return archive.KindOf(path.Base(name))
	case "false", "0":
		return ""
	default:
		return archive.KindOf(asked)
	}
}

// archive downloads, verifies and unpacks an archive.
func (w *work) archive(ctx context.Context, d transfer.Download, a packed, dir string) error {
	file := filepath.Join(w.tmp, "archive")
	d.Progress = w.arrived
	if err := w.Client.Save(ctx, d, file); err != nil {
		return err
	}
	if err := a.sum.check(file); err != nil {
		return err
	}
	if a.kind == "" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		head := make([]byte, 512)
		n, _ := f.Read(head)
		_ = f.Close()
		if a.kind = archive.Sniff(head[:n]); a.kind == "" {
			return errors.New("what was downloaded is not an archive of a known format (zip, tar.gz, tar.xz, tar.bz2)")
		}
	}
	return w.unpack(ctx, archive.File{Path: file, Kind: a.kind, Single: a.name}, dir)
}

// credentials returns the credentials of the request, else of the URL, else of the user's .netrc.
func (w *work) credentials(u *url.URL) (http.Header, error) {
	h := http.Header{}
	for k, vs := range w.header {
		h[k] = vs
	}
	if h.Get("Authorization") != "" || u.User != nil {
		return h, nil
	}
	file := w.Env.Get("NETRC")
	if file == "" && w.Home != "" {
		file = filepath.Join(w.Home, ".netrc")
	}
	if file == "" {
		return h, nil
	}
	text, err := readfile.Whole(file)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}
	if user, pw, ok := netrc(string(text), u.Hostname()); ok {
		r := http.Request{Header: h}
		r.SetBasicAuth(user, pw)
	}
	return h, nil
}

// netrc returns the entry of a host in the text of a .netrc file.
func netrc(text, host string) (user, pw string, ok bool) {
	var f []string
	macro := false
	for _, line := range strings.Split(text, "\n") {
		switch fields := strings.Fields(line); {
		case macro:
			macro = len(fields) > 0 // a macro ends at an empty line
		case len(fields) > 0 && fields[0] == "macdef":
			macro = true
		case len(fields) > 0 && strings.HasPrefix(fields[0], "#"):
		default:
			f = append(f, fields...)
		}
	}
	on := false
	for i := 0; i < len(f); i++ {
		value := ""
		if i+1 < len(f) {
			value = f[i+1]
		}
		switch f[i] {
		case "machine", "default":
			if on {
				return user, pw, true
			}
			on = f[i] == "default" || value == host
			if f[i] == "machine" {
				i++
			}
		case "login", "password", "account":
			if on && f[i] == "login" {
				user = value
			}
			if on && f[i] == "password" {
				pw = value
			}
			i++
		}
	}
	return user, pw, on
}

func (w *work) indirect(ctx context.Context, u *url.URL, header http.Header, dir string) error {
	if w.hops++; w.hops > maxHops {
		return fmt.Errorf("the address leads from one place to the next more than %d times", maxHops)
	}
	ask := *u
	q := ask.Query()
	q.Set("terraform-get", "1")
	ask.RawQuery = q.Encode()
	body, resp, err := w.Client.Get(ctx, ask.String(), header, maxPage)
	if resp == nil {
		return err
	}
	where := resp.Header.Get("X-Terraform-Get")
	if where == "" && err == nil {
		where = metaElement(body)
	}
	switch {
	case where == "" && err != nil:
		return err
	case where == "":
		return fmt.Errorf("%s does not say where the module is: the answer has neither a header X-Terraform-Get nor a meta element terraform-get, and the address does not end like that of an archive (for example .zip)", transfer.Public(u))
	}
	next, err := resolveLocation(where, resp.Request.URL)
	if err != nil {
		return fmt.Errorf("%s says that the module is at %q: %w", transfer.Public(u), where, err)
	}
	if onThisMachine(next) {
		return fmt.Errorf("%s says that the module is at %q, which is a place on this machine", transfer.Public(u), where)
	}
	w.subdir = joinSub(next.Subdir, w.subdir)
	w.a, w.header, w.sniff = next, nil, false
	w.old = ""
	_, err = w.get(ctx, dir)
	return err
}

// resolveLocation parses the location of a package in a server's response: the address
// of a remote package, or a path relative to the response's URL.
func resolveLocation(where string, base *url.URL) (Address, error) {
	if strings.HasPrefix(where, "/") || strings.HasPrefix(where, "./") || strings.HasPrefix(where, "../") {
		main, sub, err := splitSubdir(where)
		if err != nil {
			return Address{}, err
		}
		u, err := base.Parse(main)
		if err != nil {
			return Address{}, err
		}
		return Address{Kind: Remote, Getter: u.Scheme, URL: u.String(), Subdir: sub}, nil
	}
	a, err := detectRemote(where)
	if errors.Is(err, errUndetected) {
		return Address{}, errors.New("that is not the address of a module package")
	}
	return a, err
}

// onThisMachine reports whether a package is read from the file system, by any getter:
// git can clone a local repository.
func onThisMachine(a Address) bool {
	u, err := url.Parse(a.URL)
	return a.Getter == "file" || err != nil || strings.EqualFold(u.Scheme, "file") || u.Host == "" && u.Scheme != "ssh"
}

// ResolveLocation parses the location in a module registry's response. base is the URL
// of the request.
func ResolveLocation(where string, base *url.URL) (Address, error) {
	return resolveLocation(where, base)
}

// metaElement returns the content of <meta name="terraform-get" content="…"> in the head
// of a page. It parses HTML as lenient XML, as the go command does: a complete HTML
// parser would cost start-up time.
func metaElement(page []byte) string {
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		tok, err := d.RawToken()
		if err != nil {
			return ""
		}
		switch e := tok.(type) {
		case xml.EndElement:
			if strings.EqualFold(e.Name.Local, "head") {
				return ""
			}
		case xml.StartElement:
			if strings.EqualFold(e.Name.Local, "body") {
				return ""
			}
			name, content := "", ""
			for _, a := range e.Attr {
				switch strings.ToLower(a.Name.Local) {
				case "name":
					name = a.Value
				case "content":
					content = a.Value
				}
			}
			if strings.EqualFold(e.Name.Local, "meta") && name == "terraform-get" && content != "" {
				return content
			}
		}
	}
}
