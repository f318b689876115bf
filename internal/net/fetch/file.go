package fetch

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/archive"
)

// live returns the package of a file address that names a directory.
func (f *Fetcher) live(a Address) (Package, bool, error) {
	if a.Getter != "file" {
		return Package{}, false, nil
	}
	p, _, err := filePath(a)
	if err != nil {
		return Package{}, false, err
	}
	st, err := os.Stat(p)
	if err != nil {
		return Package{}, false, err
	}
	return Package{Dir: p, Live: true}, st.IsDir(), nil
}

func filePath(a Address) (string, url.Values, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return "", nil, err
	}
	if u.Host != "" && u.Host != "localhost" {
		return "", nil, fmt.Errorf("a file: address names a path on this machine, so it begins with file:///; it cannot name the host %q", u.Host)
	}
	p := u.Path
	if runtime.GOOS == "windows" && len(p) > 2 && p[2] == ':' {
		p = strings.TrimPrefix(p, "/")
	}
	return filepath.FromSlash(p), u.Query(), nil
}

func (w *work) fileArchive(ctx context.Context, dir string) error {
	p, q, err := filePath(w.a)
	if err != nil {
		return err
	}
	sum, err := w.checksum(ctx, q.Get("checksum"), p)
	if err != nil {
		return err
	}
	if err := sum.check(p); err != nil {
		return err
	}
	kind := archive.KindOf(path.Base(filepath.ToSlash(p)))
	switch q.Get("archive") {
	case "":
	case "false", "0":
		kind = ""
	default:
		kind = archive.KindOf(q.Get("archive"))
	}
	if kind == "" {
		return fmt.Errorf("%s is neither a directory nor an archive", p)
	}
	return w.unpack(ctx, archive.File{Path: p, Kind: kind, Single: p}, dir)
}

// unpack unpacks an archive; a single compressed file gets the name of the archive.
func (w *work) unpack(ctx context.Context, a archive.File, dir string) error {
	single := path.Base(filepath.ToSlash(a.Single))
	a.Single = strings.TrimSuffix(single, path.Ext(single))
	if err := archive.Unpack(ctx, a, dir, w.Limits); err != nil {
		return fmt.Errorf("cannot unpack the package: %w", err)
	}
	return nil
}

func joinSub(a, b string) string {
	j := path.Join(a, b)
	if j == "." {
		return ""
	}
	return j
}
