package unit

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// A role is the way in which the evaluation reached a file.
type role uint8

const (
	leafRole    role = iota // a unit
	importRole              // an imported file: evaluated in its own directory, once for all units
	readRole                // read by read_terragrunt_config: like importRole
	includeRole             // an included file: evaluated in the directory of the including file
	autoRole                // the autoinclude file next to a unit
	valuesRole              // the values file next to a unit or stack file
	stackRole               // a stack file
)

// An evaluation is the evaluation of one file in one role.
type evaluation struct {
	l         *Loader
	kept      keptFile
	changes   *syntax.Changes // of the file, from its other version; nil means none
	role      role
	dir       string      // the result of get_terragrunt_dir()
	leaf      *evaluation // the unit that this belongs to; nil if all units share it
	child     *evaluation // for includeRole and autoRole: the including file
	label     string      // for includeRole: the label of the include block
	cells     cells       // without outputs
	fullCells cells       // with the outputs of the loader that made the evaluation

	id      string // of a leaf: the unit's ID
	of      partOf
	placing bool               // the evaluation was made by beforePlaced
	vals    func() *evaluation // the evaluation of the values file; nil if there is none
	cycles  cycles
	cache   leafCache
}

// partOf is the part of a file that an evaluation covers. The zero value is the whole file.
type partOf struct {
	top  *evaluation // of a module's unit: the evaluation of the environment file
	mod  *string     // of a module's unit: the module's name
	each cty.Value   // of an instance of a block: each.*; NilVal without for_each
	// count is count.* of an instance of a block; NilVal without count.
	count cty.Value
	// eachAt is the range of the for_each or count that defines each or count.
	eachAt *source.Range
	// instance means that this is an instance of a block with an expansion; see instance.in.
	instance bool
}

// cycles caches whether import cycles are reachable. The zero value means that this is not
// known.
type cycles struct {
	none  atomic.Bool
	found atomic.Value // diag.List of the cycle
}

// leafCache contains values computed on demand for a leaf. Unit.Forget empties it. mu
// guards the other fields.
type leafCache struct {
	mu       sync.Mutex
	overlays map[overlayKey]*cells // cells of shared evaluations, computed for this leaf
	// placed is the leaf as it is evaluated while its working directory is computed, with
	// an empty get_working_dir(). It is nil in such an evaluation itself.
	placed *evaluation
	// importedBy maps each merged file to the layer of the import or include block that
	// names it.
	importedBy map[*evaluation]*source.Layer
	// targets contains the targets of paths, relative to the directory of the leaf.
	targets map[string]DependencyID
	// instances are the evaluations of the instances of blocks with an expansion.
	instances map[instanceKey][]*evaluation
}

// keptFile is a parsed file that can be dropped and parsed again from its text.
type keptFile struct {
	now atomic.Pointer[syntax.File]
	src *source.File // the text, set when the parsed file is dropped
}

// file returns the file of the evaluation.
func (e *evaluation) file() *syntax.File {
	if f := e.kept.now.Load(); f != nil {
		return f
	}
	src := e.kept.src
	var f *syntax.File
	if e.l.lenient {
		f = readable(syntax.Parse(src.Path, src.Bytes, syntax.Language().Unit))
		f.Src = src
	} else {
		f = e.l.env.Parses.Parse(src.Path, src.Bytes, syntax.Language().Unit)
	}
	e.kept.now.Store(f) // a concurrent reader parses an equal file
	return f
}

// forgetFile drops the parsed file of a unit if its text is available. The caller holds
// cache.mu.
func (e *evaluation) forgetFile() {
	f := e.kept.now.Load()
	if f == nil || f.Src == nil {
		return
	}
	if e.kept.src == nil {
		e.kept.src = f.Src
	}
	e.kept.now.Store(nil)
}

func newEvaluation(l *Loader, f *syntax.File, r role, dir string) *evaluation {
	e := &evaluation{l: l, role: r, dir: dir, changes: l.changes.of(f)}
	e.kept.now.Store(f)
	e.vals = sync.OnceValue(func() *evaluation { return l.valuesOf(e) })
	return e
}

// beforePlaced returns the evaluation of a leaf that computes its working directory.
func (e *evaluation) beforePlaced() *evaluation {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if e.cache.placed == nil {
		n := newEvaluation(e.l, e.file(), e.role, e.dir)
		n.leaf, n.id, n.of, n.vals, n.placing = n, e.id, e.of, e.vals, true
		e.cache.placed = n
	}
	return e.cache.placed
}

// base returns the evaluation whose merged blocks are effective for this file: its own, or
// that of the including file.
func (e *evaluation) base() *evaluation {
	e = e.env()
	for e.child != nil {
		e = e.child
	}
	return e
}

// included creates the evaluation of a file that e includes.
func (e *evaluation) included(f *syntax.File, label string, r role) *evaluation {
	in := newEvaluation(e.l, f, r, e.dir)
	in.leaf, in.child, in.label, in.vals = e.leaf, e, label, e.vals
	return in
}

func (e *evaluation) part(which int) *syntax.Expr { return &e.file().Pseudo[which] }

// cellOf computes one of the pseudo expressions, such as syntax.WholePart.
func (c *evaluator) cellOf(e *evaluation, which int) *result {
	x := e.part(which)
	r := c.cell(e, x, false, nil)
	if r.needsOut && c.full && !r.failed {
		r = c.cell(e, x, true, nil)
	}
	c.take(r)
	return r
}

// imports returns the imports and includes of a file, after the check for import cycles.
func (c *evaluator) imports(e *evaluation) *fileImports {
	h := c.fileImports(e)
	if len(h.imports) == 0 || e.cycles.none.Load() {
		return h
	}
	if ds, ok := e.cycles.found.Load().(diag.List); ok {
		c.add(ds)
		return &fileImports{includes: h.includes, auto: h.auto}
	}
	w := &cycleFinder{c: c, on: map[*evaluation]int{}}
	if w.visit(e) {
		return h
	}
	if len(w.ds) > 0 {
		e.cycles.found.CompareAndSwap(nil, w.ds)
		ds := e.cycles.found.Load().(diag.List)
		c.add(ds)
	}
	return &fileImports{includes: h.includes, auto: h.auto}
}

// cycleFinder searches imports depth-first. It identifies files by their path with symbolic
// links resolved.
type cycleFinder struct {
	c     *evaluator
	on    map[*evaluation]int
	steps []cycleStep
	ds    diag.List
}

type cycleStep struct {
	e  *evaluation
	at source.Range // the import of the next file
}

func (w *cycleFinder) visit(e *evaluation) bool {
	if e.cycles.none.Load() {
		return true
	}
	id := w.c.l.disk.Identity(e.file().Path)
	for i, s := range w.steps {
		if w.c.l.disk.Identity(s.e.file().Path) == id {
			w.report(w.steps[i:])
			return false
		}
	}
	h := w.c.fileImports(e)
	for _, i := range h.imports {
		w.steps = append(w.steps, cycleStep{e, i.at})
		ok := w.visit(i.e)
		w.steps = w.steps[:len(w.steps)-1]
		if !ok {
			return false
		}
	}
	if !w.c.stuck() {
		e.cycles.none.Store(true)
	}
	return true
}

// report reports the cycle, beginning with the first file in alphabetical order.
func (w *cycleFinder) report(steps []cycleStep) {
	first := 0
	for i, s := range steps {
		if s.e.file().Path < steps[first].e.file().Path {
			first = i
		}
	}
	steps = slices.Concat(steps[first:], steps[:first])
	at := steps[0].at
	m := &diag.Message{Code: diag.CodeUnitImportCycle, Summary: "Circular import", At: &at}
	var names []string
	for i, s := range steps {
		names = append(names, s.e.file().Path)
		next := steps[(i+1)%len(steps)].e.file().Path
		place := s.at
		m.Notes = append(m.Notes, diag.Note{Text: s.e.file().Path + " imports " + next, At: &place})
	}
	names = append(names, steps[0].e.file().Path)
	if len(steps) == 1 {
		m.Detail = "The file " + names[0] + " imports itself. Remove the import block."
	} else {
		m.Detail = "These files import one another in a cycle: " + strings.Join(names, " → ") + ". Imports go one way only; remove one of them."
	}
	w.ds = diag.List{m}
}

// cycleAt returns the result for an expression that needs its own value.
func (e *evaluation) cycleAt(x *syntax.Expr) *result {
	return &result{v: cty.DynamicVal, failed: true, cycle: true, ds: diag.List{cycleIn(e.file(), e, x)}}
}
