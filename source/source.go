// Package source defines source files, positions in them, and the layer of each file.
//
// A position (Range) names its file, and a file names its Layer, so a value from a file
// needs no further record of its origin. Main types: File, Layer and Set. The one rule: a
// File never changes after it was added to a Set.
package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// Range is a range of a source file: the file name, the first position, and the position
// after the last. Lines and columns count from 1, bytes from 0. The zero Range means no
// position.
type Range = hcl.Range

// Kind is the role of a file among the files loaded with it.
type Kind uint8

// The kinds of layers. The order has no meaning.
const (
	Base        Kind = iota // an ordinary configuration file
	Override                // an override file; Layer.N is its number in load order
	Import                  // a unit file that another file imports; Layer.Via is the import block
	VarFile                 // a variable definitions file
	Environment             // an environment variable
	Flag                    // a command-line flag
	Prompt                  // an answer given on the terminal
	Generated               // written by a generate block
	Values                  // the values of a stack for a unit
	BackendFile             // a file with backend configuration
)

// Layer is the role of a file: base, override n, import through a block, variable file, environment
// or flag. Layers are compared by pointer.
type Layer struct {
	Kind Kind
	N    int    // for Override: 1 for the first override file in load order
	Via  *Range // for Import: the block that brought the file in
	Name string // for Environment and Flag: the variable's or flag's name; for Import: the kind of block, "" for import
	Auto bool   // for VarFile: the file is loaded because of its name, no flag names it
}

// String returns a description for users: "base", "override 2", "import".
func (l *Layer) String() string {
	if l == nil {
		return "base"
	}
	switch l.Kind {
	case Override:
		return fmt.Sprintf("override %d", l.N)
	case Import:
		return cmp.Or(l.Name, "import")
	case VarFile:
		return "variable file"
	case Environment:
		return "environment " + l.Name
	case Flag:
		return "flag " + l.Name
	case Prompt:
		return "prompt"
	case Generated:
		return "generated"
	case Values:
		return "values of a stack"
	case BackendFile:
		return "backend configuration file"
	default:
		return "base"
	}
}

// File is one source file.
type File struct {
	Path  string // as shown to users and as in ranges
	Bytes []byte // nil if the file could not be read
	Layer *Layer

	// Private names the arguments and blocks whose text is never shown, anywhere in the
	// file; see Shows.
	Private []string
	// Open names arguments inside Private blocks that may be shown.
	Open []string

	once    sync.Once
	lines   []int // the offset of the start of each line
	private sync.Once
	hidden  []lines      // lines of the arguments and blocks in Private
	plain   map[int]bool // lines that only contain a reference
}

// Line returns line n, counted from 1, without its line break, or "" if it does not exist.
func (f *File) Line(n int) string {
	f.once.Do(f.index)
	if n < 1 || n > len(f.lines) {
		return ""
	}
	rest := f.Bytes[f.lines[n-1]:]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.TrimSuffix(rest, []byte("\r")))
}

// LineStart returns the offset of the start of line n, counted from 1. If the line does
// not exist, it returns that of the nearest line.
func (f *File) LineStart(n int) int {
	f.once.Do(f.index)
	return f.lines[min(max(n, 1), len(f.lines))-1]
}

func (f *File) index() {
	f.lines = append(f.lines, 0)
	for i, b := range f.Bytes {
		if b == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
}

// Set contains the files of one run, by path. The zero value is empty and ready to use.
// All methods may be called concurrently.
type Set struct {
	mu      sync.RWMutex
	files   map[string]*File
	remarks map[string]func(Range) []Remark // by directory
	secret  map[string]bool                 // paths of files whose text is never shown
	outer   *Set                            // set by Include
}

// Include adds another set. If s does not contain a path, the file and remarks of other are used. A
// command in one unit uses this for the files of the estate. other must not include s.
func (s *Set) Include(other *Set) {
	if other == s {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outer = other
}

// Conceal marks the file of a path as secret, so that its text is never shown.
func (s *Set) Conceal(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secret == nil {
		s.secret = make(map[string]bool)
	}
	s.secret[path] = true
}

// Concealed reports whether the text of a file must not be shown. It returns false for a
// nil Set.
func (s *Set) Concealed(path string) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	secret, outer := s.secret[path], s.outer
	s.mu.RUnlock()
	return secret || outer.Concealed(path)
}

// Remark is a related range for a message, such as the setting that an override replaced.
type Remark struct {
	Text string
	At   Range
}

// Remark registers the function that returns related ranges for ranges in the files of a
// directory. It replaces an earlier function. f may be called concurrently.
func (s *Set) Remark(dir string, f func(Range) []Remark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remarks == nil {
		s.remarks = make(map[string]func(Range) []Remark)
	}
	s.remarks[filepath.Clean(dir)] = f
}

// Remarks returns the related ranges of a range. It returns nil for a nil Set.
func (s *Set) Remarks(at Range) []Remark {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	f, outer := s.remarks[filepath.Dir(at.Filename)], s.outer
	s.mu.RUnlock()
	if f == nil {
		return outer.Remarks(at)
	}
	return f(at)
}

// Add adds a file. It replaces an earlier file of the same path.
func (s *Set) Add(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = make(map[string]*File)
	}
	s.files[f.Path] = f
}

// File returns the file of a path, or nil. A nil Set has no files.
func (s *Set) File(path string) *File {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	f, outer := s.files[path], s.outer
	s.mu.RUnlock()
	if f == nil {
		return outer.File(path)
	}
	return f
}

// Adopt adds the file of another set with the given name to s, with the given path. It does nothing
// if s already contains the path, or if the other set does not contain the name.
func (s *Set) Adopt(path string, from *Set, name string) {
	f := from.File(name)
	if f == nil || s.File(path) != nil {
		return
	}
	if from.Concealed(name) {
		s.Conceal(path)
	}
	s.Add(&File{Path: path, Bytes: f.Bytes, Layer: f.Layer, Private: f.Private, Open: f.Open})
}

// LayerOf returns the layer of the file of a range, or nil.
func (s *Set) LayerOf(at Range) *Layer {
	if f := s.File(at.Filename); f != nil {
		return f.Layer
	}
	return nil
}
