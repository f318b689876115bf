// Package relevantattrs finds the attributes that contributed to the changes of a plan.
//
// Main function: Attributes. The one rule: it analyses the configuration's text and the plan,
// and needs nothing from providers but schemas.
package relevantattrs

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// The relevant attributes of a plan contributed to its changes. They are found by following the
// references in the arguments of every changed object and in every changed output, through
// locals, variables and outputs of modules, down to attributes of resources. If a reference is
// longer than the named value (local.x.y), the whole value is followed. A reference to a whole
// resource is followed to the references in its arguments; a reference to one argument is
// followed to the references in that argument.
//
// Outputs of called modules are not compared with earlier values. All that are planned and not
// null count as changes. A plan to destroy plans none of them. A plan with targets plans those
// that the targets and planned outputs refer to. A plan with exclusions plans those that
// something not excluded refers to.
//
// A plan to destroy also removes the data sources in state, although it does not list them.

// attribute is one relevant attribute as text, so that duplicates are found.
type attribute struct{ resource, path string }

// follower follows references. It follows each named value of a module instance once.
type follower struct {
	schemas Schemas
	found   map[attribute]plan.RelevantAttr
	names   []attribute
	done    map[place]bool
	bodies  References
	queue   []step
	outputs bool                       // outputs of called modules count as changes
	read    map[eval.ModuleOutput]bool // outputs of called modules that count; nil means all
}

// place is a named value of a module instance: "local.x", "var.y", an output or a module call.
type place struct {
	module addr.ModuleInstance
	what   string
}

// step is a reference to follow.
type step struct {
	node   *module.Node
	module addr.ModuleInstance
	ref    hcl.Traversal
	each   *config.Resource // the block of each.key, each.value and count.index; nil if there is none
}

// Schemas returns the schema of a resource type; nil if it is not known.
type Schemas interface {
	Resource(p addr.Provider, mode addr.Mode, typ string) *schema.Resource
}

// References contains the references in the arguments of resource blocks.
type References map[*config.Resource][]hcl.Traversal

// Attributes returns the attributes that contributed to the changes of a plan, sorted by
// resource. known contains references that were computed before; it may be nil.
func Attributes(p *plan.Plan, tree *module.Tree, schemas Schemas, known References) []plan.RelevantAttr {
	if known == nil {
		known = References{}
	}
	f := &follower{
		schemas: schemas, found: map[attribute]plan.RelevantAttr{}, done: map[place]bool{},
		bodies: known, outputs: p.Mode != plan.Destroy,
	}
	if len(p.Targets)+len(p.Excludes) > 0 {
		var planned []string
		for _, o := range p.Outputs {
			if !o.Left {
				planned = append(planned, o.Name)
			}
		}
		f.read = eval.StaticReadOutputs(tree, p.Targets, p.Excludes, planned)
	}
	f.changes(p, tree)
	for _, o := range p.Outputs {
		if d := tree.Root.Config.Outputs[o.Name]; d != nil && o.Op != plan.NoOp {
			f.output(tree.Root, addr.ModuleInstance(""), d)
		}
	}
	f.follow()
	out := make([]plan.RelevantAttr, 0, len(f.found))
	slices.SortFunc(f.names, func(a, b attribute) int {
		if n := strings.Compare(a.resource, b.resource); n != 0 {
			return n
		}
		return strings.Compare(a.path, b.path)
	})
	for _, name := range f.names {
		out = append(out, f.found[name])
	}
	return out
}

// changes adds the changed objects and the outputs of called modules as starting points.
func (f *follower) changes(p *plan.Plan, tree *module.Tree) {
	nodes := map[addr.ModuleInstance]*module.Node{"": tree.Root}
	seen := map[addr.AbsResource]bool{}
	for _, c := range p.Changes {
		n := f.module(nodes, c.Addr.Module)
		if n == nil || c.Op == plan.NoOp || seen[c.Addr.Abs()] {
			continue
		}
		seen[c.Addr.Abs()] = true
		if r := n.Config.Resources[c.Addr.Resource]; r != nil {
			for _, ref := range f.body(n, r) {
				f.queue = append(f.queue, step{n, c.Addr.Module, ref, r})
			}
		}
	}
	if !f.outputs {
		f.data(p, nodes)
		return
	}
	for _, m := range p.Modules {
		f.called(nodes, m)
	}
}

// data adds the data sources in state as starting points.
func (f *follower) data(p *plan.Plan, nodes map[addr.ModuleInstance]*module.Node) {
	if p.PrevRun == nil {
		return
	}
	goes := func(r *state.Resource) bool {
		return slices.ContainsFunc(r.Keys(), func(k addr.Key) bool {
			covers := func(t addr.Target) bool { return t.Contains(r.Addr.Instance(k)) }
			return (len(p.Targets) == 0 || slices.ContainsFunc(p.Targets, covers)) && !slices.ContainsFunc(p.Excludes, covers)
		})
	}
	for _, s := range p.PrevRun.Sorted() {
		n := f.module(nodes, s.Addr.Module)
		if n == nil || s.Addr.Resource.Mode != addr.Data || !goes(s) {
			continue
		}
		if r := n.Config.Resources[s.Addr.Resource]; r != nil {
			for _, ref := range f.body(n, r) {
				f.queue = append(f.queue, step{n, s.Addr.Module, ref, r})
			}
		}
	}
}

// called adds the outputs of an instance of a called module as starting points.
func (f *follower) called(nodes map[addr.ModuleInstance]*module.Node, m plan.CalledModule) {
	n := f.module(nodes, m.Addr)
	if n == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.Config.Outputs)) {
		if !slices.Contains(m.Null, name) && (f.read == nil || f.read[eval.ModuleOutput{Module: n.Path, Name: name}]) {
			f.output(n, m.Addr, n.Config.Outputs[name])
		}
	}
}

// module returns the node of a module instance, or nil if it no longer exists.
func (f *follower) module(nodes map[addr.ModuleInstance]*module.Node, m addr.ModuleInstance) *module.Node {
	n, ok := nodes[m]
	if ok {
		return n
	}
	if parent, last, ok := m.Parent(); ok {
		if above := f.module(nodes, parent); above != nil {
			n = above.Calls[last.Name]
		}
	}
	nodes[m] = n
	return n
}

// body returns the references in the arguments of a resource block.
func (f *follower) body(n *module.Node, r *config.Resource) []hcl.Traversal {
	if _, ok := f.bodies[r]; !ok && f.schemas != nil {
		if s := f.schemas.Resource(n.Config.Source(r.LocalProvider()), r.Addr.Mode, r.Addr.Type); s != nil {
			f.bodies[r] = bodyReferences(r.Body, s.Block)
		}
	}
	return f.bodies[r]
}

func bodyReferences(body hcl.Body, b *schema.Block) (refs []hcl.Traversal) {
	compiled, _ := lang.CompileBody(body, b) // planning reported the errors
	compiled.Exprs(func(x *lang.Expr) { refs = append(refs, x.Variables()...) })
	return refs
}

func (f *follower) follow() {
	for len(f.queue) > 0 {
		s := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		f.reference(s)
	}
}

// first reports whether a named value is visited for the first time.
func (f *follower) first(m addr.ModuleInstance, what string) bool {
	at := place{m, what}
	if f.done[at] {
		return false
	}
	f.done[at] = true
	return true
}

func (f *follower) expression(n *module.Node, m addr.ModuleInstance, x hcl.Expression) {
	for _, ref := range x.Variables() {
		f.queue = append(f.queue, step{node: n, module: m, ref: ref})
	}
}

func (f *follower) output(n *module.Node, m addr.ModuleInstance, o *config.Output) {
	if o.Value != nil && f.first(m, "output."+o.Name) {
		f.expression(n, m, o.Value.Expr)
	}
}

func (f *follower) reference(s step) {
	subject, resource := Subject(s.ref)
	if subject == 0 {
		return
	}
	switch s.ref.RootName() {
	case "path", "terraform", "tofu", "self":
	case "count":
		f.repeat(s, func(r config.Repeat) *config.Setting { return r.Count })
	case "each":
		f.repeat(s, func(r config.Repeat) *config.Setting { return r.ForEach })
	case "local":
		name := nameAt(s.ref, 1)
		if l := s.node.Config.Locals[name]; l != nil && f.first(s.module, "local."+name) {
			f.expression(s.node, s.module, l.Value.Expr)
		}
	case "var":
		f.variable(s, nameAt(s.ref, 1))
	case "module":
		f.call(s)
	default:
		f.resource(s, subject, resource)
	}
}

// repeat follows the expression that creates the instances of a resource, such as count.
func (f *follower) repeat(s step, from func(config.Repeat) *config.Setting) {
	if s.each == nil {
		return
	}
	if x := from(s.each.Repeat); x != nil {
		f.expression(s.node, s.module, x.Expr)
	}
}

// variable follows an argument of the module's call.
func (f *follower) variable(s step, name string) {
	parent, _, ok := s.module.Parent()
	if !ok || s.node.Call == nil || !f.first(s.module, "var."+name) {
		return
	}
	if x := argument(s.node.Call.Body, name); x != nil {
		f.expression(s.node.Parent, parent, x)
	}
}

// call follows a reference to a module: to one output or to all.
func (f *follower) call(s step) {
	name, at, key := nameAt(s.ref, 1), 2, addr.Key{}
	n := s.node.Calls[name]
	if n == nil {
		return
	}
	if c := s.node.Config.Calls[name]; isIndex(s.ref, at) && (c == nil || c.Repeat.Count != nil || c.Repeat.ForEach != nil) { // otherwise an index selects an output
		key, at = keyAt(s.ref, at), at+1
	}
	m := s.module.Child(name, key)
	output := nameAt(s.ref, at)
	if isIndex(s.ref, at) { // module.m["x"] for a module without repetition
		output = keyAt(s.ref, at).Str
	}
	if o := n.Config.Outputs[output]; o != nil {
		f.output(n, m, o)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.Config.Outputs)) {
		f.output(n, m, n.Config.Outputs[name])
	}
}

// resource adds an attribute of a resource.
func (f *follower) resource(s step, subject, resource int) {
	names := s.ref[:resource]
	a := addr.Resource{Mode: addr.Managed}
	switch s.ref.RootName() {
	case "data":
		a.Mode = addr.Data
	case "ephemeral":
		a.Mode = addr.Ephemeral
	}
	if resource == 3 {
		a.Type, a.Name = nameAt(names, 1), nameAt(names, 2)
	} else {
		a.Type, a.Name = names.RootName(), nameAt(names, 1)
	}
	r := s.node.Config.Resources[a]
	if r == nil {
		return // usually the iterator of a dynamic block
	}
	i := addr.Instance{Module: s.module, Resource: a}
	if subject > resource {
		i.Key = keyAt(s.ref, resource)
	}
	attr := plan.RelevantAttr{Resource: i, Path: pathOf(s.ref[subject:])}
	k := attribute{i.String(), addr.Text(s.ref[subject:])}
	if _, ok := f.found[k]; !ok {
		f.found[k] = attr
		f.names = append(f.names, k)
	}
	if len(attr.Path) == 0 {
		if f.first(s.module, a.String()) {
			for _, ref := range f.body(s.node, r) {
				f.queue = append(f.queue, step{s.node, s.module, ref, r})
			}
		}
		return
	}
	name := nameAt(s.ref, subject)
	if x := argument(r.Body, name); x != nil && f.first(s.module, a.String()+"."+name) {
		for _, ref := range x.Variables() {
			f.queue = append(f.queue, step{s.node, s.module, ref, r})
		}
	}
}

// argument returns the expression for an input in a module call.
func argument(body hcl.Body, name string) hcl.Expression {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return nil
	}
	return content.Attributes[name].Expr
}

// nameAt returns the name at step i of a traversal; "" if the step is not a name.
func nameAt(t hcl.Traversal, i int) string {
	if i < len(t) {
		if a, ok := t[i].(hcl.TraverseAttr); ok {
			return a.Name
		}
	}
	return ""
}

// keyAt returns the instance key at step i of a traversal.
func keyAt(t hcl.Traversal, i int) addr.Key {
	x, _ := t[i].(hcl.TraverseIndex)
	k, _ := addr.KeyFromValue(x.Key)
	return k
}

// pathOf returns the path that consists of the steps of a traversal.
func pathOf(t hcl.Traversal) (p cty.Path) {
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseAttr:
			p = p.GetAttr(s.Name)
		case hcl.TraverseIndex:
			p = p.Index(s.Key)
		}
	}
	return p
}

// Subject returns how many steps of a traversal name an object, and for a resource instance how
// many name its resource. Both are 0 if the traversal is not a reference.
func Subject(t hcl.Traversal) (subject, resource int) {
	if len(t) == 0 || t.IsRelative() {
		return 0, 0
	}
	names := 0
	switch t.RootName() {
	case "var", "local", "each", "count", "path", "terraform", "tofu":
		names = 2
	case "self":
		return 1, 0
	case "module":
		if len(t) < 2 {
			return 0, 0
		}
		if isIndex(t, 2) {
			return 3, 0
		}
		return 2, 0
	case "data", "ephemeral", "resource":
		resource = 3
	default:
		resource = 2
	}
	if names > 0 {
		if len(t) < names {
			return 0, 0
		}
		return names, 0
	}
	if len(t) < resource {
		return 0, 0
	}
	if isIndex(t, resource) {
		return resource + 1, resource
	}
	return resource, resource
}

func isIndex(t hcl.Traversal, i int) bool {
	if i >= len(t) {
		return false
	}
	_, ok := t[i].(hcl.TraverseIndex)
	return ok
}
