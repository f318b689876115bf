package engine

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// folder reads files below the engine's directory by the names that appear in messages.
type folder struct {
	dir     string
	overlay map[string][]byte
	read    func(path string) ([]byte, error) // nil means readfile.Whole
}

func (f folder) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.dir, name)
}

func (f folder) ReadFile(name string) ([]byte, error) {
	if b, ok := f.overlay[filepath.Clean(name)]; ok {
		return b, nil
	}
	if f.read != nil {
		return f.read(f.path(name))
	}
	return readfile.Whole(f.path(name))
}

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(f.path(name))
	if len(f.overlay) == 0 {
		return entries, err
	}
	have := map[string]bool{}
	for _, en := range entries {
		have[en.Name()] = true
	}
	found := false
	for file := range f.overlay {
		if filepath.Dir(file) == filepath.Clean(name) {
			found = true
			if base := filepath.Base(file); !have[base] {
				entries = append(entries, overlayEntry(base))
			}
		}
	}
	if found {
		err = nil
		slices.SortFunc(entries, func(a, b fs.DirEntry) int {
			if a.Name() < b.Name() {
				return -1
			}
			return 1
		})
	}
	return entries, err
}

// overlayEntry is a file that exists in memory only.
type overlayEntry string

func (o overlayEntry) Name() string               { return string(o) }
func (o overlayEntry) IsDir() bool                { return false }
func (o overlayEntry) Type() fs.FileMode          { return 0 }
func (o overlayEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// unmade is the file system of a directory that does not exist on disk, for functions that read
// files.
type unmade struct{ config.FS }

// Open implements fs.FS.
func (u unmade) Open(name string) (fs.File, error) {
	if text, err := u.ReadFile(name); err == nil {
		return unmadeFile{bytes.NewReader(text), unmadeInfo{name: path.Base(name), size: len(text)}}, nil
	}
	if _, err := u.ReadDir(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return unmadeFile{bytes.NewReader(nil), unmadeInfo{name: path.Base(name), mode: fs.ModeDir}}, nil
}

type unmadeFile struct {
	*bytes.Reader
	info unmadeInfo
}

func (f unmadeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f unmadeFile) Close() error               { return nil }

type unmadeInfo struct {
	name string
	size int
	mode fs.FileMode
}

func (i unmadeInfo) Name() string       { return i.name }
func (i unmadeInfo) Size() int64        { return int64(i.size) }
func (i unmadeInfo) Mode() fs.FileMode  { return i.mode }
func (i unmadeInfo) ModTime() time.Time { return time.Time{} }
func (i unmadeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i unmadeInfo) Sys() any           { return nil }
