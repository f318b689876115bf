package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// An Edge is a dependency of a unit on another unit.
type Edge struct {
	ID    string        // of the other unit, or the directory of a stack
	Label string        // of the dependency block; "" for the dependencies block
	At    *source.Range // of the block
	// Used reports whether an expression that a run needs reads the outputs.
	Used bool
}

// Dependencies returns the units that this unit depends on (rule 16 of the import
// specification). These are the targets of its own and merged dependency and dependencies
// blocks. A dependency of a file that is imported without merging counts if an expression
// in use reaches it. wanted reports whether an input is in use, that is, declared by the
// module; nil means that all are. No outputs are fetched.
func (u *Unit) Dependencies(t *demand.Task, wanted func(name string) bool) ([]Edge, diag.List) {
	c := u.on(t, false)
	used := u.used(c, wanted)
	w := &edgeList{u: u, used: map[string]bool{}}
	for _, d := range used {
		w.used[string(d.target)] = true
	}
	parts := []func(*evaluator, *edgeList){u.blockEdges, u.pathEdges}
	if u.mod != nil {
		parts = slices.Insert(parts, 0, u.dependsOn)
	}
	for _, part := range parts { // an error in one part does not hide those of the others
		one := c.sub(u.e, false)
		part(one, w)
		c.merge(one)
	}
	for _, d := range used {
		w.add(string(d.target), d.label, d.at)
	}
	w.dropSelf(c)
	return w.edges, c.ds
}

const selfDependency = diag.CodeUnitSelfDependency

type edgeList struct {
	u     *Unit
	used  map[string]bool
	edges []Edge
}

func (w *edgeList) add(id, label string, at *source.Range) {
	for i := range w.edges {
		if w.edges[i].ID == id {
			return
		}
	}
	if at != nil { // a pointer into the parsed file would keep its block in memory
		own := *at
		at = &own
	}
	w.edges = append(w.edges, Edge{ID: id, Label: label, At: at, Used: w.used[id]})
}

// dropSelf removes an edge to the unit itself if no expression in use needs it.
func (w *edgeList) dropSelf(c *evaluator) {
	w.edges = slices.DeleteFunc(w.edges, func(e Edge) bool {
		if e.ID != w.u.ID {
			return false
		}
		if e.Used {
			through := ""
			if e.At != nil && e.At.Filename != w.u.Path {
				through = " It came in through " + w.u.through(c, e.At.Filename) + "."
			}
			c.errorf(e.At, selfDependency, "Unit depends on itself", "The dependency %q leads back to this unit (%s), and what it reads is in use.%s", e.Label, e.ID, through)
		}
		return true
	})
}

// through returns the name of the import that imported a file.
func (u *Unit) through(c *evaluator, path string) string {
	h := c.fileImports(u.e.env())
	for _, i := range h.imports {
		if i.e.file().Path == path || u.leadsTo(c, i.e, path, 0) {
			return fmt.Sprintf("the import %q at %s", i.name, i.at)
		}
	}
	for _, i := range h.includes {
		if i.e.file().Path == path {
			return fmt.Sprintf("the include block %q at %s", i.label, i.at)
		}
	}
	return path
}

func (u *Unit) leadsTo(c *evaluator, e *evaluation, path string, depth int) bool {
	if depth > 100 {
		return false
	}
	return slices.ContainsFunc(c.fileImports(e).imports, func(i *imported) bool {
		return i.e.file().Path == path || u.leadsTo(c, i.e, path, depth+1)
	})
}

// used returns the dependencies that expressions needed by a run reach.
func (u *Unit) used(c *evaluator, wanted func(name string) bool) []*depUse {
	in := c.sub(u.e, false)
	u.touchInputs(in, wanted)
	fields := u.fields(in)
	one := in.sub(u.e, false) // of one block after the other
	for _, name := range fields.names {
		if b := syntax.Language().Unit.Block(name); name == "inputs" || b != nil && b.OnDemand {
			continue
		}
		*one = evaluator{t: in.t, l: in.l, leaf: u.e, parent: in}
		touch(one, fields.member(name))
		in.merge(one)
	}
	c.merge(in)
	if in.facts == nil {
		return nil
	}
	return in.facts.deps
}

// blockEdges adds the targets of the dependency blocks.
func (u *Unit) blockEdges(c *evaluator, w *edgeList) {
	n := u.field(c, "dependency")
	if n == nil {
		return
	}
	c.eachDependency(u.e, n, func(one *evaluator, d *depNode) {
		if d.flag(one, "enabled", true) {
			if target, ok := d.target(one); ok {
				_, at := d.where()
				if !d.flag(one, "skip_outputs", false) {
					one.mustExist(target, d.label, at)
				}
				w.add(string(target), d.label, at)
			}
		}
		one.facts = nil // reading the path of a dependency is not a use of it
	})
}

// pathEdges adds the paths of the dependencies block.
func (u *Unit) pathEdges(c *evaluator, w *edgeList) {
	n := u.field(c, "dependencies")
	if n == nil {
		return
	}
	paths := n.child(c, "paths")
	if paths == nil {
		c.incomplete(n, syntax.Language().Unit.Block("dependencies"), "paths", "")
		return
	}
	at := placeOf(paths)
	one := c.sub(u.e, false) // errors elsewhere do not affect the paths
	v, _ := one.convert(paths.value(one), syntax.TStrings, "paths", *at).Unmark()
	if !one.stuck() {
		c.redact(paths, v, one.facts)
	}
	c.merge(one)
	if one.stuck() || v.IsNull() {
		return
	}
	if !v.IsWhollyKnown() {
		c.errorf(at, diag.CodeUnitUnknownDependency, "Unknown dependency path", "The \"paths\" of dependencies must be known before any unit runs.")
		return
	}
	for _, p := range v.AsValueSlice() {
		p, _ = p.Unmark()
		switch {
		case p.IsNull():
			c.errorf(at, diag.CodeUnitUnknownDependency, "Invalid dependency path", "The \"paths\" of dependencies contain null. Each must be the path of the directory of another unit.")
		case p.AsString() == "":
			c.errorf(at, diag.CodeUnitUnknownDependency, "Invalid dependency path", "The \"paths\" of dependencies contain an empty text. Each must be the path of the directory of another unit.")
		default:
			target := u.l.target(u.e.dir, p.AsString())
			c.mustExist(target, "", at)
			w.add(string(target), "", at)
		}
	}
}

// dependsOn adds the modules that a module block names in depends_on.
func (u *Unit) dependsOn(c *evaluator, w *edgeList) {
	b := c.moduleBlock(u.e.of.top, u.Module)
	if b == nil {
		return
	}
	n, _ := b.child(c, "depends_on").(*exprNode)
	if n == nil {
		return
	}
	for _, ref := range syntax.RefsOf(n.x) {
		at := ref.SourceRange()
		name := ""
		if ref.RootName() == "module" && len(ref) > 1 {
			name, _ = syntax.StepName(ref[1])
		}
		instances := c.instances(u.e.of.top, name)
		if name == "" || c.moduleBlock(u.e.of.top, name) == nil {
			c.errorf(&at, diag.CodeUnitDependsOn, "Invalid depends_on", "Each entry of depends_on must be a module of this file, as in module.vpc.")
			continue
		}
		for _, i := range instances {
			w.add(moduleID(u.e.of.top, name, i.key, i.each != cty.NilVal), name, &at)
		}
	}
}

// Files returns the files, other than the unit's own, that its configuration depends on:
// imports (transitively), includes, and files that functions read or mark as read. It
// evaluates everything that the unit declares, without outputs. The files of a local module
// are not included.
func (u *Unit) Files(t *demand.Task) ([]string, diag.List) {
	c := u.on(t, false)
	u.everything(c)
	var visit func(e *evaluation, depth int)
	visit = func(e *evaluation, depth int) {
		for _, i := range c.fileImports(e).imports {
			if depth < 1000 {
				c.readFile(i.e.file().Path)
				visit(i.e, depth+1)
			}
		}
	}
	if !c.failed {
		visit(u.e.env(), 0)
	}
	if c.facts == nil {
		return nil, c.ds
	}
	files := slices.Clone(c.facts.files)
	slices.Sort(files)
	return files, c.ds
}

// everything computes everything that the unit declares.
func (u *Unit) everything(c *evaluator) {
	top := u.e.env()
	u.everyLocal(c, top)
	for _, i := range u.headOf(c).fileImports(top).includes {
		u.everyLocal(c, i.e)
	}
	u.touchInputs(c, nil)
	fields := u.fields(c)
	for _, name := range fields.names {
		if name == "inputs" || name == "module" {
			continue
		}
		one := c.sub(u.e, c.full)
		if name == "dependency" {
			one.eachDependency(u.e, fields.member(name), func(one *evaluator, d *depNode) { touch(one, d.raw) })
		} else {
			touch(one, fields.member(name))
		}
		c.merge(one)
	}
	c.merge(u.headOf(c))
}

// everyLocal computes the local values of a file.
func (u *Unit) everyLocal(c *evaluator, e *evaluation) {
	b := e.file().Root.First("locals")
	if b == nil {
		return
	}
	if e.changes.Locals() {
		c.note()
	}
	for _, a := range b.Attrs {
		one := c.sub(u.e, c.full)
		one.eval(e, a.Expr)
		c.merge(one)
	}
}

func (u *Unit) headOf(c *evaluator) *evaluator {
	one := c.sub(u.e, false)
	one.imports(u.e.env())
	return one
}

// mustExist reports a dependency on a path that does not exist. label is that of its block, or ""
// for a path of the dependencies block.
func (c *evaluator) mustExist(target DependencyID, label string, at *source.Range) {
	path := string(target)
	if c.l.disk.Exists(path) {
		return
	}
	for _, name := range [...]string{syntax.DefaultName, syntax.DefaultJSONName} {
		if c.l.disk.Exists(filepath.Join(filepath.Dir(path), name)) && c.l.moduleExists(filepath.Join(filepath.Dir(path), name), filepath.Base(path)) {
			return
		}
	}
	ds := diag.Errorf(diag.CodeUnitDependencyNotFound, at, "Dependency not found", "There is no directory or file %s that could be depended on.", path)
	ds[0].Code, ds[0].Extra = diag.CodeUnitDependencyNotFound, NotFound{path, label}
	c.fail(ds)
}

// NotFound is the Extra of a message about a dependency on a path that does not exist.
type NotFound struct {
	Path  string
	Label string // of the dependency block; "" for a path of the dependencies block
}

// moduleExists reports whether an environment file contains a module.
func (l *Loader) moduleExists(path, name string) bool {
	name, _, _ = strings.Cut(name, "[")
	f := l.file(path, syntax.Language().Unit)
	return slices.ContainsFunc(f.Root.Of("module"), func(b *syntax.Block) bool { return b.Label == name })
}
