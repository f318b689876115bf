package unit

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A role is what a file is to the evaluation.
type role uint8

const (
	leafRole    role = iota // a unit
	importRole              // imported: its own folder, once for all
	readRole                // read by read_terragrunt_config: likewise
	includeRole             // included: evaluated as if it stood in the includer's folder
	autoRole                // the autoinclude file beside a unit
	valuesRole              // the values file beside a file
	stackRole               // a stack file
)

// An ev is the evaluation of one file in one role.
type ev struct {
	l         *Loader
	f         *file
	role      role
	dir       string // what get_terragrunt_dir() says
	leaf      *ev    // the unit that this belongs to; nil if it belongs to all
	child     *ev    // for includeRole and autoRole: the file that this one is included by
	label     string // for includeRole: the label of the include block
	cells     cells  // without outputs
	fullCells cells  // with the outputs that the loader it was made by gets

	id   string    // of a leaf: the unit's ID
	top  *ev       // of a module's unit: the evaluation of the environment file
	mod  *string   // of a module's unit: the module's name
	each cty.Value // of a module's unit: each.*; NilVal without for_each
	// placed is the same leaf as it is seen while its working folder is looked for,
	// where get_working_dir() is empty; nil until somebody asks for it, and of itself.
	placed  *ev
	placing bool // this is such an evaluation

	acyclic  atomic.Bool  // no circle of imports can be reached
	circle   atomic.Value // diag.List of the circle that can be reached
	vals     func() *ev   // the evaluation of the values file; nil if there is none
	overMu   sync.Mutex
	overlays map[overlayKey]*cells // of a leaf: its own cells of evaluations that belong to all
}

func newEv(l *Loader, f *file, r role, dir string) *ev {
	e := &ev{l: l, f: f, role: r, dir: dir}
	e.vals = sync.OnceValue(func() *ev { return l.valuesOf(e) })
	return e
}

// beforePlaced is a leaf as it is seen while its working folder is looked for.
func (e *ev) beforePlaced() *ev {
	e.overMu.Lock()
	defer e.overMu.Unlock()
	if e.placed == nil {
		n := newEv(e.l, e.f, e.role, e.dir)
		n.leaf, n.id, n.top, n.mod, n.each, n.vals, n.placing = n, e.id, e.top, e.mod, e.each, e.vals, true
		e.placed = n
	}
	return e.placed
}

// base is the evaluation whose merged blocks are in force for this file: its
// own, or the includer's.
func (e *ev) base() *ev {
	e = e.env()
	for e.child != nil {
		e = e.child
	}
	return e
}

// included makes the evaluation of a file that e includes.
func (e *ev) included(f *file, label string, r role) *ev {
	in := newEv(e.l, f, r, e.dir)
	in.leaf, in.child, in.label, in.vals = e.leaf, e, label, e.vals
	return in
}

// A head is what a file takes from others: its imports and includes.
type head struct {
	imports  []*imported
	includes []*included
	auto     *ev // the autoinclude file's evaluation, or nil
}

type mode uint8

const (
	noMerge mode = iota
	shallow
	deep
)

type imported struct {
	name string
	at   source.Range // of the block
	e    *ev
	mode mode
}

type included struct {
	label  string
	bare   bool
	at     source.Range
	e      *ev
	mode   mode
	expose bool
	path   string // as written
}

func (h *head) importOf(name string) *imported {
	for _, i := range h.imports {
		if i.name == name {
			return i
		}
	}
	return nil
}

// Pseudo expressions: parts of an evaluation that are cells but no expressions.
const (
	wholePart = iota // the file as one object
	headPart
	confPart
	parts
)

func (e *ev) part(which int) *xpr { return &e.f.pseudo[which] }

// head reads the imports and includes of a file, which come before all else.
func (c *calc) head(e *ev) *head {
	r := c.cellOf(e, headPart)
	if r.h == nil {
		return &head{}
	}
	return r.h
}

// cellOf takes one of the pseudo cells.
func (c *calc) cellOf(e *ev, which int) *result {
	x := e.part(which)
	r := c.cell(e, x, false, nil)
	if r.needsOut && c.full && !r.failed {
		r = c.cell(e, x, true, nil)
	}
	c.take(r)
	return r
}

func (c *calc) buildHead(e *ev) *head {
	h := &head{}
	if e.role == valuesRole {
		return h
	}
	root := e.f.root
	imps, incs := root.of("import"), root.of("include")
	c.checkHead(e, imps, incs)
	for _, b := range imps {
		if i := c.importBlock(e, b); i != nil {
			h.imports = append(h.imports, i)
		}
	}
	for _, b := range incs {
		if i := c.includeBlock(e, b); i != nil {
			h.includes = append(h.includes, i)
		}
	}
	if e.role == leafRole {
		path := filepath.Join(e.dir, AutoIncludeName)
		if c.l.exists(path) {
			c.readFile(path)
			f := c.l.file(path, languageTable().auto)
			c.add(f.ds)
			if f.root != nil {
				h.auto = e.included(f, "", autoRole)
			}
		}
	}
	return h
}

// checkHead holds the rules on which blocks may stand together.
func (c *calc) checkHead(e *ev, imps, incs []*block) {
	if len(imps) > 0 && e.role == includeRole {
		c.errorf(&imps[0].at, "unit/import-in-included", "Import in an included file",
			"This file is included by %s. An included file is evaluated as a part of the file that includes it, so it cannot import others. Move the import to the including file, or import this file instead of including it.", e.child.f.path)
	}
	if len(imps) > 0 && len(incs) > 0 {
		at, other := incs[0].at, imps[0].at
		if at.Start.Byte < other.Start.Byte {
			at, other = other, at
		}
		c.errorf(&at, "unit/import-and-include", "Import and include in one file",
			"A file either imports or includes others, not both; the other kind stands at %s. Turn the include blocks into import blocks.", other)
	}
	if e.role == includeRole && len(incs) > 0 {
		c.errorf(&incs[0].at, "unit/include-levels", "Too many levels of inclusion",
			"This file is included by %s, and an included file cannot include others. Use import blocks, which can be chained.", e.child.f.path)
	}
	bare := 0
	for _, b := range incs {
		if !b.labeled {
			if bare++; bare > 1 {
				c.errorf(&b.at, "unit/bare-include", "Several include blocks without label",
					"Only one include block may stand without a label. Give each of them a name.")
			}
		}
	}
	for _, b := range imps {
		if !hclsyntax.ValidIdentifier(b.label) {
			c.errorf(&b.labelAt, "unit/import-name", "Invalid import name",
				"The name of an import must be an identifier: letters, digits, underscores and dashes, not beginning with a digit.")
		}
	}
}

// early checks that an argument of an import or include block needs nothing
// that is read later.
func (c *calc) early(b *block, a *attr) bool {
	ok := true
	a.x.eachRef(func(ref hcl.Traversal) {
		root := ref.RootName()
		if root == "values" || !ok {
			return
		}
		switch root {
		case "local", "import", "include", "dependency", "feature", "module":
			at := ref.SourceRange()
			ok = false
			c.errorf(&at, "unit/early-reference", "Reference too early",
				"The %s block reads %s, but %ss are read first, before anything else in the file. Their arguments may only use functions and values.", b.spec.name, refText(ref), b.spec.name)
		}
	})
	return ok
}

// headArg evaluates an argument of an import or include block.
func (c *calc) headArg(e *ev, b *block, name string) cty.Value {
	a := b.attr(name)
	if a == nil {
		spec := b.spec.arg(name)
		if spec.required {
			c.missingArg(b.at, name)
		}
		return cty.NullVal(spec.ty)
	}
	if !c.early(b, a) {
		return cty.UnknownVal(b.spec.arg(name).ty)
	}
	v := c.convert(c.eval(e, a.x), b.spec.arg(name).ty, name, a.x.at())
	v, _ = v.Unmark()
	return v
}

func (c *calc) missingArg(at source.Range, name string) {
	c.errorf(&at, "unit/missing-argument", "Missing required argument", "The argument %q is required, but no definition was found.", name)
}

func known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }

func (c *calc) importBlock(e *ev, b *block) *imported {
	path := c.headArg(e, b, "config_path")
	merge, deepMerge := c.headArg(e, b, "merge"), c.headArg(e, b, "deep_merge")
	if c.stuck() || !known(path) {
		if a := b.attr("config_path"); a != nil && !c.stuck() {
			at := a.x.at()
			c.errorf(&at, "unit/import-path", "Invalid import path", "The path of an imported file must be known and cannot be null.")
		}
		return nil
	}
	i := &imported{name: b.label, at: b.at}
	isTrue := func(v cty.Value) bool { return known(v) && v.True() }
	switch {
	case isTrue(merge) && isTrue(deepMerge):
		c.errorf(&b.at, "unit/import-modes", "Two ways of merging", "An import can have merge or deep_merge, not both.")
		return nil
	case isTrue(merge):
		i.mode = shallow
	case isTrue(deepMerge):
		i.mode = deep
	}
	at := b.attr("config_path").x.at()
	full, ok := c.configAt(path.AsString(), e.f.dir, &at, "Imported file not found")
	if !ok {
		return nil
	}
	if filepath.Base(full) == StackName {
		c.errorf(&at, "unit/import-stack", "Import of a stack file", "%s is a stack file, which holds nothing that could be imported.", full)
		return nil
	}
	i.e = c.l.shared(full, importRole)
	c.readFile(i.e.f.path)
	c.add(i.e.f.ds)
	if i.e.f.root == nil {
		return nil
	}
	return i
}

// configAt finds the file that a path means: a folder means the unit file in it.
func (c *calc) configAt(path, dir string, at *source.Range, summary string) (string, bool) {
	full := absPath(dir, path)
	if full == "" || path == "" {
		c.errorf(at, "unit/empty-path", summary, "The path is empty.")
		return "", false
	}
	if c.l.isDir(full) {
		name := c.l.unitFile(full)
		if name == "" {
			c.errorf(at, "unit/file-not-found", summary, "There is no %s in the folder %s.", c.l.env.configName(), full)
			return "", false
		}
		return name, true
	}
	if !c.l.exists(full) {
		c.errorf(at, "unit/file-not-found", summary, "There is no file %s. Relative paths count from %s.", full, dir)
		return "", false
	}
	return full, true
}

func (c *calc) includeBlock(e *ev, b *block) *included {
	path := c.headArg(e, b, "path")
	expose, strategy := c.headArg(e, b, "expose"), c.headArg(e, b, "merge_strategy")
	if c.stuck() || !known(path) {
		if a := b.attr("path"); a != nil && !c.stuck() {
			at := a.x.at()
			c.errorf(&at, "unit/include-path", "Invalid include path", "The path of an included file must be known and cannot be null.")
		}
		return nil
	}
	i := &included{label: b.label, bare: !b.labeled, at: b.at, mode: shallow, path: path.AsString()}
	i.expose = known(expose) && expose.True()
	if known(strategy) {
		switch strategy.AsString() {
		case "shallow", "":
		case "no_merge":
			i.mode = noMerge
		case "deep":
			i.mode = deep
		default:
			at := b.attr("merge_strategy").x.at()
			c.errorf(&at, "unit/merge-strategy", "Unknown merge strategy", "%q is no way of merging an included file. The ways are no_merge, shallow and deep.", strategy.AsString())
			return nil
		}
	}
	at := b.attr("path").x.at()
	full := absPath(e.dir, path.AsString())
	if path.AsString() == "" || !c.l.exists(full) || c.l.isDir(full) {
		c.errorf(&at, "unit/file-not-found", "Included file not found", "There is no file %s. Relative paths count from %s.", full, e.dir)
		return nil
	}
	f := c.l.file(full, languageTable().unit)
	c.readFile(full)
	c.add(f.ds)
	if f.root == nil {
		return nil
	}
	i.e = e.included(f, b.label, includeRole)
	return i
}

// absPath makes a path absolute and clean: relative ones count from dir.
func absPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// imports is the head of a file after the check that its imports form no circle.
func (c *calc) imports(e *ev) *head {
	h := c.head(e)
	if len(h.imports) == 0 || e.acyclic.Load() {
		return h
	}
	if ds, ok := e.circle.Load().(diag.List); ok {
		c.add(ds)
		return &head{includes: h.includes, auto: h.auto}
	}
	w := &circleFinder{c: c, on: map[*ev]int{}}
	if w.visit(e) {
		return h
	}
	if len(w.ds) > 0 {
		e.circle.CompareAndSwap(nil, w.ds)
		ds := e.circle.Load().(diag.List)
		c.add(ds)
	}
	return &head{includes: h.includes, auto: h.auto}
}

// circleFinder follows imports in depth. Files are told apart by their path
// with links resolved.
type circleFinder struct {
	c     *calc
	on    map[*ev]int
	steps []circleStep
	ds    diag.List
}

type circleStep struct {
	e  *ev
	at source.Range // of the import that leads on
}

func (w *circleFinder) visit(e *ev) bool {
	if e.acyclic.Load() {
		return true
	}
	id := w.c.l.identity(e.f.path)
	for i, s := range w.steps {
		if w.c.l.identity(s.e.f.path) == id {
			w.report(w.steps[i:])
			return false
		}
	}
	h := w.c.head(e)
	for _, i := range h.imports {
		w.steps = append(w.steps, circleStep{e, i.at})
		ok := w.visit(i.e)
		w.steps = w.steps[:len(w.steps)-1]
		if !ok {
			return false
		}
	}
	if !w.c.stuck() {
		e.acyclic.Store(true)
	}
	return true
}

// report tells the circle, beginning with the first file in alphabetical order.
func (w *circleFinder) report(steps []circleStep) {
	first := 0
	for i, s := range steps {
		if s.e.f.path < steps[first].e.f.path {
			first = i
		}
	}
	steps = slices.Concat(steps[first:], steps[:first])
	at := steps[0].at
	m := &diag.Message{Code: "unit/import-cycle", Summary: "Circular import", At: &at}
	var names []string
	for i, s := range steps {
		names = append(names, s.e.f.path)
		next := steps[(i+1)%len(steps)].e.f.path
		place := s.at
		m.Notes = append(m.Notes, diag.Note{Text: s.e.f.path + " imports " + next, At: &place})
	}
	names = append(names, steps[0].e.f.path)
	if len(steps) == 1 {
		m.Detail = "The file " + names[0] + " imports itself. Remove the import block."
	} else {
		m.Detail = "These files import one another in a circle: " + strings.Join(names, " → ") + ". Imports go one way only; remove one of them."
	}
	w.ds = diag.List{m}
}

// cycleAt reports that an expression needs its own value.
func (e *ev) cycleAt(x *xpr) *result {
	return &result{v: cty.DynamicVal, failed: true, cycle: true, ds: diag.List{e.f.cycle(e, x)}}
}
