package readfile

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// # Revisions without a checkout
//
// A commit usually differs from the working tree in a few files. A Patch contains these differences,
// so that programs can read the files of the commit at the paths of the working tree: other contents,
// files that only the commit has, and files that it lacks. Everything else is read from disk.
//
// Symbolic links are resolved here, and not by the operating system, because a link may lead to a
// file that the patch changes.

// A Patch is the difference between a directory tree on disk and the tree to read. Hide and the Put
// methods must be called before the other methods, which may be called concurrently. A nil *Patch is
// the tree on disk.
type Patch struct {
	root string // absolute and clean
	real string // root without symbolic links

	files  map[string]*patchedFile // by path
	hidden map[string]bool         // paths that do not exist
	links  map[string]string       // targets of all symbolic links of the tree, by path
	// entries contains, for each directory with differences, the names that the patch adds to it. The
	// value is true for a directory.
	entries map[string]map[string]bool
	holes   map[string]bool // directories that contain hidden names
}

// A patchedFile is a file whose content is not on disk.
type patchedFile struct {
	read func() ([]byte, error)
	mode fs.FileMode
}

// NewPatch returns a Patch without differences for the directory root.
func NewPatch(root string) *Patch {
	p := &Patch{root: filepath.Clean(root), files: map[string]*patchedFile{}, hidden: map[string]bool{}, links: map[string]string{}, entries: map[string]map[string]bool{}, holes: map[string]bool{}}
	p.real = p.root
	if real, err := filepath.EvalSymlinks(p.root); err == nil {
		p.real = real
	}
	return p
}

// Modified returns the paths of the regular files whose content may differ between two trees on the same
// disk, and a function that returns the path among them, if any, from which a file is read. ok is false
// if the trees also differ in anything else, such as the set of files. Either may be nil.
func Modified(a, b *Patch) (paths []string, resolve func(path string) string, ok bool) {
	all := map[string]bool{}
	links := map[string]bool{}
	var linked *Patch // one that resolves links as both do
	for _, p := range []*Patch{a, b} {
		if p == nil {
			continue
		}
		linked = p
		for path := range p.files {
			all[path] = true
		}
		for path := range p.links {
			links[path] = true
		}
	}
	for path := range links {
		was, err := a.Readlink(path)
		is, also := b.Readlink(path)
		if err != nil || also != nil || was != is {
			return nil, nil, false
		}
	}
	for path := range all {
		for _, p := range []*Patch{a, b} {
			if info, err := p.Lstat(path); err != nil || !info.Mode().IsRegular() {
				return nil, nil, false
			}
		}
	}
	resolve = func(path string) string {
		if linked == nil {
			return path
		}
		at, _, _ := linked.resolve(path, true)
		return at
	}
	return slices.Sorted(maps.Keys(all)), resolve, maps.Equal(a.hides(), b.hides())
}

// Hide makes a file or a directory, with everything on disk below it, absent.
func (p *Patch) Hide(path string) {
	p.hidden[path] = true
	p.holes[filepath.Dir(path)] = true
}

// Put adds a file, or replaces the file on disk. read returns its content and is called at most once
// unless it fails.
func (p *Patch) Put(path string, mode fs.FileMode, read func() ([]byte, error)) {
	var mu sync.Mutex
	var text []byte
	known := false
	p.files[path] = &patchedFile{mode: mode.Perm(), read: func() ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if known {
			return text, nil
		}
		b, err := read()
		if err == nil {
			text, known = b, true
		}
		return b, err
	}}
	p.enter(path)
}

// PutLink adds a symbolic link, or replaces what is on disk. Links on disk must be added too if they
// may lead to files that differ.
func (p *Patch) PutLink(path, target string) {
	p.links[path] = filepath.FromSlash(target)
	p.enter(path)
}

// PutDir adds an empty directory in place of what is on disk.
func (p *Patch) PutDir(path string) {
	p.Hide(path)
	p.enter(path)
	p.entries[path] = map[string]bool{}
}

// enter records a name in its directory, and the parents of the directory.
func (p *Patch) enter(path string) {
	for dir := false; path != p.root; dir = true {
		up := filepath.Dir(path)
		all := p.entries[up]
		if all == nil {
			all = map[string]bool{}
			p.entries[up] = all
		}
		all[filepath.Base(path)] = dir
		if up == path {
			return
		}
		path = up
	}
}

// below returns a path in the tree with its root as it is named here. ok is false for a path that is
// not in the tree.
func (p *Patch) below(path string) (string, bool) {
	for _, root := range [...]string{p.root, p.real} {
		if path == root {
			return p.root, true
		}
		if rest, ok := strings.CutPrefix(path, root); ok && (rest[0] == filepath.Separator || root == string(filepath.Separator)) {
			if root == p.root {
				return path, true
			}
			return filepath.Join(p.root, rest), true
		}
	}
	return path, false
}

// maxLinks is the number of symbolic links after which a path is taken for a cycle.
const maxLinks = 255

// resolve returns the path to read: with the links of the tree resolved, in the last element only if
// last is set. in reports whether the result is in the tree.
func (p *Patch) resolve(path string, last bool) (out string, in bool, err error) {
	path, in = p.below(filepath.Clean(path))
	if !in || len(p.links) == 0 {
		return path, in, nil
	}
	done, rest := p.root, strings.TrimPrefix(path[len(p.root):], string(filepath.Separator))
	for n := 0; rest != ""; {
		name, more, _ := strings.Cut(rest, string(filepath.Separator))
		rest = more
		next := filepath.Join(done, name)
		target, isLink := p.links[next]
		if !isLink || rest == "" && !last {
			done = next
			continue
		}
		if n++; n > maxLinks {
			return "", false, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(done, target)
		}
		at, inside := p.below(filepath.Clean(target))
		if !inside {
			return filepath.Join(at, rest), false, nil
		}
		done, rest = p.root, strings.TrimPrefix(filepath.Join(at, rest)[len(p.root):], string(filepath.Separator))
	}
	return done, true, nil
}

// onDisk reports whether a resolved path of the tree is read from disk.
func (p *Patch) onDisk(path string) bool {
	if p.files[path] != nil || p.links[path] != "" {
		return false
	}
	if len(p.hidden) == 0 {
		return true
	}
	for ; ; path = filepath.Dir(path) {
		if p.hidden[path] || p.files[path] != nil {
			return false
		}
		if path == p.root || len(path) < len(p.root) {
			return true
		}
	}
}

func missing(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist} }

// find returns the path on disk of a file or directory, or its content in the patch. Both are empty
// for a directory that only the patch has.
func (p *Patch) find(op, path string, last bool) (disk string, f *patchedFile, err error) {
	if p == nil {
		return path, nil, nil
	}
	at, in, err := p.resolve(path, last)
	switch {
	case err != nil:
		return "", nil, err
	case !in:
		return at, nil, nil
	case p.files[at] != nil:
		return "", p.files[at], nil
	case p.onDisk(at):
		if _, also := p.entries[at]; also {
			if info, err := os.Lstat(at); err != nil || !info.IsDir() {
				return "", nil, nil // a directory of the patch in place of a file
			}
		}
		return at, nil, nil
	case p.entries[at] != nil:
		return "", nil, nil
	}
	return "", nil, missing(op, path)
}

// Locate returns the path on disk from which a file or directory is read, or "" if it is not read
// from disk.
func (p *Patch) Locate(path string) string {
	disk, _, _ := p.find("open", path, true)
	return disk
}

// Content returns the content of a file that is not read from disk. ok is false if disk, the path on
// disk, has to be read.
func (p *Patch) Content(path string) (text []byte, disk string, ok bool, err error) {
	disk, f, err := p.find("open", path, true)
	switch {
	case err != nil:
		return nil, "", true, err
	case f != nil:
		text, err = f.read()
		if err == nil && len(text) > Most {
			text, err = nil, &fs.PathError{Op: "read", Path: path, Err: errLarge}
		}
		return text, "", true, err
	case disk == "":
		return nil, "", true, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	return nil, disk, false, nil
}

// Stat is like os.Stat.
func (p *Patch) Stat(path string) (fs.FileInfo, error) { return p.stat(nil, "stat", path, true) }

// Lstat is like os.Lstat.
func (p *Patch) Lstat(path string) (fs.FileInfo, error) { return p.stat(nil, "lstat", path, false) }

func (p *Patch) stat(on *snapshot, op, path string, last bool) (fs.FileInfo, error) {
	if p != nil && !last {
		if at, in, err := p.resolve(path, false); err == nil && in && p.links[at] != "" {
			return &patchedInfo{path: at, mode: fs.ModeSymlink | 0o777, size: int64(len(p.links[at]))}, nil
		}
	}
	disk, f, err := p.find(op, path, last)
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		text, err := f.read()
		return &patchedInfo{path: filepath.Clean(path), mode: f.mode, size: int64(len(text))}, err
	case disk == "":
		at, _, _ := p.resolve(path, last)
		return &patchedInfo{path: at, mode: fs.ModeDir | 0o755}, nil
	case last:
		return on.stat(disk)
	}
	return on.lstat(disk)
}

// SameFile is like os.SameFile for results of Stat.
func SameFile(a, b fs.FileInfo) bool {
	x, ok := a.(*patchedInfo)
	y, both := b.(*patchedInfo)
	if ok || both {
		return ok && both && x.path == y.path
	}
	return os.SameFile(a, b)
}

// ReadDir is like os.ReadDir.
func (p *Patch) ReadDir(path string) ([]fs.DirEntry, error) { return p.readDir(nil, path) }

func (p *Patch) readDir(on *snapshot, path string) ([]fs.DirEntry, error) {
	if p == nil {
		return on.readDir(path)
	}
	at, in, err := p.resolve(path, true)
	if err != nil {
		return nil, err
	}
	if !in {
		return on.readDir(at)
	}
	disk, f, err := p.find("open", at, true)
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	var out []fs.DirEntry
	if disk != "" {
		if out, err = on.readDir(disk); err != nil {
			return nil, err
		}
	}
	added := p.entries[at]
	if len(added) == 0 && !p.holes[at] {
		return out, nil
	}
	out = slices.DeleteFunc(out, func(en fs.DirEntry) bool {
		dir, changed := added[en.Name()]
		return changed && !(dir && en.IsDir()) || p.hidden[filepath.Join(at, en.Name())]
	})
	for name, dir := range added {
		if child := filepath.Join(at, name); !dir || p.hidden[child] || disk == "" || !slices.ContainsFunc(out, func(en fs.DirEntry) bool { return en.Name() == name }) {
			info, err := p.Lstat(child)
			if err != nil {
				return nil, err
			}
			out = append(out, fs.FileInfoToDirEntry(info))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// EvalSymlinks is like filepath.EvalSymlinks.
func (p *Patch) EvalSymlinks(path string) (string, error) {
	if p == nil {
		return filepath.EvalSymlinks(path)
	}
	disk, _, err := p.find("lstat", path, true)
	if err != nil {
		return "", err
	}
	if disk != "" {
		return filepath.EvalSymlinks(disk)
	}
	at, _, err := p.resolve(path, true)
	return p.real + strings.TrimPrefix(at, p.root), err
}

// Readlink is like os.Readlink.
func (p *Patch) Readlink(path string) (string, error) {
	if p == nil {
		return os.Readlink(path)
	}
	at, in, err := p.resolve(path, false)
	if err != nil {
		return "", err
	}
	if target := p.links[at]; in && target != "" {
		return target, nil
	}
	disk, _, err := p.find("readlink", at, false)
	if err != nil || disk == "" {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: errors.ErrUnsupported}
	}
	return os.Readlink(disk)
}

// WalkDir is like filepath.WalkDir. A root that the patch hides has no files.
func (p *Patch) WalkDir(root string, visit fs.WalkDirFunc) error { return p.walkDir(nil, root, visit) }

func (p *Patch) walkDir(on *snapshot, root string, visit fs.WalkDirFunc) error {
	if p == nil {
		return on.walkDir(root, visit)
	}
	info, err := p.Lstat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.absent(root):
		return nil
	case err != nil:
		err = visit(root, nil, err)
	default:
		err = walk(func(path string) ([]fs.DirEntry, error) { return p.readDir(on, path) }, root, fs.FileInfoToDirEntry(info), visit)
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// walk visits a file or a directory and everything below it.
func walk(read func(path string) ([]fs.DirEntry, error), path string, d fs.DirEntry, visit fs.WalkDirFunc) error {
	if err := visit(path, d, nil); err != nil || !d.IsDir() {
		if errors.Is(err, fs.SkipDir) && d.IsDir() {
			err = nil
		}
		return err
	}
	entries, err := read(path)
	if err != nil {
		if err = visit(path, d, err); err != nil {
			if errors.Is(err, fs.SkipDir) {
				err = nil
			}
			return err
		}
	}
	for _, en := range entries {
		if err := walk(read, filepath.Join(path, en.Name()), en, visit); err != nil {
			if errors.Is(err, fs.SkipDir) {
				break
			}
			return err
		}
	}
	return nil
}

// hides returns the paths that do not exist.
func (p *Patch) hides() map[string]bool {
	if p == nil {
		return nil
	}
	return p.hidden
}

// absent reports whether a path is absent because of the patch.
func (p *Patch) absent(path string) bool {
	at, in, err := p.resolve(path, true)
	return err == nil && in && !p.onDisk(at) && p.files[at] == nil && p.entries[at] == nil
}

// patchedInfo describes a file or directory of the patch that does not exist on disk.
type patchedInfo struct {
	path string // resolved
	mode fs.FileMode
	size int64
}

func (i *patchedInfo) Name() string       { return filepath.Base(i.path) }
func (i *patchedInfo) Size() int64        { return i.size }
func (i *patchedInfo) Mode() fs.FileMode  { return i.mode }
func (i *patchedInfo) ModTime() time.Time { return time.Time{} }
func (i *patchedInfo) IsDir() bool        { return i.mode.IsDir() }
func (i *patchedInfo) Sys() any           { return nil }
