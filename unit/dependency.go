package unit

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// A DependencyID identifies the unit or stack that a dependency block refers to. It is the ID of a unit,
// or the directory of a stack file. See Unit.ID.
type DependencyID string

// depsNode is the effective dependency blocks of a file.
type depsNode struct {
	e   *evaluation
	raw node // nil if there are none
}

func (c *evaluator) dependencies(e *evaluation) node {
	b := e.base()
	return &depsNode{e: b, raw: c.merged(b).member("dependency")}
}

func (n *depsNode) open(*evaluator) node                { return n }
func (n *depsNode) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *depsNode) where() (*evaluation, *source.Range) { return n.e, nil }
func (n *depsNode) listed()                             {}

func (n *depsNode) keys(c *evaluator) ([]string, bool) {
	if n.raw == nil {
		return nil, true
	}
	names, _ := n.raw.keys(c)
	return names, true
}

func (n *depsNode) child(c *evaluator, key string) node {
	if n.raw == nil {
		return nil
	}
	if in := n.raw.child(c, key); in != nil {
		return c.dependency(n.e, key, in)
	}
	return nil
}

// dependency returns a dependency of the effective configuration of scope: a depNode, or an
// expandedNode with a depNode for each instance.
func (c *evaluator) dependency(scope *evaluation, label string, raw node) node {
	if x := c.expanded(raw, scope, "dependency", label, func(i *instance, b node) node {
		return &depNode{scope: scope, label: label + i.address().String(), raw: b}
	}); x != nil {
		return x
	}
	return &depNode{scope: scope, label: label, raw: raw}
}

// eachDependency calls f for each dependency in a node with dependency blocks, by label,
// with the computation in which its arguments are evaluated.
func (c *evaluator) eachDependency(scope *evaluation, deps node, f func(one *evaluator, d *depNode)) {
	o := deps.open(c)
	labels, _ := o.keys(c)
	for _, l := range labels {
		one := c.sub(c.leaf, false)
		switch n := one.dependency(scope, l, o.child(one, l)).(type) {
		case *depNode:
			f(one, n)
		case *expandedNode:
			for _, i := range n.instances(one) {
				f(one, n.of(&i).(*depNode))
			}
		}
		c.merge(one)
	}
}

func (n *depsNode) lacks(key string) string {
	text := fmt.Sprintf("There is no dependency named %q in this file.", key)
	for _, b := range n.e.file().Root.Of("import") {
		return text + fmt.Sprintf(" A dependency of a file that is imported without merging is import.%s.dependency.%s.", b.Label, key)
	}
	return text
}

// depNode is one dependency.
type depNode struct {
	scope *evaluation
	label string
	raw   node
	// refused is the reason why the block has no outputs, if the command may not use its
	// mock_outputs.
	refused string
}

func (n *depNode) open(*evaluator) node                { return n }
func (n *depNode) value(c *evaluator) cty.Value        { return objectOf(c, n) }
func (n *depNode) where() (*evaluation, *source.Range) { return n.raw.where() }

func (n *depNode) keys(c *evaluator) ([]string, bool) {
	var names []string
	if n.flag(c, "enabled", true) {
		names = append(names, "inputs")
	}
	if n.child(c, "outputs") != nil {
		names = append(names, "outputs")
	}
	return names, true
}

func (n *depNode) lacks(key string) string {
	switch {
	case key != "outputs":
		return ""
	case n.refused != "":
		return n.refused
	}
	return fmt.Sprintf("The dependency %q has no outputs, because it is disabled or skips them, and has no mock_outputs.", n.label)
}

func (n *depNode) child(c *evaluator, key string) node {
	switch key {
	case "inputs":
		return &noInputs{n}
	case "outputs":
		return n.outputs(c)
	}
	spec := syntax.Language().Unit.Block("dependency")
	if a := spec.Arg(key); a != nil {
		if in := n.raw.child(c, key); in != nil {
			return typed(in, a)
		}
	}
	return nil
}

// noInputs is dependency.X.inputs, which Terragrunt no longer supports.
type noInputs struct{ d *depNode }

func (n *noInputs) open(c *evaluator) node              { return n }
func (n *noInputs) keys(*evaluator) ([]string, bool)    { return nil, true }
func (n *noInputs) where() (*evaluation, *source.Range) { return n.d.where() }
func (n *noInputs) child(*evaluator, string) node       { return nil }
func (n *noInputs) value(*evaluator) cty.Value          { return cty.NullVal(cty.DynamicPseudoType) }

func (n *noInputs) lacks(string) string {
	return "Reading inputs from dependencies is no longer supported. To take values from a dependency, read its outputs."
}

// flag returns a boolean argument of the block, or unset if it is not set.
func (n *depNode) flag(c *evaluator, name string, unset bool) bool {
	v := n.Arg(c, name)
	if v == cty.NilVal || !syntax.Known(v) {
		return unset
	}
	return v.True()
}

// Arg returns an argument of the block, converted and without marks. It returns NilVal if
// the argument is not set.
func (n *depNode) Arg(c *evaluator, name string) cty.Value {
	in := n.raw.child(c, name)
	if in == nil {
		return cty.NilVal
	}
	was, facts := c.needsOut, c.facts
	c.needsOut, c.facts = false, nil
	v := typed(in, syntax.Language().Unit.Block("dependency").Arg(name)).value(c)
	v, _ = v.Unmark()
	if !c.stuck() {
		c.redact(in, v, c.facts)
	}
	c.facts = facts.with(c.facts)
	if c.needsOut && !v.IsWhollyKnown() && name != "mock_outputs" && !c.stuck() {
		_, at := in.where()
		c.errorf(at, diag.CodeUnitUnknownDependency, "Unknown dependency argument",
			"%q of a dependency must be known before any unit runs, so it cannot be made of the outputs of another.", name)
	}
	c.needsOut = c.needsOut || was
	if c.stuck() {
		return cty.NilVal
	}
	return v
}

// target returns the target of the dependency. ok is false after an error.
func (n *depNode) target(c *evaluator) (t DependencyID, ok bool) {
	if v := constantOf(n.raw.child(c, "config_path")); syntax.IsString(v) && v.AsString() != "" {
		return c.target(n.folder(), v.AsString()), true // it needs no conversion
	}
	v := n.Arg(c, "config_path")
	if c.stuck() {
		return "", false
	}
	_, at := n.where()
	if v == cty.NilVal {
		c.errorf(at, diag.CodeUnitMissingArgument, "Missing required argument", "The dependency %q has no \"config_path\", which says where the unit is.", n.label)
		return "", false
	}
	if !syntax.Known(v) {
		c.errorf(at, diag.CodeUnitUnknownDependency, "Unknown dependency path", "The \"config_path\" of the dependency %q must be known and cannot be null.", n.label)
		return "", false
	}
	if v.AsString() == "" {
		c.errorf(at, diag.CodeUnitUnknownDependency, "Invalid dependency path", "The \"config_path\" of the dependency %q is empty. It must be the path of the directory of another unit.", n.label)
		return "", false
	}
	return c.target(n.folder(), v.AsString()), true
}

// folder returns the directory to which a relative config_path is relative.
func (n *depNode) folder() string {
	if e, _ := n.raw.where(); e != nil {
		return e.dir
	}
	return n.scope.dir
}

// target is Loader.target, which is asked once for each path in the directory of the leaf.
func (c *evaluator) target(dir, path string) DependencyID {
	if c.leaf == nil || c.leaf.dir != dir {
		return c.l.target(dir, path)
	}
	k := &c.leaf.cache
	k.mu.Lock()
	defer k.mu.Unlock()
	id, ok := k.targets[path]
	if !ok {
		id = c.l.target(dir, path)
		if k.targets == nil {
			k.targets = map[string]DependencyID{}
		}
		k.targets[path] = id
	}
	return id
}

// target returns the ID of the unit at a path.
func (l *Loader) target(dir, path string) DependencyID {
	full := functions.AbsPath(dir, path)
	if base := filepath.Base(full); base == syntax.DefaultName || base == syntax.DefaultJSONName || base == l.env.configName() {
		full = filepath.Dir(full)
	}
	return DependencyID(full)
}

// outputs returns the outputs of the dependency, or nil if it has none.
func (n *depNode) outputs(c *evaluator) node {
	e, at := n.raw.where()
	enabled := n.flag(c, "enabled", true)
	skip := n.flag(c, "skip_outputs", false)
	if c.stuck() {
		return valueNode{cty.DynamicVal, e, at}
	}
	if !enabled || skip {
		if mocks := n.mocksWithoutOutputs(c, enabled); mocks != nil {
			return mocks
		}
		if c.stuck() {
			return valueNode{cty.DynamicVal, e, at}
		}
		if c.l.env.Rendering {
			return n.noOutputs()
		}
		return nil
	}
	return &outputsNode{d: n}
}

// outputsNode is the outputs of a dependency. They are unknown until a run needs them.
type outputsNode struct{ d *depNode }

func (n *outputsNode) where() (*evaluation, *source.Range) { return n.d.where() }
func (n *outputsNode) child(c *evaluator, key string) node { return n.open(c).child(c, key) }
func (n *outputsNode) keys(c *evaluator) ([]string, bool)  { return n.open(c).keys(c) }

func (n *outputsNode) open(c *evaluator) node {
	e, at := n.where()
	out, none := n.fetch(c)
	if none && c.l.env.Rendering && !c.stuck() {
		return n.d.noOutputs()
	}
	v := valueNode{out, e, at}
	if bare, _ := out.Unmark(); c.stuck() || !hasKeys(bare) {
		return v
	}
	return &outputsView{v, fmt.Sprintf("The dependency %q", n.d.label), false}
}

// noOutputs returns the outputs of a dependency that has none, if outputs may be missing.
// try() catches a missing output. Other expressions that use one are unknown.
func (n *depNode) noOutputs() node {
	e, at := n.where()
	return &outputsView{valueNode{cty.EmptyObjectVal, e, at}, fmt.Sprintf("The dependency %q", n.label), true}
}

// outputsView is outputs that were fetched.
type outputsView struct {
	valueNode
	who  string
	none bool // the dependency has no outputs at all, so that a missing one needs no warning
}

func (n *outputsView) open(*evaluator) node { return n }

func (n *outputsView) lacks(key string) string {
	return fmt.Sprintf("%s has no output named %q. Its module declares none, was not applied since it does, or has null for it, which state does not keep.", n.who, key)
}

func (n *outputsNode) value(c *evaluator) cty.Value {
	v, _ := n.fetch(c)
	return v
}

// without reports whether the dependency has neither outputs nor mock outputs.
func (n *outputsNode) without(c *evaluator) bool {
	_, none := n.fetch(c)
	return none && !c.stuck()
}

// fetch returns the outputs, or the mock outputs. none is true if there are neither.
func (n *outputsNode) fetch(c *evaluator) (v cty.Value, none bool) {
	target, ok := n.d.target(c)
	if !ok {
		return cty.DynamicVal, false
	}
	e, at := n.where()
	c.facts = c.facts.withDep(&depUse{target: target, at: at, label: n.d.label, via: e})
	c.mustExist(target, n.d.label, at)
	if !c.full || c.failed {
		c.needsOut = true
		return cty.DynamicVal, false
	}
	v, has, ds := c.l.outputsOf(c.t, target, *at)
	if c.l.changes != nil && c.l.differ(c.t, target) {
		c.note()
	}
	c.add(ds)
	if c.failed {
		return cty.DynamicVal, false
	}
	return n.d.withMocks(c, v, has), !has && n.d.Arg(c, "mock_outputs") == cty.NilVal
}

func (f *facts) withDep(d *depUse) *facts {
	if f != nil && slices.ContainsFunc(f.deps, func(h *depUse) bool { return *h == *d }) {
		return f
	}
	return f.with(&facts{deps: []*depUse{d}})
}

// outputCell holds the outputs of one target.
type outputCell struct {
	demand.Cell[*outputResult]
	target DependencyID
	at     source.Range
	differ atomic.Int32 // whether the outputs differ in the other version: 0 not known, 1 no, 2 yes
}

type outputResult struct {
	v   cty.Value
	has bool
	ds  diag.List
}

func (k *outputCell) Describe() (string, *source.Range) {
	return "the outputs of " + string(k.target), &k.at
}

// outputsOf fetches the outputs of a target, at most once.
func (l *Loader) outputsOf(t *demand.Task, target DependencyID, at source.Range) (cty.Value, bool, diag.List) {
	if l.env.Outputs == nil {
		return cty.DynamicVal, false, nil
	}
	l.mu.Lock()
	k := l.outputs[string(target)]
	if k == nil {
		k = &outputCell{target: target, at: at}
		k.Init(k, outputCycle, func(t *demand.Task) (*outputResult, diag.List) {
			v, has, ds := l.env.Outputs(t, string(target), at)
			if ds.HasErrors() {
				demand.Passing(t) // the store may succeed at the next attempt
			}
			if v == cty.NilVal {
				v = cty.DynamicVal
			}
			return &outputResult{value.WithoutDeprecations(v), has, ds}, nil
		})
		l.outputs[string(target)] = k
	}
	l.mu.Unlock()
	r, _ := k.Get(t, &at)
	if r == outputCycle {
		return r.v, false, diag.Errorf(diag.CodeUnitDependencyCycle, &k.at, "Circular dependency", "The outputs of %s are needed to compute the outputs of %s.", target, target)
	}
	return r.v, r.has, r.ds
}

// differ reports whether the outputs of a target, which outputsOf has fetched, may differ in the other version
// of the files.
func (l *Loader) differ(t *demand.Task, target DependencyID) bool {
	if l.outputsDiffer == nil {
		return true
	}
	l.mu.Lock()
	k := l.outputs[string(target)]
	l.mu.Unlock()
	if k == nil {
		return true
	}
	if known := k.differ.Load(); known != 0 {
		return known == 2
	}
	if !l.outputsDiffer(t.Context(), string(target)) {
		k.differ.Store(1)
		return false
	}
	k.differ.Store(2)
	return true
}

// outputCycle is the result for outputs that are needed to compute themselves.
var outputCycle = &outputResult{v: cty.DynamicVal}
