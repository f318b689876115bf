package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/readfile"
)

// folder reads files below the engine's folder by the names that messages show.
type folder struct {
	dir     string
	overlay map[string][]byte
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

// overlayEntry is a file that exists in memory alone.
type overlayEntry string

func (o overlayEntry) Name() string               { return string(o) }
func (o overlayEntry) IsDir() bool                { return false }
func (o overlayEntry) Type() fs.FileMode          { return 0 }
func (o overlayEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
