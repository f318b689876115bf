package readfile

import (
	"bytes"
	"io"
	"io/fs"
	"path/filepath"
)

// A DirFS is an [fs.FS] of the files below a directory, which it reads with the functions. It is like
// the result of os.DirFS.
type DirFS struct {
	Dir         string
	ReadContent func(path string) ([]byte, error)
	Status      func(path string) (fs.FileInfo, error)
	List        func(path string) ([]fs.DirEntry, error)
}

func (d DirFS) path(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(d.Dir, filepath.FromSlash(name)), nil
}

// ReadFile implements [fs.ReadFileFS].
func (d DirFS) ReadFile(name string) ([]byte, error) {
	path, err := d.path("read", name)
	if err != nil {
		return nil, err
	}
	return d.ReadContent(path)
}

// ReadDir implements [fs.ReadDirFS].
func (d DirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	path, err := d.path("open", name)
	if err != nil {
		return nil, err
	}
	return d.List(path)
}

// Stat implements [fs.StatFS].
func (d DirFS) Stat(name string) (fs.FileInfo, error) {
	path, err := d.path("stat", name)
	if err != nil {
		return nil, err
	}
	return d.Status(path)
}

// Open implements [fs.FS].
func (d DirFS) Open(name string) (fs.File, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	f := &dirFile{Reader: bytes.NewReader(nil), info: info}
	if info.IsDir() {
		f.entries, err = d.ReadDir(name)
		return f, err
	}
	text, err := d.ReadFile(name)
	f.Reader = bytes.NewReader(text)
	return f, err
}

// A dirFile is an open file or directory of a DirFS.
type dirFile struct {
	*bytes.Reader
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (f *dirFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *dirFile) Close() error               { return nil }

// ReadDir implements [fs.ReadDirFile].
func (f *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	out := f.entries
	if n > 0 {
		if len(out) == 0 {
			return nil, io.EOF
		}
		out = out[:min(n, len(out))]
	}
	f.entries = f.entries[len(out):]
	return out, nil
}
