package unit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// # Another version of the files
//
// A comparison of two versions of an estate evaluates most values twice although they are equal. With
// Env.Changed, an evaluation notes in each result whether it used an expression that has another text
// in the other version. A result without the note is the same in the other version, if the other
// version has the same files, with texts that differ only as syntax.Changes can describe, and if no
// function read a file that differs. The note spreads to all results that use a noted one.
//
// A file that differs in another way, or that a function reads, is met before any value that depends
// on it. So it is enough that it sets changes.unsure, which is read after an evaluation.

// changes describes the differences from the other version. nil means that there is none to compare
// with.
type changes struct {
	old    func(path string) (text []byte, ok bool)
	files  sync.Map    // *syntax.Changes by path
	unsure atomic.Bool // the notes do not cover all differences
}

// newChanges returns the changes for an environment, whose ReadFile then notes the files that are read
// for other purposes than evaluation.
func newChanges(env *Env) *changes {
	if env.Changed == nil {
		return nil
	}
	c := &changes{old: env.Changed}
	read := env.reader()
	env.ReadFile = func(path string) ([]byte, error) {
		if _, ok := c.old(path); ok {
			c.unsure.Store(true)
		}
		return read(path)
	}
	return c
}

// parsed compares a file that was parsed with its other version.
func (c *changes) parsed(f *syntax.File, spec *syntax.BlockSpec) {
	if c == nil {
		return
	}
	text, ok := c.old(f.Path)
	if !ok {
		return
	}
	d, ok := syntax.Compare(syntax.Parse(f.Path, text, spec), f)
	if !ok {
		c.unsure.Store(true)
		return
	}
	c.files.Store(f.Path, d)
}

// of returns the changes of a file, or nil.
func (c *changes) of(f *syntax.File) *syntax.Changes {
	if c == nil || f == nil {
		return nil
	}
	d, _ := c.files.Load(f.Path)
	out, _ := d.(*syntax.Changes)
	return out
}

// note records that the computation used something that differs in the other version.
func (c *evaluator) note() {
	for ; c != nil && !c.differs; c = c.parent {
		c.differs = true
	}
}

// A Tracking tells whether the values of a unit are the same in the other version of the files; see
// Env.Changed.
type Tracking struct {
	on *evaluator // the parent of the evaluators of the unit
	l  *Loader
	ok bool
}

// Tracked returns the same unit with a Tracking of everything that is computed with it. Both belong to
// one goroutine.
func (u *Unit) Tracked() (*Unit, *Tracking) {
	n := *u
	t := &Tracking{l: u.l, ok: u.l.changes != nil && u.mod == nil}
	if t.ok {
		t.on = &evaluator{l: u.l}
		n.tracking = t.on
	}
	return &n, t
}

// Same reports whether everything that was computed so far is certainly the same in the other version.
func (t *Tracking) Same() bool { return t.ok && !t.on.differs && !t.l.changes.unsure.Load() }

// CompareOutputs sets the function that reports whether the outputs of a target differ in the other version.
// Without it, all outputs count as different. It must be called before the loader is used.
func (l *Loader) CompareOutputs(differ func(ctx context.Context, target string) bool) {
	l.outputsDiffer = differ
}
