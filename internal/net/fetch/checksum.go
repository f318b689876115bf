package fetch

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// checksum is the expected checksum of a downloaded file. The zero value accepts any file.
type checksum struct {
	name string
	hash func() hash.Hash
	want string
}

// checksum parses the checksum parameter: TYPE:HEX, HEX, or file:URL. The URL leads
// to a list of checksums that contains a line for the given file name.
func (w *work) checksum(ctx context.Context, text, name string) (checksum, error) {
	if text == "" {
		return checksum{}, nil
	}
	if where, ok := strings.CutPrefix(text, "file:"); ok {
		list, err := w.checksumList(ctx, where)
		if err != nil {
			return checksum{}, fmt.Errorf("cannot read the list of checksums: %w", err)
		}
		if text = findChecksum(list, path.Base(filepath.ToSlash(name))); text == "" {
			return checksum{}, fmt.Errorf("the list of checksums has none for %q", path.Base(filepath.ToSlash(name)))
		}
	}
	kind, sum, typed := strings.Cut(text, ":")
	if !typed {
		kind, sum = "", text
	}
	raw, err := hex.DecodeString(sum)
	if err != nil {
		return checksum{}, fmt.Errorf("%q is not a checksum: it must be hexadecimal", text)
	}
	for _, c := range []checksum{{"md5", md5.New, ""}, {"sha1", sha1.New, ""}, {"sha256", sha256.New, ""}, {"sha512", sha512.New, ""}} {
		if c.hash().Size() == len(raw) && (kind == "" || kind == c.name) {
			c.want = hex.EncodeToString(raw)
			return c, nil
		}
	}
	return checksum{}, fmt.Errorf("%q is not a checksum of type md5, sha1, sha256 or sha512", text)
}

func (w *work) checksumList(ctx context.Context, where string) (string, error) {
	const limit = 1 << 20
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		body, _, err := w.Client.Get(ctx, where, nil, limit)
		return string(body), err
	}
	f, err := os.Open(strings.TrimPrefix(where, "//"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, limit))
	return string(body), err
}

// findChecksum returns the checksum of name in a list. A line has one of the forms
// "HEX  NAME", "HEX *NAME", "TYPE (NAME) = HEX", or HEX alone.
func findChecksum(list, name string) string {
	for _, line := range strings.Split(list, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && name != "":
			return fields[0]
		case len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == name:
			return fields[0]
		case len(fields) == 4 && fields[2] == "=" && strings.Trim(fields[1], "()") == name:
			return strings.ToLower(fields[0]) + ":" + fields[3]
		}
	}
	return ""
}

func (c checksum) check(file string) error {
	if c.hash == nil {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := c.hash()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if have := hex.EncodeToString(h.Sum(nil)); have != c.want {
		return fmt.Errorf("the %s checksum of the package is %s, but the address says %s", c.name, have, c.want)
	}
	return nil
}
