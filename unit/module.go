package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Environment files
//
// A unit file with module blocks contains one unit for each of them (section 3 of the
// import specification). The rest of the file is evaluated once for all. Each unit is a
// leaf of its own, so paths relative to the leaf differ.

// env returns the evaluation of the file that contains a leaf.
func (e *evaluation) env() *evaluation {
	if e.of.top != nil {
		return e.of.top
	}
	return e
}

// environment returns the units of an environment file.
func (l *Loader) environment(t *demand.Task, e *evaluation) ([]*Unit, diag.List) {
	l.evaluated.Add(1)
	c := l.on(t, nil, false)
	h := c.imports(e)
	for _, i := range h.imports {
		if i.mode != noMerge {
			c.merged(i.e)
		}
	}
	c.checkEnvironment(e)
	mods := c.merged(e).member("module")
	if mods == nil {
		return nil, c.ds
	}
	names, _ := mods.keys(c)
	var out []*Unit
	for _, name := range names {
		for _, i := range c.instances(e, name) {
			out = append(out, l.moduleUnit(e, name, i))
		}
	}
	return out, c.ds
}

// instances expands a module block. It returns none if the module is disabled.
func (c *evaluator) instances(e *evaluation, name string) []instance {
	b := c.moduleBlock(e, name)
	if b == nil {
		return nil
	}
	if a := b.child(c, "enabled"); a != nil {
		v := c.static(a, cty.Bool, "enabled")
		if !syntax.Known(v) || !v.True() {
			return nil
		}
	}
	a := b.child(c, "for_each")
	if a == nil {
		return []instance{{}}
	}
	return c.expandEach(a, "module")
}

// static evaluates an argument that must be known before any unit runs.
func (c *evaluator) static(n node, ty cty.Type, name string) cty.Value {
	_, at := n.where()
	one := c.sub(c.leaf, c.full)
	v, _ := one.convert(n.value(one), ty, name, *at).Unmark()
	if !one.stuck() && name != "for_each" { // the keys of for_each are names of units
		c.redact(n, v, one.facts)
	}
	c.merge(one)
	if c.stuck() {
		return cty.NilVal
	}
	if !v.IsWhollyKnown() && ty != cty.DynamicPseudoType || !v.IsKnown() {
		c.errorf(at, diag.CodeUnitUnknown, "Unknown "+name, "%q must be known before any unit runs, so it cannot depend on the outputs of a unit.", name)
		return cty.NilVal
	}
	return v
}

// moduleBlock returns the effective module block of a name, or nil.
func (c *evaluator) moduleBlock(e *evaluation, name string) node {
	mods := c.merged(e).member("module")
	if mods == nil {
		return nil
	}
	if b := mods.child(c, name); b != nil {
		return b.open(c)
	}
	return nil
}

func moduleID(e *evaluation, name, key string, keyed bool) string {
	id := e.dir
	if base := filepath.Base(e.file().Path); base != syntax.DefaultName && base != syntax.DefaultJSONName {
		stem := strings.TrimSuffix(strings.TrimSuffix(base, ".json"), ".hcl")
		id = filepath.Join(id, stem)
	}
	id = filepath.Join(id, name)
	if keyed {
		id += "[" + addr.Quote(key) + "]"
	}
	return id
}

func (l *Loader) moduleUnit(e *evaluation, name string, i instance) *Unit {
	m := newEvaluation(l, e.file(), leafRole, e.dir)
	m.leaf, m.of.top, m.of.each, m.vals = m, e, i.each, e.vals
	u := &Unit{ID: moduleID(e, name, i.key, i.each != cty.NilVal), Dir: e.dir, Path: e.file().Path, Module: name, Key: i.key, l: l, e: m}
	m.id, m.of.mod = u.ID, &name
	for _, b := range e.file().Root.Of("module") {
		if b.Label == name {
			u.mod = b
		}
	}
	if u.mod == nil {
		u.mod = &syntax.Block{Spec: syntax.Language().Unit.Block("module"), Label: name}
	}
	u.within = e
	l.env.Redactor.Publish(u.ID)
	return u
}

// moduleName returns the unit's name in the --module flag.
func (u *Unit) moduleName() string {
	rel := strings.TrimPrefix(u.ID, u.Dir+string(filepath.Separator))
	return filepath.ToSlash(rel)
}

func (u *Unit) matches(module string) bool {
	return module != "" && (module == u.moduleName() || module == u.Module && u.Key == "" ||
		strings.HasSuffix(u.moduleName(), "/"+module))
}

// metaArgs are the arguments of a module block that are not inputs.
var metaArgs = []string{"source", "version", "depends_on", "for_each", "enabled", "inputs"}

// moduleFields returns the effective configuration of a module's unit: the arguments and
// blocks at the top of the file, with the source and inputs of the module block.
func (u *Unit) moduleFields(c *evaluator) *group {
	top := c.merged(u.e.of.top)
	g := newGroup(u.e, nil)
	for _, name := range top.names {
		if name != "module" && !slices.Contains(besideModules(), name) {
			g.put(name, top.member(name))
		}
	}
	b := c.moduleBlock(u.e.of.top, u.Module)
	if b == nil {
		return g
	}
	b = &inLeaf{b, u.e}
	tf := newGroup(b.where())
	for _, name := range [...]string{"source", "version"} {
		if n := b.child(c, name); n != nil {
			tf.put(name, n)
		}
	}
	g.put("terraform", tf)
	inputs := newGroup(b.where())
	names, _ := b.keys(c)
	for _, k := range names {
		if !slices.Contains(metaArgs, k) {
			inputs.put(k, b.child(c, k))
		}
	}
	var in node = inputs
	if more := b.child(c, "inputs"); more != nil {
		in = joinOf("inputs", more, inputs, mapsJoin(replaceJoin))
	}
	g.put("inputs", in)
	return g
}

// inLeaf evaluates the expressions of a module block for one unit, with each.* defined.
type inLeaf struct {
	node
	leaf *evaluation
}

func (n *inLeaf) child(c *evaluator, key string) node { return moveTo(n.node.child(c, key), n.leaf) }
func (n *inLeaf) open(*evaluator) node                { return n }

// moveTo moves an expression of the environment file to a leaf's evaluation.
func moveTo(n node, leaf *evaluation) node {
	if x, ok := n.(*exprNode); ok && x.e == leaf.of.top {
		return &exprNode{e: leaf, x: x.x, at: x.at}
	}
	return n
}

// besideModules returns the names of the arguments and blocks that module blocks replace.
func besideModules() []string {
	var names []string
	spec := syntax.Language().Unit
	for i := range spec.Args {
		if spec.Args[i].ByModule {
			names = append(names, spec.Args[i].Name)
		}
	}
	for _, b := range spec.Blocks {
		if b.ByModule {
			names = append(names, b.Name)
		}
	}
	return names
}

// checkEnvironment reports blocks that cannot be combined with module blocks.
func (c *evaluator) checkEnvironment(e *evaluation) {
	root := e.file().Root
	for _, name := range besideModules() {
		for _, b := range root.Of(name) {
			c.errorf(&b.At, diag.CodeUnitEnvironmentBlock, "Block beside modules", "This file holds module blocks, which take the place of %s blocks: give each module its source and arguments, and read what another gives as module.NAME.outputs.", name)
		}
	}
	for _, name := range besideModules() {
		if a := root.Attr(name); a != nil {
			c.errorf(&a.NameAt, diag.CodeUnitEnvironmentBlock, "Argument beside modules", "This file holds module blocks, which take the place of %q: write the arguments into the modules.", name)
		}
	}
	for _, b := range root.Of("module") {
		if b.Attr("source") == nil && !c.mergesModules(e) {
			c.missingArg(b.At, "source")
		}
		src, ver := b.Attr("source"), b.Attr("version")
		if src != nil && ver != nil && src.Expr.Kind == syntax.Constant && syntax.IsString(src.Expr.ConstantValue) && LocalSource(src.Expr.ConstantValue.AsString()) {
			c.errorf(&ver.At, diag.CodeUnitModuleVersion, "Version of a local module", "A module with a local source has no versions, so it cannot have a \"version\".")
		}
	}
}

func (c *evaluator) mergesModules(e *evaluation) bool {
	for _, i := range c.fileImports(e).imports {
		if i.mode != noMerge && c.merged(i.e).member("module") != nil {
			return true
		}
	}
	return false
}

// checkEnvironmentImport reports merging imports of arguments and blocks that cannot be
// combined with module blocks.
func (c *evaluator) checkEnvironmentImport(e *evaluation, i *imported, fields *group) {
	if e.file().Root.First("module") == nil {
		return
	}
	for _, name := range besideModules() {
		if n := fields.member(name); n != nil {
			at := i.at
			m := codeErr(&at, diag.CodeUnitEnvironmentImport, "Import that does not go with modules",
				"The file %s sets %q, which cannot be merged into a file with module blocks. Import it without merging and read what is needed as import.%s.%s.", i.e.file().Path, name, i.name, name)
			if _, where := n.where(); where != nil {
				m.Note(where, "%s is set here", name)
			}
			c.add(m)
		}
	}
}

// modulesNode is module.* of an environment file, or of an imported one.
func (c *evaluator) modulesNode(e *evaluation) node {
	e = e.env()
	n := &rootNode{group: newGroup(e, nil), what: "module"}
	mods := c.merged(e).member("module")
	if mods == nil {
		return n
	}
	names, _ := mods.keys(c)
	for _, name := range names {
		n.put(name, &moduleNode{e: e, name: name, b: mods.child(c, name)})
	}
	return n
}

// moduleNode is module.NAME, or one of its instances.
type moduleNode struct {
	e     *evaluation
	name  string
	b     node
	key   string
	keyed bool // an instance of a module with for_each
}

func (n *moduleNode) open(*evaluator) node                { return n }
func (n *moduleNode) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *moduleNode) where() (*evaluation, *source.Range) { return n.b.where() }
func (n *moduleNode) listed()                             {}

func (n *moduleNode) repeated(c *evaluator) bool { return !n.keyed && n.b.child(c, "for_each") != nil }

func (n *moduleNode) keys(c *evaluator) ([]string, bool) {
	if !n.repeated(c) {
		return []string{"outputs"}, true
	}
	var names []string
	for _, i := range c.instances(n.e, n.name) {
		names = append(names, i.key)
	}
	return names, true
}

func (n *moduleNode) lacks(key string) string {
	return fmt.Sprintf("The module %q has no part named %q.", n.name, key)
}

func (n *moduleNode) child(c *evaluator, key string) node {
	if n.repeated(c) {
		for _, i := range c.instances(n.e, n.name) {
			if i.key == key {
				return &moduleNode{n.e, n.name, n.b, key, true}
			}
		}
		return nil
	}
	if key != "outputs" {
		return nil
	}
	if !n.keyed && len(c.instances(n.e, n.name)) == 0 && !c.stuck() {
		_, at := n.where()
		c.errorf(at, diag.CodeUnitDisabledModule, "Disabled module", "The module %q is disabled, so it has no outputs that could be read.", n.name)
		return nil
	}
	return &moduleOutputs{n}
}

// moduleOutputs is module.NAME.outputs.
type moduleOutputs struct{ m *moduleNode }

func (n *moduleOutputs) where() (*evaluation, *source.Range) { return n.m.where() }
func (n *moduleOutputs) child(c *evaluator, key string) node { return n.open(c).child(c, key) }
func (n *moduleOutputs) keys(c *evaluator) ([]string, bool)  { return n.open(c).keys(c) }

func (n *moduleOutputs) open(c *evaluator) node {
	e, at := n.where()
	v := valueNode{n.value(c), e, at}
	if _, ok := v.keys(c); !ok || c.stuck() {
		return v
	}
	return &outputsView{v, fmt.Sprintf("The module %q", n.m.name), false}
}

func (n *moduleOutputs) id() DependencyID {
	return DependencyID(moduleID(n.m.e, n.m.name, n.m.key, n.m.keyed))
}

func (n *moduleOutputs) value(c *evaluator) cty.Value {
	id := n.id()
	e, at := n.where()
	c.facts = c.facts.withDep(&depUse{target: id, at: at, label: n.m.name, via: e})
	if !c.full {
		c.needsOut = true
		return cty.DynamicVal
	}
	v, has, ds := c.l.outputsOf(c.t, id, *at)
	c.add(ds)
	switch {
	case c.failed:
		return cty.DynamicVal
	case has:
		return v
	case c.l.env.Tolerant:
		return cty.DynamicVal
	}
	return c.errorf(at, diag.CodeUnitNoOutputs, "Module without outputs", "The module %q (%s) has no outputs. It was probably not applied yet; apply it first.", n.m.name, id)
}
