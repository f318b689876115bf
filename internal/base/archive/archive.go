// Package archive unpacks untrusted archives.
//
// Main function: Unpack. The one rule: Unpack never reads or writes outside the target
// directory. Names and links that lead out of it, files below such links, and archives
// beyond the limits are errors.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Limits bounds the unpacked content of an archive. Zero fields mean the defaults.
type Limits struct {
	Bytes int64 // total size of all files; 0 means 4 GiB
	Files int   // number of files, directories and links; 0 means 200,000
}

const (
	defaultBytes = 4 << 30
	defaultFiles = 200_000
	maxName      = 2048
	maxDepth     = 100 // of nested directories; each one costs time for all its parents
	maxLink      = 4096
)

// writer writes the entries of an archive to a directory.
type writer struct {
	ctx   context.Context
	root  *os.Root
	bytes int64 // left
	files int   // left
	links []link
	dirs  map[string]bool // already created
	buf   []byte
}

type link struct{ name, target string }

func newWriter(ctx context.Context, dir string, lim Limits) (*writer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	w := &writer{ctx: ctx, root: root, bytes: lim.Bytes, files: lim.Files, dirs: map[string]bool{".": true}, buf: make([]byte, 128<<10)}
	if w.bytes == 0 {
		w.bytes = defaultBytes
	}
	if w.files == 0 {
		w.files = defaultFiles
	}
	return w, nil
}

// clean checks the name of an entry and returns it relative, with slashes. It returns
// "." for the target directory.
func clean(name string) (string, error) {
	slashed := strings.ReplaceAll(name, `\`, "/")
	if len(name) > maxName || strings.Count(slashed, "/") > maxDepth {
		return "", errors.New("the archive holds a file name that is too long")
	}
	for _, part := range strings.Split(slashed, "/") {
		if part == ".." {
			return "", fmt.Errorf("the archive holds the file name %q, which leads out of its directory", name)
		}
	}
	if strings.ContainsRune(name, 0) || path.IsAbs(slashed) || len(slashed) > 1 && slashed[1] == ':' {
		return "", fmt.Errorf("the archive holds the file name %q, which is not a relative path", name)
	}
	return path.Clean(slashed), nil
}

func (w *writer) count() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.files--; w.files < 0 {
		return errors.New("the archive holds more files than is allowed")
	}
	return nil
}

func (w *writer) dir(name string) error {
	if w.dirs[name] {
		return nil
	}
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	if err := w.count(); err != nil {
		return err
	}
	err := w.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		st, serr := w.root.Lstat(name)
		if serr != nil {
			return serr
		}
		if !st.IsDir() {
			return fmt.Errorf("the archive holds %q both as a file and as a directory", name)
		}
		err = nil
	}
	if err == nil {
		w.dirs[name] = true
	}
	return err
}

// file writes one file. It uses only the execute permission of mode.
func (w *writer) file(name string, mode fs.FileMode, r io.Reader) error {
	if err := w.count(); err != nil {
		return err
	}
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the archive holds %q twice", name)
	}
	if err != nil {
		return err
	}
	err = w.copy(f, r)
	return errors.Join(err, f.Close())
}

func (w *writer) copy(f *os.File, r io.Reader) error {
	for {
		n, err := r.Read(w.buf)
		if n > 0 {
			if w.bytes -= int64(n); w.bytes < 0 {
				return errors.New("the archive unpacks to more than is allowed")
			}
			if _, werr := f.Write(w.buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
}

// symlink stores a link for finish. Links are created last, so that no entry is written
// through a link.
func (w *writer) symlink(name, target string) error {
	if err := w.count(); err != nil {
		return err
	}
	if len(target) > maxLink || target == "" || strings.ContainsRune(target, 0) {
		return fmt.Errorf("the archive holds the link %q, whose target is not usable", name)
	}
	if path.IsAbs(target) || strings.Contains(target, `\`) || len(target) > 1 && target[1] == ':' {
		return fmt.Errorf("the archive holds the link %q to %q; only relative links are allowed", name, target)
	}
	if out := path.Join(path.Dir(name), target); out == ".." || strings.HasPrefix(out, "../") {
		return fmt.Errorf("the archive holds the link %q to %q, which leads out of its directory", name, target)
	}
	w.links = append(w.links, link{name, target})
	return nil
}

// finish creates the links and checks their targets. A link may lead through other links.
func (w *writer) finish() error {
	for _, l := range w.links {
		if err := w.dir(path.Dir(l.name)); err != nil {
			return err
		}
		err := w.root.Symlink(l.target, l.name)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("the archive holds %q twice", l.name)
		}
		if err != nil {
			return err
		}
	}
	for _, l := range w.links {
		_, err := w.root.Stat(l.name)
		if errors.Is(err, fs.ErrNotExist) && upAgain(l.target) {
			return fmt.Errorf("the archive holds the link %q to %q, which goes up again through something that does not exist, so it may lead out of its directory", l.name, l.target)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the archive holds the link %q to %q, which cannot be followed inside of its directory: %w", l.name, l.target, err)
		}
	}
	return nil
}

// upAgain reports whether ".." follows a named part. That part could be a link that leads
// out of the directory.
func upAgain(target string) bool {
	named := false
	for _, part := range strings.Split(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if named {
				return true
			}
		default:
			named = true
		}
	}
	return false
}

func (w *writer) close(err error) error { return errors.Join(err, w.root.Close()) }
