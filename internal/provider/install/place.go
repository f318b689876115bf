package install

// # How a package comes to its place
//
// A package is put together beside its place and renamed into it, so that
// whoever looks sees no package or a whole one. Before that the lock file beside
// the place is taken, the same as OpenTofu takes in a plugin cache, and whoever
// had to wait looks again whether the work is still to be done.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/archive"
	"github.com/terrace-iac/terrace/internal/base/filelock"
)

// unpackLimit bounds a provider package; the largest ones have about 1 GB.
const unpackLimit = 8 << 30

// lockPlace takes the lock of a place and makes the folder that it is in.
func lockPlace(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	return filelock.Lock(ctx, dir+".lock")
}

// put places a package in the folder dir: a link to a folder, or what is in an
// archive. The caller holds the lock of the place.
func put(ctx context.Context, from local, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	ready := filepath.Join(tmp, "package")
	if from.folder {
		err = linkOrCopy(from.path, ready)
	} else if err = os.Mkdir(ready, 0o755); err == nil {
		err = archive.Unpack(ctx, archive.File{Path: from.path, Kind: archive.Zip}, ready, archive.Limits{Bytes: unpackLimit})
		if err != nil {
			err = fmt.Errorf("cannot unpack %s: %w", from.path, err)
		}
	}
	if err != nil {
		return err
	}
	return swap(ready, dir, filepath.Join(tmp, "old"))
}

// swap moves ready to dir; what was there goes away with ready, or to old. Whoever looks
// finds either of them where the system can do that in one step: a link in the place of a
// link, and on Linux anything.
func swap(ready, dir, old string) error {
	if isLink(ready) && isLink(dir) && os.Rename(ready, dir) == nil {
		return nil
	}
	if exchange(ready, dir) == nil {
		return nil
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(ready, dir)
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// leadsElsewhere reports whether place is a link to another folder than the package.
func leadsElsewhere(place string, l local) bool {
	to, err := os.Readlink(place)
	if err != nil || !l.folder {
		return false
	}
	real, err := filepath.EvalSymlinks(l.path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return err != nil || to != real
}

// linkOrCopy makes a symbolic link to a folder, or copies it where the file
// system or the user's rights do not allow links.
func linkOrCopy(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	if os.Symlink(real, to) == nil {
		return nil
	}
	return os.CopyFS(to, os.DirFS(real))
}

// linkCached links a place in the working folder to the package in the cache.
// The link names the cache's place even if that is itself a link.
func linkCached(ctx context.Context, cached, dir string) error {
	if have, err := os.Readlink(dir); err == nil && have == cached {
		return nil
	}
	unlock, err := lockPlace(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	ready := filepath.Join(tmp, "package")
	if err := os.Symlink(cached, ready); err != nil {
		if err := linkOrCopy(cached, ready); err != nil {
			return err
		}
	}
	return swap(ready, dir, filepath.Join(tmp, "old"))
}
