// Package atomicfile replaces files as a whole: a reader sees the old or the new content,
// also after a crash.
//
// Main functions: Write, WriteFrom, WriteMode, WriteUnlinked and Create. The one rule: the new
// content is on disk before the file is renamed. Only WriteCopy and WriteCopyFrom leave this to
// the system.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write replaces the file at path, or creates it with the given permissions. An existing
// file keeps its permissions, and a symbolic link is followed. A device, such as /dev/null,
// or a pipe is opened and written to, because replacing it would break other programs.
func Write(path string, data []byte, perm fs.FileMode) error {
	return WriteFrom(path, perm, bytesTo(data))
}

// WriteFrom is like Write, with content from a function. If the function returns an
// error, nothing is replaced.
func WriteFrom(path string, perm fs.FileMode, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if st, err := os.Stat(path); err == nil {
		if special(st.Mode()) {
			return into(path, write)
		}
		perm = st.Mode().Perm()
	}
	return replace(path, perm, write)
}

// special reports whether a path is a device, a pipe or a socket.
func special(m fs.FileMode) bool { return !m.IsRegular() && !m.IsDir() && m&fs.ModeSymlink == 0 }

// into writes to an existing device, pipe or socket.
func into(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// WriteMode replaces or creates the file at path with exactly the given permissions. It
// replaces a symbolic link.
func WriteMode(path string, data []byte, perm fs.FileMode) error {
	return replace(path, perm, bytesTo(data))
}

// WriteUnlinked is like Write, but replaces a symbolic link like WriteMode. It is for names
// that a checkout may contain as links to files of the user.
func WriteUnlinked(path string, data []byte, perm fs.FileMode) error {
	if st, err := os.Lstat(path); err == nil {
		switch {
		case special(st.Mode()):
			return into(path, bytesTo(data))
		case st.Mode().IsRegular():
			perm = st.Mode().Perm()
		}
	}
	return replace(path, perm, bytesTo(data))
}

// WriteCopy is like WriteMode, for copies that are compared with the original before each
// use. Readers see the old or the new content. After a crash of the machine the file may be
// empty.
func WriteCopy(path string, data []byte, perm fs.FileMode) error {
	return WriteCopyFrom(path, perm, bytesTo(data))
}

// WriteCopyFrom is like WriteCopy, with content from a function. If the function returns an error,
// nothing is replaced.
func WriteCopyFrom(path string, perm fs.FileMode, write func(io.Writer) error) error {
	return swap(path, perm, write, func(*os.File) error { return nil })
}

func bytesTo(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

func replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	if err := swap(path, perm, write, (*os.File).Sync); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// swap renames a new file to path after sync has written it to disk.
func swap(path string, perm fs.FileMode, write func(io.Writer) error, sync func(*os.File) error) error {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+"-*")
	if err != nil {
		return named(err, path)
	}
	err = errors.Join(write(f), f.Chmod(perm), sync(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return &fs.PathError{Op: "write", Path: path, Err: errors.New("it is a directory")}
		}
	}
	return named(err, path)
}

// named replaces the name of the temporary file in an error with path.
func named(err error, path string) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// syncDir makes a rename durable, if the file system can sync directories.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrInvalid) {
		err = nil // some network file systems
	}
	return errors.Join(err, d.Close())
}
