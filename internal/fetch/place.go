package fetch

// # From the cache into a working folder
//
// A module's folder must be a real one: path.module is stored in states, and
// modules write files beside their own (archives to upload, for instance). So a
// package is not linked to as a whole. The first call of a package in a working
// folder gets its files as copies that share their blocks with the cache where
// the file system can do that (reflinks), and as plain copies where it cannot;
// further calls in the same working folder share those files by hard links,
// which are made read-only then. So nothing that happens in a working folder
// reaches the cache or another working folder, and a hundred calls of one
// package take the room of one.

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Place puts a package into the folder dir, which is replaced. sibling is a
// folder in which the same package was placed before, in the same working folder,
// or "". dir's parent must exist.
func (f *Fetcher) Place(ctx context.Context, p Package, dir, sibling string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".place-*")
	if err != nil {
		return err
	}
	defer removeAll(tmp)
	ready := filepath.Join(tmp, "package")
	if p.Live {
		err = linkLive(p.Dir, ready)
	} else {
		err = f.fill(ctx, p, ready, sibling)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(tmp, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(ready, dir)
}

func linkLive(from, to string) error {
	if os.Symlink(from, to) == nil {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from))
}

func (f *Fetcher) fill(ctx context.Context, p Package, to, sibling string) error {
	entries, err := f.index(filepath.Base(p.Dir))
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.FromSlash(e.Path)
		target := filepath.Join(to, name)
		switch {
		case e.Mode.IsDir():
			err = os.Mkdir(target, 0o755)
		case e.Link != "":
			err = os.Symlink(e.Link, target)
		case sibling != "" && share(filepath.Join(sibling, name), target, e):
		default:
			err = copyFile(filepath.Join(p.Dir, name), target, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// share makes a hard link to the sibling's file if that is still as it was placed.
func share(from, to string, e entry) bool {
	st, err := os.Lstat(from)
	if err != nil || !st.Mode().IsRegular() || st.Size() != e.Size || st.ModTime().UnixNano() != e.Time {
		return false
	}
	if os.Link(from, to) != nil {
		return false
	}
	if st.Mode()&0o222 != 0 {
		_ = os.Chmod(to, 0o444|e.Mode&0o111)
	}
	return true
}

func copyFile(from, to string, e entry) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|e.Mode&0o111)
	if err != nil {
		return err
	}
	if !reflink(dst, src) {
		_, err = io.Copy(dst, src)
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, time.Unix(0, e.Time))
}
