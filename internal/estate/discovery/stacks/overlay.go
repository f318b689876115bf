package stacks

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/unit"
)

// An Overlay contains generated units and stacks in memory instead of on disk: for each generated
// directory its source directory and additional files. The zero value and nil are empty. Its
// methods may be called concurrently.
type Overlay struct {
	mu    sync.RWMutex
	dirs  map[string]string // source directories, by generated directory
	files map[string][]byte // values files, autoinclude files and replaced files, by path
}

// add adds an item with the source directory from.
func (u *Overlay) add(from string, it *unit.StackItem) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirs == nil {
		u.dirs, u.files = map[string]string{}, map[string][]byte{}
	}
	u.dirs[it.Dir] = from
	for name, b := range beside(it) {
		u.files[filepath.Join(it.Dir, name)] = b
	}
}

// Replace makes the overlay contain another text of a file.
func (u *Overlay) Replace(path string, text []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.files == nil {
		u.dirs, u.files = map[string]string{}, map[string][]byte{}
	}
	u.files[filepath.Clean(path)] = text
}

// Generated reports whether the overlay contains generated units or stacks.
func (u *Overlay) Generated() bool {
	if u == nil {
		return false
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	return len(u.dirs) > 0
}

// Locate returns the path on disk of a file or directory. For a path in a generated directory it
// is the path in the source.
func (u *Overlay) Locate(path string) string {
	if u == nil {
		return path
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	if len(u.dirs) == 0 {
		return path
	}
	whole := filepath.Clean(path)
	for dir := whole; ; {
		if from, ok := u.dirs[dir]; ok {
			return filepath.Join(from, whole[len(dir):])
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir = up
	}
}

// Source returns the path on disk of a file, as Locate, or the path itself if the overlay contains the
// text of the file.
func (u *Overlay) Source(path string) string {
	if u.beside(path) != nil {
		return path
	}
	return u.Locate(path)
}

// ReadFile reads a file as if everything had been written to disk. files reads existing files and
// may be nil.
func (u *Overlay) ReadFile(files *readfile.Kept, path string) ([]byte, error) {
	if b := u.beside(path); b != nil {
		return b, nil
	}
	return files.Whole(u.Locate(path))
}

// Stat returns the file information as if everything had been written to disk. files may be nil.
func (u *Overlay) Stat(files *readfile.Kept, path string) (fs.FileInfo, error) {
	if b := u.beside(path); b != nil {
		return besideInfo{filepath.Base(path), len(b)}, nil
	}
	return files.Stat(u.Locate(path))
}

// ReadDir returns the entries of a directory as if everything had been written to disk. files may be
// nil.
func (u *Overlay) ReadDir(files *readfile.Kept, path string) ([]fs.DirEntry, error) {
	out, err := files.ReadDir(u.Locate(path))
	if u == nil || err != nil {
		return out, err
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	for name, text := range u.files {
		base := filepath.Base(name)
		if filepath.Dir(name) == filepath.Clean(path) && !slices.ContainsFunc(out, func(en fs.DirEntry) bool { return en.Name() == base }) {
			out = append(out, fs.FileInfoToDirEntry(besideInfo{base, len(text)}))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

func (u *Overlay) beside(path string) []byte {
	if u == nil {
		return nil
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.files[filepath.Clean(path)]
}

// Holds reports whether a directory would be generated.
func (u *Overlay) Holds(dir string) bool {
	if u == nil {
		return false
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	_, ok := u.dirs[dir]
	return ok
}

// Walk calls visit for each generated file below root, with its path and the path of its source.
// disk reads the sources and may be nil.
func (u *Overlay) Walk(disk *readfile.Kept, root string, visit func(path, from string)) error {
	if u == nil {
		return nil
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	for _, dir := range u.below(root) {
		files := copytree.Files{}
		if err := files.Add(disk, u.dirs[dir], dir, copytree.Rules{All: true}); err != nil {
			return err
		}
		for _, path := range slices.Sorted(maps.Keys(files)) {
			visit(path, files[path].From)
		}
	}
	return nil
}

// below returns the generated directories below root, sorted.
func (u *Overlay) below(root string) []string {
	var out []string
	for dir := range u.dirs {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// besideInfo is the fs.FileInfo of a file in an Overlay.
type besideInfo struct {
	name string
	size int
}

func (i besideInfo) Name() string       { return i.name }
func (i besideInfo) Size() int64        { return int64(i.size) }
func (i besideInfo) Mode() fs.FileMode  { return 0o644 }
func (i besideInfo) ModTime() time.Time { return time.Time{} }
func (i besideInfo) IsDir() bool        { return false }
func (i besideInfo) Sys() any           { return nil }
