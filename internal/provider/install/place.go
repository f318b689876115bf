package install

// # Installing into a directory
//
// A package is assembled next to its directory and renamed into it, so that other processes
// see either no package or a complete one. Before that, Terrace takes the lock file next to
// the directory, which is also the one that OpenTofu takes in a plugin cache. A process
// that waited for the lock checks again whether the package is missing.

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

// unpackLimit is the maximum size of an unpacked package, in bytes. The largest known ones
// have about 1 GB.
const unpackLimit = 8 << 30

// lockPlace takes the lock of a package directory and creates its parent directory.
func lockPlace(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	return filelock.Lock(ctx, dir+".lock")
}

// put installs a package as the directory dir: as a link to a directory, or by unpacking an
// archive. The caller holds the lock of dir.
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

// swap renames ready to dir. The previous content of dir is removed with ready, or renamed
// to old. Other processes always find one of them if the system can replace dir atomically:
// on all systems a link by a link, and on Linux anything.
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

// leadsElsewhere reports whether place is a link to a directory other than the package.
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

// linkOrCopy creates a symbolic link to a directory. It copies the directory if links are
// not possible.
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

// linkCached links a directory in the working directory to the package in the cache. The
// link contains the path in the cache even if that is itself a link.
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
