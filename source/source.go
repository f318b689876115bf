// Package source holds files as they were read, positions in them, and the
// layer that each file belongs to.
//
// A position (Range) names its file, and a file names its Layer, so nothing
// that was read from a file has to carry where it came from. Main types: File,
// Layer and Set. The one rule: a File never changes after it was added to a Set.
package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// Range is a stretch of a source file: file name, first position and the
// position after the last. Lines and columns count from 1, bytes from 0. The
// zero Range means "no place".
type Range = hcl.Range

// Kind says what role a file plays among those loaded with it.
type Kind uint8

// The kinds of layers, in no order of precedence.
const (
	Base        Kind = iota // an ordinary configuration file
	Override                // an override file, Layer.N tells which in load order (from 1)
	Import                  // a unit file that another imports, Layer.Via tells through which block
	VarFile                 // a variable definitions file
	Environment             // an environment variable
	Flag                    // a command-line flag
	Prompt                  // an answer given on the terminal
	Generated               // written by a generate block
	Values                  // the values that a stack gives a unit
	BackendFile             // a file that says how a backend is configured
)

// A Layer is the role of a file: base, nth override, import through a block,
// variable file, environment or flag. Layers are compared by pointer.
type Layer struct {
	Kind Kind
	N    int    // for Override: 1 for the first override file in load order
	Via  *Range // for Import: the block that brought the file in
	Name string // for Environment and Flag: the variable's or flag's name; for Import: the kind of block, "" for import
	Auto bool   // for VarFile: the file is loaded because of its name, no flag names it
}

// String describes the layer for a reader: "base", "override 2", "import".
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

// A File is one source file as it was read.
type File struct {
	Path  string // as shown to the user and as named in ranges
	Bytes []byte // nil if the file could not be read
	Layer *Layer

	// Private names the arguments and blocks whose text is values that are handed in,
	// which Shows keeps back, wherever in the file they stand.
	Private []string
	// Open names arguments that are shown though they stand in such a block.
	Open []string

	once    sync.Once
	lines   []int // offset of the start of each line
	private sync.Once
	hidden  []lines      // what Private names
	plain   map[int]bool // the lines among these that contain references alone
}

// Line returns line n (from 1) without its line break, or "" when there is none.
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

// LineStart returns the offset at which line n (from 1) starts, and for a line
// that there is none of that of the nearest one.
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

// A Set is the files that one run has read, by path. The zero value is empty
// and ready; all methods may be called concurrently.
type Set struct {
	mu      sync.RWMutex
	files   map[string]*File
	remarks map[string]func(Range) []Remark // by folder
	secret  map[string]bool                 // files whose text is not to be shown
	outer   *Set                            // see Include
}

// Include makes the files of another set, and what is known of them, count wherever s has
// no file of the path: those of an estate for a command in one of its units. The other set
// must not include s.
func (s *Set) Include(other *Set) {
	if other == s {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outer = other
}

// Conceal says that the text of the file of a path must never be shown: there is
// something secret in it.
func (s *Set) Conceal(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secret == nil {
		s.secret = make(map[string]bool)
	}
	s.secret[path] = true
}

// Concealed reports whether the text of a file must not be shown. A nil Set has no
// files.
func (s *Set) Concealed(path string) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	secret, outer := s.secret[path], s.outer
	s.mu.RUnlock()
	return secret || outer.Concealed(path)
}

// A Remark points at another place that matters to one that a message blames.
type Remark struct {
	Text string
	At   Range
}

// Remark records who tells, of places in the files of a folder, which others
// matter to them: what an override replaced, say. A later one replaces an earlier
// one. f may be called concurrently.
func (s *Set) Remark(dir string, f func(Range) []Remark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remarks == nil {
		s.remarks = make(map[string]func(Range) []Remark)
	}
	s.remarks[filepath.Clean(dir)] = f
}

// Remarks returns what there is to say of a place. A nil Set has nothing to say.
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

// Add records a file; a later file of the same path replaces an earlier one.
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

// LayerOf returns the layer of the file that a range lies in, or nil.
func (s *Set) LayerOf(at Range) *Layer {
	if f := s.File(at.Filename); f != nil {
		return f.Layer
	}
	return nil
}
