package unit

// # How values are computed
//
// An ev is the evaluation of one file in one role. Its expressions have cells.
// A cell is computed at most four times: for everybody or for one leaf unit,
// and without or with the outputs of dependencies.
//
// Everybody's turn comes first, with outputs unknown. Where the computation
// meets something that hangs on the leaf (path_relative_to_import, …), it gives
// up and says so; whoever reads that cell then asks for the leaf's own. Where
// it meets an output it goes on with an unknown value and notes which
// dependency that was: from these notes come the edges between units. Only what
// met an output is computed again, when a run needs it, with the real ones.
//
// So no analysis of the text decides what is shared: what was computed without
// meeting the leaf is the same for all.

import (
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A calc is one running computation and what it has met so far. It belongs to
// one goroutine.
type calc struct {
	t    *demand.Task
	l    *Loader
	leaf *ev  // the leaf unit; nil while computing for everybody
	full bool // with the outputs of dependencies
	deep int  // how many references were followed without a cell between

	needsLeaf bool
	needsOut  bool
	failed    bool
	ds        diag.List
	met       *facts
}

// result is what a cell holds.
type result struct {
	v         cty.Value
	g         *group // of the cell of the effective configuration
	h         *head  // of the cell of the imports and includes
	needsLeaf bool   // v is nothing: ask for the leaf's own
	needsOut  bool   // v holds unknowns: ask for the one with outputs
	failed    bool
	cycle     bool
	ds        diag.List
	met       *facts
}

var cycleResult = &result{v: cty.DynamicVal, failed: true, cycle: true}

// on starts a computation for a leaf, which may be nil.
func (l *Loader) on(t *demand.Task, leaf *ev, full bool) *calc {
	return &calc{t: t, l: l, leaf: leaf, full: full}
}

func (c *calc) sub(leaf *ev, full bool) *calc {
	return &calc{t: c.t, l: c.l, leaf: leaf, full: full}
}

func (c *calc) result(v cty.Value) *result {
	return &result{v: v, needsLeaf: c.needsLeaf, needsOut: c.needsOut, failed: c.failed, ds: c.ds, met: c.met}
}

// fail notes errors and returns the placeholder.
func (c *calc) fail(ds diag.List) cty.Value {
	c.add(ds)
	return cty.DynamicVal
}

// add notes messages, each once.
func (c *calc) add(ds diag.List) {
	if len(ds) == 0 {
		return
	}
	if ds.HasErrors() {
		c.failed = true
	}
	for _, m := range ds {
		m = c.l.intern(m)
		if !slices.Contains(c.ds, m) {
			c.ds = append(c.ds, m)
		}
	}
}

func (c *calc) errorf(at *source.Range, code, summary, format string, args ...any) cty.Value {
	ds := diag.Errorf(at, summary, format, args...)
	ds[0].Code = code
	return c.fail(ds)
}

// take notes what a result met.
func (c *calc) take(r *result) {
	if r.failed {
		c.failed = true
	}
	c.needsOut = c.needsOut || r.needsOut
	c.needsLeaf = c.needsLeaf || r.needsLeaf
	c.add(r.ds)
	c.met = c.met.with(r.met)
}

// stuck reports that what comes next would be of no use.
func (c *calc) stuck() bool { return c.failed || c.needsLeaf }

// A cell is an expression of a file as computed in one evaluation.
type cell struct {
	demand.Cell[*result]
	l    *Loader
	e    *ev
	leaf *ev
	x    *xpr
	full bool
}

// Describe names the cell for reports of cycles.
func (k *cell) Describe() (string, *source.Range) {
	at := k.x.at()
	return k.e.f.nameOf(k.x), &at
}

func (k *cell) compute(t *demand.Task) (*result, diag.List) {
	c := k.l.on(t, k.leaf, k.full)
	var r *result
	switch k.x.kind {
	case wholeHead:
		h := c.buildHead(k.e)
		r = c.result(cty.DynamicVal)
		r.h = h
	case wholeConf:
		g := c.buildConf(k.e)
		r = c.result(cty.DynamicVal)
		r.g = g
	case whole:
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

func (s *cells) get(l *Loader, e, leaf *ev, x *xpr, full bool) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = make([]*cell, e.f.xprs)
	}
	k := s.set[x.id]
	if k == nil {
		k = &cell{l: l, e: e, leaf: leaf, x: x, full: full}
		k.Init(k, cycleResult, k.compute)
		s.set[x.id] = k
	}
	return k
}

// eval is the value of an expression of a file. With errors, and while the leaf
// is missing, it is unknown.
func (c *calc) eval(e *ev, x *xpr) cty.Value {
	if x.kind == constant {
		return x.v
	}
	if x.id < 0 {
		return c.raw(e, x)
	}
	at := x.at()
	r := c.cell(e, x, false, &at)
	if r.needsOut && c.full && !r.failed {
		r = c.cell(e, x, true, &at)
	}
	c.take(r)
	return r.v
}

// cell computes everybody's cell, or else the leaf's own.
func (c *calc) cell(e *ev, x *xpr, full bool, at *source.Range) *result {
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
func (e *ev) storage(l *Loader, leaf *ev, full bool) *cells {
	switch {
	case full && l != e.l:
		return l.fullCells(e, leaf)
	case leaf == e.leaf && !full:
		return &e.cells
	case leaf == e.leaf:
		return &e.fullCells
	}
	leaf.asked.mu.Lock()
	defer leaf.asked.mu.Unlock()
	k := overlayKey{e, full}
	s := leaf.asked.overlays[k]
	if s == nil {
		s = new(cells)
		if leaf.asked.overlays == nil {
			leaf.asked.overlays = map[overlayKey]*cells{}
		}
		leaf.asked.overlays[k] = s
	}
	return s
}

// overlayKey names the cells that a leaf has of another evaluation.
type overlayKey struct {
	of   *ev
	full bool
}

// facts are what a computation met. They are never changed; nil is none.
type facts struct {
	deps  []*depUse // sorted by nothing, each once
	files []string  // absolute paths, each once
	waits []*Wait   // outputs that are not known, each once
}

// depUse is one dependency block that an expression reached.
type depUse struct {
	target Target
	at     *source.Range // of the block
	label  string
	via    *ev // whose block it is
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
			out = &facts{deps: slices.Clone(f.deps), files: slices.Clone(f.files), waits: slices.Clone(f.waits)}
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
	if out == nil {
		return f
	}
	return out
}

func (c *calc) readFile(path string) {
	if c.met == nil || !slices.Contains(c.met.files, path) {
		c.met = c.met.with(&facts{files: []string{path}})
	}
}
