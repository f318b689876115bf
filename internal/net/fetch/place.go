package fetch

// # From the cache into a working directory
//
// A module needs a real directory: path.module is stored in states, and modules write
// files there, for example archives to upload. So the package's directory is not
// linked. Its directories are created, and its files are placed one by one:
//
//   - With reflinks, if the file system can share blocks between files. Nothing is
//     copied, and a write to one file changes no other.
//   - Otherwise, the first call of a package in a working directory gets copies. Later
//     calls in the same working directory get read-only hard links to these copies. So
//     no change in a working directory reaches the cache or another working directory.
//   - A package of more than a megabyte that several calls use is hard-linked to the
//     cache, read-only, so that a hundred calls need the space of one. If a user changes
//     such a file anyway, the next use of the cache detects it and downloads the
//     package again.

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// shareAbove is the size, in bytes, above which a package that several calls use is
// hard-linked to the cache.
const shareAbove = 1 << 20

// Sharing describes the other uses of a package in the same working directory.
type Sharing struct {
	Sibling string // a directory that already contains the package, or ""
	Several bool   // whether more than one call uses the package
}

// Place replaces the directory dir with a package. The parent of dir must exist. An
// existing directory is exchanged as a whole. A new one is filled in place and deleted
// after an error.
func (f *Fetcher) Place(ctx context.Context, p Package, dir string, sh Sharing) error {
	_, err := os.Lstat(dir)
	if err != nil {
		err = f.placeNew(ctx, p, dir, sh)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			_ = removeAll(dir)
		}
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".place-*")
	if err != nil {
		return err
	}
	defer removeAll(tmp)
	ready := filepath.Join(tmp, "package")
	if err := f.placeNew(ctx, p, ready, sh); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(tmp, "old")); err != nil {
		return err
	}
	return os.Rename(ready, dir)
}

// placeNew writes a package to a directory that does not exist yet.
func (f *Fetcher) placeNew(ctx context.Context, p Package, dir string, sh Sharing) error {
	if p.Live {
		return linkLive(p.Dir, dir)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return f.fill(ctx, p, dir, sh)
}

func linkLive(from, to string) error {
	if os.Symlink(from, to) == nil {
		return nil
	}
	return os.CopyFS(to, os.DirFS(from))
}

func (f *Fetcher) fill(ctx context.Context, p Package, to string, sh Sharing) error {
	entries, err := f.indexOnce(filepath.Base(p.Dir))
	if err != nil {
		return err
	}
	var size int64
	for _, e := range entries {
		size += e.Size
	}
	fromCache := sh.Several && size > shareAbove
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
		case fromCache && f.noReflinks.Load() && os.Link(filepath.Join(p.Dir, name), target) == nil:
		case !fromCache && sh.Sibling != "" && share(filepath.Join(sh.Sibling, name), target, e):
		default:
			err = f.placeFile(filepath.Join(p.Dir, name), target, e, fromCache)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// share hard-links the sibling's file if it is unchanged since it was placed.
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

// placeFile places a file of the cache: with a reflink if possible, else with a hard link
// if mayLink is set, else with a copy.
func (f *Fetcher) placeFile(from, to string, e entry, mayLink bool) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|e.Mode&0o111)
	if err != nil {
		return err
	}
	if f.noReflinks.Load() || !Reflink(dst, src) {
		f.noReflinks.Store(true)
		if mayLink && relink(from, to) {
			return dst.Close()
		}
		_, err = io.Copy(dst, src)
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, time.Unix(0, e.Time))
}

// relink replaces a file with a hard link to another file.
func relink(from, to string) bool {
	tmp := to + ".link"
	if os.Link(from, tmp) != nil {
		return false
	}
	if os.Rename(tmp, to) != nil {
		_ = os.Remove(tmp)
		return false
	}
	return true
}
