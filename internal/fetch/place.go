package fetch

// # From the cache into a working folder
//
// A module's folder must be a real one: path.module is stored in states, and
// modules write files beside their own (archives to upload, for instance). So a
// package is not linked to as a whole; its folders are made and its files are
// placed one by one.
//
// Where the file system can share blocks between files (reflinks), that is done:
// nothing is copied, and a write to one file leaves all others as they are.
//
// Where it cannot, the first call of a package in a working folder gets copies,
// and further calls in the same working folder share these by hard links, which
// are made read-only then. So nothing that happens in a working folder reaches the
// cache or another working folder. A package of more than a megabyte that several
// calls in a folder want is shared by hard links with the cache itself, so that a
// hundred calls take the room of one. Its files are read-only too. Should somebody
// with the right to do so write into one all the same, the change is noticed when
// the cache is used the next time, and the package is fetched anew.

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// shareAbove is the size from which on a package that is wanted several times
// shares its files with the cache.
const shareAbove = 1 << 20

// Sharing says what else of a package there is in the same working folder.
type Sharing struct {
	Sibling string // a folder in which it was placed before, or ""
	Several bool   // whether more than one call wants it
}

// Place puts a package into the folder dir, which is replaced. dir's parent must
// exist. A folder that is replaced is exchanged as a whole; a new one is filled
// where it is, and removed again after an error.
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

// placeNew puts a package into a folder that does not exist yet.
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

// placeFile makes a file of the cache appear at another place, by a reflink if
// that can be, by a hard link if that may be, or by a copy.
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

// relink replaces a file by a hard link to another.
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
