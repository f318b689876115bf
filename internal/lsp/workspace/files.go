// Package workspace contains the state of an editor session: unsaved buffers over the files on disk,
// an index of names, and the results of loading modules and units.
//
// Main types: Session, the session; Files, the buffers over the file system; Index, the names of all
// files; Module and Unit, the results for one directory and one unit. The one rule: nothing in this
// package starts a provider, uses the network, or reads a state, and only trust.go starts programs.
package workspace

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lsp/document"
)

// A Buffer is one version of an open document.
type Buffer struct {
	URI     string
	Path    string
	Version int
	Text    *document.Text

	number int // the number of the change among all changes of the session
}

// Files are the files on disk with the open documents in their place. The zero value has no open
// documents. Methods also take paths that lead through a symbolic link to a directory; see Real.
type Files struct {
	mu   sync.RWMutex
	open map[string]*Buffer
	last int // the number of the last change
	// documents contains all open documents by their URI. A file that is open by two paths has two.
	documents map[string]*Buffer
	links     map[string]string // the directories to which symbolic links lead
}

// Set opens or changes a document.
func (f *Files) Set(b *Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.documents == nil {
		f.open, f.documents = map[string]*Buffer{}, map[string]*Buffer{}
	}
	f.last++
	b.number = f.last
	b.Path = f.real(b.Path)
	f.open[b.Path], f.documents[b.URI] = b, b
}

// Changes returns the number of changes of documents so far.
func (f *Files) Changes() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.last
}

// ChangedSince reports whether a document was opened or changed after a number of changes.
func (f *Files) ChangedSince(path string, changes int) bool {
	b := f.Buffer(path)
	return b != nil && b.number > changes
}

// Close closes a document. If the file is also open by another path, that document counts from now on.
func (f *Files) Close(uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.documents[uri]
	if b == nil {
		return
	}
	delete(f.documents, uri)
	delete(f.open, b.Path)
	for _, other := range f.documents {
		if other.Path == b.Path && (f.open[b.Path] == nil || f.open[b.Path].number < other.number) {
			f.open[b.Path] = other
		}
	}
}

// Document returns the open document with a URI, or nil.
func (f *Files) Document(uri string) *Buffer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.documents[uri]
}

// URIs returns the URIs by which a file is open, sorted.
func (f *Files) URIs(path string) (out []string) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for uri, b := range f.documents {
		if b.Path == path {
			out = append(out, uri)
		}
	}
	slices.Sort(out)
	return out
}

// Buffer returns the open document of a path, or nil.
func (f *Files) Buffer(path string) *Buffer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.open[f.real(path)]
}

// maxLinks is the number of symbolic links that a path may lead through.
const maxLinks = 10

// Real returns the path of a file or directory without the symbolic links to directories of the workspace, so that
// each file has one path. A file that is a symbolic link itself keeps its path: it is part of the module there.
func (f *Files) Real(path string) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.real(path)
}

// real is Real. The caller holds mu.
func (f *Files) real(path string) string {
	if len(f.links) == 0 {
		return path
	}
	for range maxLinks {
		before := path
		for at := path; ; at = filepath.Dir(at) {
			if to, ok := f.links[at]; ok {
				path = to + path[len(at):]
				break
			}
			if filepath.Dir(at) == at {
				break
			}
		}
		if path == before {
			break
		}
	}
	return path
}

// setLinks sets the directories to which symbolic links lead, by the path of the link. It reports whether they have
// changed.
func (f *Files) setLinks(links map[string]string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if maps.Equal(f.links, links) {
		return false
	}
	f.links = links
	f.open = map[string]*Buffer{}
	for _, b := range f.documents {
		if path := f.real(document.Path(b.URI)); path != b.Path {
			c := *b
			c.Path = path
			b = &c
			f.documents[b.URI] = b
		}
		if last := f.open[b.Path]; last == nil || last.number < b.number {
			f.open[b.Path] = b
		}
	}
	return true
}

// Open returns the open documents, sorted by path.
func (f *Files) Open() []*Buffer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]*Buffer, 0, len(f.open))
	for _, b := range f.open {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *Buffer) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// ReadFile returns the text of a file: that of its buffer, or that on disk.
func (f *Files) ReadFile(path string) ([]byte, error) {
	if b := f.Buffer(path); b != nil {
		return b.Text.Bytes, nil
	}
	return readfile.Whole(path)
}

// Text returns the text of a file, or an empty text if it cannot be read.
func (f *Files) Text(path string) *document.Text {
	if b := f.Buffer(path); b != nil {
		return b.Text
	}
	raw, _ := readfile.Whole(path)
	return document.New(raw)
}

// Exists reports whether a file is open, or exists on disk.
func (f *Files) Exists(path string) bool { return f.versionOf(path) != version{} }

// ReadDir returns the entries of a directory, with documents that are not saved yet.
func (f *Files) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	f.mu.RLock()
	defer f.mu.RUnlock()
	for path := range f.open {
		name := filepath.Base(path)
		if filepath.Dir(path) == dir && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
			entries, err = append(entries, unsaved(name)), nil
		}
	}
	return entries, err
}

// unsaved is the entry of a document that does not exist on disk.
type unsaved string

func (u unsaved) Name() string               { return string(u) }
func (u unsaved) IsDir() bool                { return false }
func (u unsaved) Type() fs.FileMode          { return 0 }
func (u unsaved) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// A version identifies the content of a file or directory at one time.
type version struct {
	buffer *Buffer
	size   int64
	time   int64 // modification time, in nanoseconds
	open   string
}

// versionOf returns the current version of a path. The zero version means that it does not exist.
func (f *Files) versionOf(path string) version {
	if b := f.Buffer(path); b != nil {
		return version{buffer: b}
	}
	var v version
	info, err := os.Stat(path)
	if err == nil {
		v = version{size: info.Size(), time: info.ModTime().UnixNano()}
	}
	if err != nil || info.IsDir() {
		var names []string
		for _, b := range f.Open() {
			if filepath.Dir(b.Path) == path {
				names = append(names, filepath.Base(b.Path))
			}
		}
		v.open = strings.Join(names, "\x00")
	}
	return v
}

// A reading records which files and directories a result was computed from. It implements config.FS
// for names relative to dir.
type reading struct {
	files *Files
	dir   string
	valid func() bool // false means that the result is outdated for another reason; may be nil

	mu   sync.Mutex
	seen map[string]version
}

func newReading(f *Files, dir string) *reading {
	return &reading{files: f, dir: dir, seen: map[string]version{}}
}

func (r *reading) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(r.dir, name)
}

// note records the version of a path before it is read. A change while it is read makes the result
// outdated.
func (r *reading) note(path string) {
	v := r.files.versionOf(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.seen[path]; !ok {
		r.seen[path] = v
	}
}

// ReadDir implements config.FS.
func (r *reading) ReadDir(name string) ([]fs.DirEntry, error) {
	path := r.path(name)
	r.note(path)
	return r.files.ReadDir(path)
}

// ReadFile implements config.FS.
func (r *reading) ReadFile(name string) ([]byte, error) {
	path := r.path(name)
	r.note(path)
	return r.files.ReadFile(path)
}

// Locate implements config.Locator: the location contains the version of the file, so that a file is parsed
// again only after a change.
func (r *reading) Locate(name string) string {
	path := r.path(name)
	r.note(path)
	r.mu.Lock()
	v := r.seen[path]
	r.mu.Unlock()
	if v.buffer != nil {
		return fmt.Sprintf("%s\x00change %d", path, v.buffer.number)
	}
	return fmt.Sprintf("%s\x00%d %d", path, v.size, v.time)
}

// kept returns a cache of files that reads through r.
func (r *reading) kept() *readfile.Kept {
	return &readfile.Kept{Replace: func(path string) ([]byte, bool) {
		r.note(path)
		if b := r.files.Buffer(path); b != nil {
			return b.Text.Bytes, true
		}
		return nil, false
	}, Missing: r.missing}
}

// missing records that a path does not exist on disk, so that the result is outdated when the file appears.
func (r *reading) missing(path string) {
	r.note(path)
	if b := r.files.Buffer(path); b != nil && b.Path == path { // the file of an open document was deleted meanwhile
		r.mu.Lock()
		r.seen[path] = version{}
		r.mu.Unlock()
	}
}

// current reports whether nothing that was read has changed.
func (r *reading) current() bool {
	if r.valid != nil && !r.valid() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, v := range r.seen {
		if r.files.versionOf(path) != v {
			return false
		}
	}
	return true
}
