package unit

import (
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # How values are computed
//
// An evaluation evaluates one file in one role. Its expressions have cells. A cell is
// computed at most four times: for all units or for one leaf unit, and without or with the
// outputs of dependencies.
//
// The computation for all units comes first, with outputs unknown. If it calls a function
// that depends on the leaf (path_relative_to_import, …), it stops and sets needsLeaf. A
// reader of such a cell then computes the leaf's own cell. If it reads an output, it
// continues with an unknown value and records the dependency. The edges between units come
// from these records. A run computes the cells that depend on outputs again, with the real
// outputs.
//
// So sharing does not need an analysis of the text: a value that was computed without the
// leaf is the same for all units.

// An evaluator is one computation with its results so far. It belongs to one goroutine.
type evaluator struct {
	t    *demand.Task
	l    *Loader
	leaf *evaluation // the leaf unit; nil for a computation for all units

	full      bool // whether outputs of dependencies are used
	needsLeaf bool
	needsOut  bool
	failed    bool
	differs   bool  // something was used that differs in the other version of the files
	deep      int32 // the number of references followed since the last cell
	ds        diag.List
	facts     *facts

	parent *evaluator // the computation that this one is a part of, for differs; may be nil
}

// result is the content of a cell.
type result struct {
	v         cty.Value
	g         *group       // for the cell of the effective configuration
	h         *fileImports // for the cell of the imports and includes
	needsLeaf bool         // v is not set: compute the leaf's own cell
	needsOut  bool         // v contains unknowns: compute the cell with outputs
	failed    bool
	differs   bool // in the other version of the files; see changes
	cycle     bool
	ds        diag.List
	facts     *facts
}

var cycleResult = &result{v: cty.DynamicVal, failed: true, cycle: true}

// on starts a computation for a leaf; nil means for all units.
func (l *Loader) on(t *demand.Task, leaf *evaluation, full bool) *evaluator {
	return &evaluator{t: t, l: l, leaf: leaf, full: full}
}

func (c *evaluator) sub(leaf *evaluation, full bool) *evaluator {
	return &evaluator{t: c.t, l: c.l, leaf: leaf, full: full, parent: c}
}

func (c *evaluator) result(v cty.Value) *result {
	return &result{v: v, needsLeaf: c.needsLeaf, needsOut: c.needsOut, failed: c.failed, differs: c.differs, ds: c.ds, facts: c.facts}
}

// fail adds errors and returns the placeholder value.
func (c *evaluator) fail(ds diag.List) cty.Value {
	c.add(ds)
	return cty.DynamicVal
}

// add adds messages that were not added before.
func (c *evaluator) add(ds diag.List) {
	if len(ds) == 0 {
		return
	}
	if ds.HasErrors() {
		c.failed = true
	}
	for _, m := range c.l.env.Redactor.List(ds) {
		m = c.l.intern(m)
		if !slices.Contains(c.ds, m) {
			c.ds = append(c.ds, m)
		}
	}
}

func (c *evaluator) errorf(at *source.Range, code, summary, format string, args ...any) cty.Value {
	ds := diag.Errorf(code, at, summary, format, args...)
	return c.fail(ds)
}

// take adds the facts, flags and messages of a result.
func (c *evaluator) take(r *result) {
	if r.failed {
		c.failed = true
	}
	c.needsOut = c.needsOut || r.needsOut
	c.needsLeaf = c.needsLeaf || r.needsLeaf
	if r.differs {
		c.note()
	}
	c.add(r.ds)
	c.facts = c.facts.with(r.facts)
}

// stuck reports whether the computation cannot continue: it failed, or needs the leaf.
func (c *evaluator) stuck() bool { return c.failed || c.needsLeaf }

// A cell is one expression of a file in one evaluation.
type cell struct {
	demand.Cell[*result]
	l    *Loader
	e    *evaluation
	leaf *evaluation
	x    *syntax.Expr
	full bool
}

// Describe names the cell for reports of cycles.
func (k *cell) Describe() (string, *source.Range) {
	at := k.x.At()
	return k.e.file().NameOf(k.x), &at
}

func (k *cell) compute(t *demand.Task) (*result, diag.List) {
	c := k.l.on(t, k.leaf, k.full)
	var r *result
	switch k.x.Kind {
	case syntax.WholeImports:
		h := c.buildImports(k.e)
		r = c.result(cty.DynamicVal)
		r.h = h
	case syntax.WholeMerged:
		g := c.buildMerged(k.e)
		r = c.result(cty.DynamicVal)
		r.g = g
	case syntax.Whole:
		v := objectOf(c, &configNode{e: k.e, style: readStyle})
		r = c.result(v)
	default:
		v := c.raw(k.e, k.x)
		r = c.result(v)
	}
	if r.needsLeaf {
		r.v, r.ds, r.failed = cty.DynamicVal, nil, false
	}
	return r, nil
}

// cells are the cells of one evaluation.
type cells struct {
	mu  sync.Mutex
	set []*cell
}

func (s *cells) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = nil
}

func (s *cells) get(l *Loader, e, leaf *evaluation, x *syntax.Expr, full bool) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = make([]*cell, e.file().Cells)
	}
	k := s.set[x.Cell]
	if k == nil {
		k = &cell{l: l, e: e, leaf: leaf, x: x, full: full}
		k.Init(k, cycleResult, k.compute)
		s.set[x.Cell] = k
	}
	return k
}

// eval returns the value of an expression of a file. After an error, and if the leaf is
// needed, the value is unknown.
func (c *evaluator) eval(e *evaluation, x *syntax.Expr) cty.Value {
	if e.role == valuesRole || e.role == autoRole {
		c.notesValue(e, x)
	}
	if e.changes.Touch(x) {
		c.note()
	}
	if x.Kind == syntax.Constant {
		return x.ConstantValue
	}
	if x.Cell < 0 {
		return c.raw(e, x)
	}
	at := x.At()
	r := c.cell(e, x, false, &at)
	if r.needsOut && c.full && !r.failed {
		r = c.cell(e, x, true, &at)
	}
	c.take(r)
	return r.v
}

// cell returns the cell shared by all units, or the leaf's own if that one needs the leaf.
func (c *evaluator) cell(e *evaluation, x *syntax.Expr, full bool, at *source.Range) *result {
	l := e.l
	if full {
		l = c.l
	}
	r, _ := e.storage(l, e.leaf, full).get(l, e, e.leaf, x, full).Get(c.t, at)
	if r.needsLeaf && c.leaf != nil {
		r, _ = e.storage(l, c.leaf, full).get(l, e, c.leaf, x, full).Get(c.t, at)
	}
	if r.cycle {
		r = e.cycleAt(x)
	}
	return r
}

// storage returns the cells of an evaluation: in the evaluation, in the leaf that they
// belong to, or, for outputs of another loader, in the loader.
func (e *evaluation) storage(l *Loader, leaf *evaluation, full bool) *cells {
	switch {
	case full && l != e.l:
		return l.fullCells(e, leaf)
	case leaf == e.leaf && !full:
		return &e.cells
	case leaf == e.leaf:
		return &e.fullCells
	}
	leaf.cache.mu.Lock()
	defer leaf.cache.mu.Unlock()
	k := overlayKey{e, full}
	s := leaf.cache.overlays[k]
	if s == nil {
		s = new(cells)
		if leaf.cache.overlays == nil {
			leaf.cache.overlays = map[overlayKey]*cells{}
		}
		leaf.cache.overlays[k] = s
	}
	return s
}

// overlayKey identifies the cells of a shared evaluation in a leaf.
type overlayKey struct {
	of   *evaluation
	full bool
}

// facts contains the dependencies of a computation. They are immutable; nil means none.
type facts struct {
	deps  []*depUse // distinct, in no order
	files []string  // absolute paths, distinct
	waits []*Wait   // outputs that are not known, distinct

	handed []*handed // values from the environment and from programs, distinct
}

// depUse is one dependency block that an expression reached.
type depUse struct {
	target DependencyID
	at     *source.Range // of the block
	label  string
	via    *evaluation // the evaluation of the file with the block
}

// with returns the union of two sets of facts.
func (f *facts) with(o *facts) *facts {
	switch {
	case o == nil || o == f:
		return f
	case f == nil:
		return o
	}
	var out *facts
	grow := func() {
		if out == nil {
			out = &facts{deps: slices.Clone(f.deps), files: slices.Clone(f.files), waits: slices.Clone(f.waits), handed: slices.Clone(f.handed)}
		}
	}
	for _, d := range o.deps {
		if !slices.Contains(f.deps, d) {
			grow()
			out.deps = append(out.deps, d)
		}
	}
	for _, p := range o.files {
		if !slices.Contains(f.files, p) {
			grow()
			out.files = append(out.files, p)
		}
	}
	for _, w := range o.waits {
		if !slices.ContainsFunc(f.waits, func(h *Wait) bool { return *h == *w }) {
			grow()
			out.waits = append(out.waits, w)
		}
	}
	for _, h := range o.handed {
		if !slices.ContainsFunc(f.handed, h.equals) {
			grow()
			out.handed = append(out.handed, h)
		}
	}
	if out == nil {
		return f
	}
	return out
}

func (c *evaluator) readFile(path string) {
	if c.facts == nil || !slices.Contains(c.facts.files, path) {
		c.facts = c.facts.with(&facts{files: []string{path}})
	}
}
