package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Create writes a file that must not exist; otherwise it returns an error that is fs.ErrExist. The
// file appears with its whole content: a crash leaves no file, or a hidden temporary one.
func Create(path string, data []byte, perm fs.FileMode) error {
	return create(path, data, perm, os.Link)
}

func create(path string, data []byte, perm fs.FileMode, link func(from, to string) error) error {
	exists := &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	if _, err := os.Lstat(path); err == nil {
		return exists
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+"-*")
	if err != nil {
		return named(err, path)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone if it was renamed
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close()); err != nil {
		return named(err, path)
	}
	switch err := link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return exists
	case err != nil: // a file system without hard links
		if _, err := os.Lstat(path); err == nil {
			return exists
		}
		if err := os.Rename(f.Name(), path); err != nil {
			return named(err, path)
		}
	}
	return syncDir(dir)
}
