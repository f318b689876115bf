// Package archive unpacks archives that come from outside.
//
// Main function: Unpack. The one rule: nothing is ever written or read outside
// of the target folder, whatever an archive says: names that lead out of it,
// links that do, and files under such links are errors, and so is whatever goes
// over the bounds.
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

// Limits bound what an archive may unpack to. The zero Limits mean the defaults.
type Limits struct {
	Bytes int64 // of all files together; 0 means 4 GiB
	Files int   // folders and links count too; 0 means 200,000
}

const (
	defaultBytes = 4 << 30
	defaultFiles = 200_000
	maxName      = 2048
	maxDepth     = 100 // of folders in folders; each costs time for all above it
	maxLink      = 4096
)

// writer puts the entries of an archive into a folder.
type writer struct {
	ctx   context.Context
	root  *os.Root
	bytes int64 // left
	files int   // left
	links []link
	dirs  map[string]bool // made already
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

// clean checks the name of an entry and makes it relative and slash-separated.
// It returns "." for the folder itself.
func clean(name string) (string, error) {
	slashed := strings.ReplaceAll(name, `\`, "/")
	if len(name) > maxName || strings.Count(slashed, "/") > maxDepth {
		return "", errors.New("the archive holds a file name that is too long")
	}
	for _, part := range strings.Split(slashed, "/") {
		if part == ".." {
			return "", fmt.Errorf("the archive holds the file name %q, which leads out of its folder", name)
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
			return fmt.Errorf("the archive holds %q both as a file and as a folder", name)
		}
		err = nil
	}
	if err == nil {
		w.dirs[name] = true
	}
	return err
}

// file writes one file. Of the mode only the permission to execute counts.
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

// symlink remembers a link; links are made at the end, so that no entry can be
// written through one.
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
		return fmt.Errorf("the archive holds the link %q to %q, which leads out of its folder", name, target)
	}
	w.links = append(w.links, link{name, target})
	return nil
}

// finish makes the links and checks where each leads, since a link may lead
// through others.
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
			return fmt.Errorf("the archive holds the link %q to %q, which goes up again through something that does not exist, so it may lead out of its folder", l.name, l.target)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the archive holds the link %q to %q, which cannot be followed inside of its folder: %w", l.name, l.target, err)
		}
	}
	return nil
}

// upAgain reports a ".." behind a named part: that part could become a link later, and
// lead the path out.
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
