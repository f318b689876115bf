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
// An evaluation is that of one file in one role. Its expressions have cells.
// A cell is computed at most four times: for everybody or for one leaf unit,
// and without or with the outputs of dependencies.
//
// Everybody's turn comes first, with outputs unknown. Where the computation
// meets something that depends on the leaf (path_relative_to_import, …), it gives
// up and says so; whoever reads that cell then asks for the leaf's own. Where
// it meets an output it goes on with an unknown value and notes which
// dependency that was: from these notes come the edges between units. Only what
// depends on an output is computed again, when a run needs it, with the real ones.
//
// So no analysis of the text decides what is shared: what was computed without
// meeting the leaf is the same for all.

// An evaluator is one running computation and what it has found so far. It belongs to
// one goroutine.
type evaluator struct {
	t    *demand.Task
	l    *Loader
	leaf *evaluation // the leaf unit; nil while computing for everybody
	full bool        // with the outputs of dependencies
	deep int         // how many references were followed without a cell between

	needsLeaf bool
	needsOut  bool
	failed    bool
	ds        diag.List
	facts     *facts
}

// result is what a cell holds.
type result struct {
	v         cty.Value
	g         *group       // of the cell of the effective configuration
	h         *fileImports // of the cell of the imports and includes
	needsLeaf bool         // v is nothing: ask for the leaf's own
	needsOut  bool         // v holds unknowns: ask for the one with outputs
	failed    bool
	cycle     bool
	ds        diag.List
	facts     *facts
}

var cycleResult = &result{v: cty.DynamicVal, failed: true, cycle: true}

// on starts a computation for a leaf, which may be nil.
func (l *Loader) on(t *demand.Task, leaf *evaluation, full bool) *evaluator {
	return &evaluator{t: t, l: l, leaf: leaf, full: full}
}

func (c *evaluator) sub(leaf *evaluation, full bool) *evaluator {
	return &evaluator{t: c.t, l: c.l, leaf: leaf, full: full}
}

func (c *evaluator) result(v cty.Value) *result {
	return &result{v: v, needsLeaf: c.needsLeaf, needsOut: c.needsOut, failed: c.failed, ds: c.ds, facts: c.facts}
}

// fail notes errors and returns the placeholder.
func (c *evaluator) fail(ds diag.List) cty.Value {
	c.add(ds)
	return cty.DynamicVal
}

// add notes messages, each once.
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

// take takes over the facts of a result.
func (c *evaluator) take(r *result) {
	if r.failed {
		c.failed = true
	}
	c.needsOut = c.needsOut || r.needsOut
	c.needsLeaf = c.needsLeaf || r.needsLeaf
	c.add(r.ds)
	c.facts = c.facts.with(r.facts)
}

// stuck reports that what comes next would be of no use.
func (c *evaluator) stuck() bool { return c.failed || c.needsLeaf }

// A cell is an expression of a file as computed in one evaluation.
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

// cells holds the cells of one evaluation.
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

// eval is the value of an expression of a file. With errors, and while the leaf
// is missing, it is unknown.
func (c *evaluator) eval(e *evaluation, x *syntax.Expr) cty.Value {
	if e.role == valuesRole || e.role == autoRole {
		c.notesValue(e, x)
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

// cell computes everybody's cell, or else the leaf's own.
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

// storage is where the cells of an evaluation are kept: in itself, in the leaf
// that they belong to, or, with outputs that are asked for anew, in the loader.
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

// overlayKey names the cells that a leaf has of another evaluation.
type overlayKey struct {
	of   *evaluation
	full bool
}

// facts are what a computation depends on. They are never changed; nil is none.
type facts struct {
	deps  []*depUse // sorted by nothing, each once
	files []string  // absolute paths, each once
	waits []*Wait   // outputs that are not known, each once

	handed []*handed // values from the environment and from programs, each once
}

// depUse is one dependency block that an expression reached.
type depUse struct {
	target Target
	at     *source.Range // of the block
	label  string
	via    *evaluation // whose block it is
}

// with is the union of two sets of facts.
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
