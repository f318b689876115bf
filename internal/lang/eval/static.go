package eval

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/module"
)

// Dependents is the graph of references between resource blocks, direct or through variables,
// locals, outputs and module calls. It is computed from text without evaluation. It determines
// which objects -exclude omits.
type Dependents struct {
	users map[addr.ConfigResource][]addr.ConfigResource
	all   []addr.ConfigResource
}

// Resources returns all resource blocks of the tree.
func (d *Dependents) Resources() []addr.ConfigResource { return d.all }

// Dependents returns the blocks that refer to a block.
func (d *Dependents) Dependents(r addr.ConfigResource) []addr.ConfigResource { return d.users[r] }

// Dependencies returns a function that returns the blocks to which a block refers.
func (d *Dependents) Dependencies() func(addr.ConfigResource) []addr.ConfigResource {
	used := make(map[addr.ConfigResource][]addr.ConfigResource, len(d.users))
	for _, r := range d.all {
		for _, user := range d.users[r] {
			used[user] = append(used[user], r)
		}
	}
	return func(r addr.ConfigResource) []addr.ConfigResource { return used[r] }
}

// thing is an object of a module to which expressions can refer.
type thing struct {
	path addr.Module
	kind string // "var", "local", "output", "call", "resource", "provider"
	name string
	res  addr.Resource
}

type staticGraph struct {
	reads map[thing][]thing
}

// StaticDependents collects the references of a whole tree.
func StaticDependents(tree *module.Tree) *Dependents {
	g := &staticGraph{reads: map[thing][]thing{}}
	out := &Dependents{users: map[addr.ConfigResource][]addr.ConfigResource{}}
	tree.Walk(func(n *module.Node) {
		g.node(n)
		for a := range n.Config.Resources {
			out.all = append(out.all, n.Path.Resource(a))
		}
	})
	slices.SortFunc(out.all, func(a, b addr.ConfigResource) int {
		if a.Module != b.Module {
			return slices.Compare([]string{string(a.Module)}, []string{string(b.Module)})
		}
		return a.Resource.Compare(b.Resource)
	})
	for _, r := range out.all {
		for _, used := range g.resources(thing{path: r.Module, kind: "resource", res: r.Resource}) {
			out.users[used] = append(out.users[used], r)
		}
	}
	return out
}

// resources follows reads from a resource to the next resources.
func (g *staticGraph) resources(from thing) []addr.ConfigResource {
	var out []addr.ConfigResource
	seen := map[thing]bool{from: true}
	stack := slices.Clone(g.reads[from])
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[x] {
			continue
		}
		seen[x] = true
		if x.kind == "resource" {
			out = append(out, x.path.Resource(x.res))
			continue
		}
		stack = append(stack, g.reads[x]...)
	}
	return out
}

func (g *staticGraph) add(from thing, n *module.Node, refs []hcl.Traversal) {
	for _, ref := range refs {
		g.reads[from] = append(g.reads[from], g.refer(n, ref)...)
	}
}

func (g *staticGraph) expr(from thing, n *module.Node, x hcl.Expression) {
	if x != nil {
		g.add(from, n, x.Variables())
	}
}

func (g *staticGraph) setting(from thing, n *module.Node, s *config.Setting) {
	if s != nil {
		g.expr(from, n, s.Expr)
	}
}

func (g *staticGraph) refer(n *module.Node, ref hcl.Traversal) []thing {
	name := ""
	if len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok {
			name = a.Name
		}
	}
	switch ref.RootName() {
	case "var", "local":
		return []thing{{path: n.Path, kind: ref.RootName(), name: name}}
	case "module":
		child := n.Calls[name]
		if child == nil {
			return nil
		}
		for _, step := range ref[2:] {
			if a, ok := step.(hcl.TraverseAttr); ok {
				if _, declared := child.Config.Outputs[a.Name]; declared {
					return []thing{{path: child.Path, kind: "output", name: a.Name}}
				}
				break
			}
		}
		return []thing{{path: n.Path, kind: "call", name: name}}
	case "path", "terraform", "tofu", "each", "count", "self":
		return nil
	}
	if a, _, ok := resourceOf(ref); ok {
		return []thing{{path: n.Path, kind: "resource", res: a}}
	}
	return nil
}

func (g *staticGraph) node(n *module.Node) {
	for name, l := range n.Config.Locals {
		g.setting(thing{path: n.Path, kind: "local", name: name}, n, l.Value)
	}
	for name, o := range n.Config.Outputs {
		from := thing{path: n.Path, kind: "output", name: name}
		g.setting(from, n, o.Value)
		g.add(from, n, o.DependsOn)
		g.rules(from, n, o.Preconditions)
		g.reads[from] = append(g.reads[from], thing{path: n.Path, kind: "gate"})
	}
	for name, child := range n.Calls {
		call := thing{path: n.Path, kind: "call", name: name}
		for out := range child.Config.Outputs {
			g.reads[call] = append(g.reads[call], thing{path: child.Path, kind: "output", name: out})
		}
		for r, cfg := range child.Config.Resources {
			if cfg.Check == "" { // see Call.finish
				g.reads[call] = append(g.reads[call], thing{path: child.Path, kind: "resource", res: r})
			}
		}
		for sub := range child.Calls {
			g.reads[call] = append(g.reads[call], thing{path: child.Path, kind: "call", name: sub})
		}
		cfg := n.Config.Calls[name]
		attrs, _ := cfg.Body.JustAttributes()
		for v := range child.Config.Variables {
			if a := attrs[v]; a != nil {
				given := thing{path: child.Path, kind: "var", name: v}
				g.expr(given, n, a.Expr)
				g.reads[call] = append(g.reads[call], given)
			}
		}
		// The count, for_each and depends_on of a call apply to everything in the called
		// module.
		gate := thing{path: child.Path, kind: "gate"}
		g.setting(gate, n, cfg.Repeat.Count)
		g.setting(gate, n, cfg.Repeat.ForEach)
		g.setting(gate, n, cfg.Repeat.Enabled)
		g.add(gate, n, cfg.DependsOn)
		g.reads[gate] = append(g.reads[gate], thing{path: n.Path, kind: "gate"})
	}
	blocks := slices.Collect(maps.Keys(n.Config.Resources))
	reads := parallel.Map(len(blocks), 0, func(i int) []thing {
		out := []thing{{path: n.Path, kind: "gate"}}
		for _, ref := range Written(n.Config.Resources[blocks[i]]) {
			out = append(out, g.refer(n, ref)...)
		}
		return out
	})
	for i, a := range blocks {
		from := thing{path: n.Path, kind: "resource", res: a}
		g.reads[from] = append(g.reads[from], reads[i]...)
		g.provider(from, n, n.Config.Resources[a])
	}
}

// Written returns the references in the text of a resource block.
func Written(r *config.Resource) []hcl.Traversal {
	refs := slices.Concat(r.DependsOn, config.References(r.Body))
	for _, s := range []*config.Setting{r.Repeat.Count, r.Repeat.ForEach, r.Repeat.Enabled} {
		if s != nil && s.Expr != nil {
			refs = append(refs, s.Expr.Variables()...)
		}
	}
	for _, rule := range slices.Concat(r.Pre, r.Post) {
		for _, x := range []hcl.Expression{rule.Condition, rule.ErrorMessage} {
			if x != nil {
				refs = append(refs, x.Variables()...)
			}
		}
	}
	for _, ref := range provisionRefs(r) {
		refs = append(refs, ref.Traversal)
	}
	for _, x := range r.Lifecycle.ReplaceTriggeredBy {
		refs = append(refs, x.Variables()...)
	}
	return refs
}

// AddedDependsOn returns the objects in depends_on of a resource block without those to which its arguments
// refer anyway, each once, sorted. Like the lint rule about unused dependencies, it only counts references
// to resources, from managed resources: depends_on of a data source delays the read, and depends_on of a
// module call waits for more than one output. It counts none in a block that an override file changes, as
// the file may replace the reference.
func AddedDependsOn(r *config.Resource) []string {
	if r.Addr.Mode != addr.Managed || r.Merged != nil {
		return added(dependsOn(r))
	}
	return added(dependsOn(r), append(config.References(r.Body), repeats(r.Repeat)...)...)
}

// AddedDependsOnOfOutput is AddedDependsOn for an output.
func AddedDependsOnOfOutput(o *config.Output) []string {
	var refs []hcl.Traversal
	if o.Value != nil && o.Merged == nil {
		refs = o.Value.Expr.Variables()
	}
	return added(o.DependsOn, refs...)
}

// AddedDependsOnOfCall is AddedDependsOn for the call of a module, whose depends_on is a dependency of all
// objects in the module. Of its arguments, only count and for_each are that, too. They delay no data source.
// child is nil if the module is not installed.
func AddedDependsOnOfCall(c *config.Call, child *config.Node) []string {
	if child == nil || c.Merged != nil || readsData(child) {
		return added(c.DependsOn)
	}
	return added(c.DependsOn, repeats(c.Repeat)...)
}

// readsData reports whether a module, or a module that it calls, has data sources.
func readsData(n *config.Node) (found bool) {
	n.Walk(func(n *config.Node) {
		for a := range n.Config.Resources {
			found = found || a.Mode == addr.Data
		}
	})
	return found
}

// repeats returns the references in count and for_each.
func repeats(r config.Repeat) (refs []hcl.Traversal) {
	for _, s := range []*config.Setting{r.Count, r.ForEach} {
		if s != nil && s.Expr != nil {
			refs = append(refs, s.Expr.Variables()...)
		}
	}
	return refs
}

// added returns the objects to which depends_on refers without the resources to which refs refer, each once,
// sorted.
func added(dependsOn []hcl.Traversal, refs ...hcl.Traversal) (out []string) {
	refers := map[addr.Resource]bool{}
	for _, ref := range refs {
		if a, _, ok := resourceOf(ref); ok {
			refers[a] = true
		}
	}
	for _, ref := range dependsOn {
		a, _, ok := resourceOf(ref)
		switch {
		case !ok || ref.RootName() == "module":
			out = append(out, addr.Text(ref))
		case !refers[a]:
			out = append(out, a.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (g *staticGraph) rules(from thing, n *module.Node, rules []*config.Rule) {
	for _, r := range rules {
		g.expr(from, n, r.Condition)
		g.expr(from, n, r.ErrorMessage)
	}
}

// provider adds the reads of the resource's provider configuration.
func (g *staticGraph) provider(from thing, n *module.Node, r *config.Resource) {
	ref := config.ProviderRef{Name: r.LocalProvider()}
	if r.Provider != nil {
		ref = *r.Provider
	}
	b, ds := Bind(n, ref)
	if ds.HasErrors() || b.cfg == nil {
		return
	}
	p := thing{path: b.node.Path, kind: "provider", name: b.cfg.Key()}
	if _, done := g.reads[p]; !done {
		g.reads[p] = nil
		g.add(p, b.node, config.References(b.cfg.Body))
	}
	g.reads[from] = append(g.reads[from], p)
}

// StaticOutputs returns a function that returns the resource blocks to which a root output
// refers, according to the text.
func StaticOutputs(tree *module.Tree) func(name string) []addr.ConfigResource {
	of := StaticModuleOutputs(tree)
	return func(name string) []addr.ConfigResource { return of("", name) }
}

// StaticModuleOutputs is like StaticOutputs for the outputs of any module.
func StaticModuleOutputs(tree *module.Tree) func(m addr.Module, name string) []addr.ConfigResource {
	g := &staticGraph{reads: map[thing][]thing{}}
	tree.Walk(g.node)
	return func(m addr.Module, name string) []addr.ConfigResource {
		return g.resources(thing{path: m, kind: "output", name: name})
	}
}

// ModuleOutput is an output of a called module.
type ModuleOutput struct {
	Module addr.Module
	Name   string
}

// StaticReadOutputs returns the outputs of called modules that a plan with targets or
// exclusions reads, according to the text. With targets these are the outputs to which the
// targets refer, directly or indirectly, and those to which planned root outputs refer. The
// outputs of a targeted module do not count by themselves. With exclusions these are the
// outputs to which root outputs or resource blocks refer, except those that depend on something
// excluded.
func StaticReadOutputs(tree *module.Tree, targets, excludes []addr.Target, planned []string) map[ModuleOutput]bool {
	g := &staticGraph{reads: map[thing][]thing{}}
	var blocks, outputs []thing
	tree.Walk(func(n *module.Node) {
		g.node(n)
		for a := range n.Config.Resources {
			blocks = append(blocks, thing{path: n.Path, kind: "resource", res: a})
		}
		for name := range n.Config.Outputs {
			outputs = append(outputs, thing{path: n.Path, kind: "output", name: name})
		}
	})
	closure := func(stack []thing, next map[thing][]thing) map[thing]bool {
		seen := map[thing]bool{}
		for len(stack) > 0 {
			x := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !seen[x] {
				seen[x] = true
				stack = append(stack, next[x]...)
			}
		}
		return seen
	}
	covered := func(all []thing, by []addr.Target) []thing {
		return slices.DeleteFunc(slices.Clone(all), func(x thing) bool {
			return !slices.ContainsFunc(by, func(t addr.Target) bool {
				return t.ContainsConfig(x.path.Resource(x.res))
			})
		})
	}
	var from []thing
	if len(targets) > 0 {
		from = covered(blocks, targets)
		for _, name := range planned {
			from = append(from, thing{kind: "output", name: name})
		}
	} else {
		users := map[thing][]thing{}
		for by, reads := range g.reads {
			for _, x := range reads {
				users[x] = append(users[x], by)
			}
		}
		dropped := closure(covered(blocks, excludes), users)
		from = slices.DeleteFunc(slices.Concat(blocks, outputs), func(x thing) bool {
			return dropped[x] || x.kind == "output" && x.path != ""
		})
	}
	out := map[ModuleOutput]bool{}
	for x := range closure(from, g.reads) {
		if x.kind == "output" {
			out[ModuleOutput{x.path, x.name}] = true
		}
	}
	return out
}

// StaticProvider returns the provider configuration to which a reference in a module refers,
// according to the text, with its block and module. The block is nil if there is none. ok is
// false if the reference is invalid.
func StaticProvider(n *module.Node, ref config.ProviderRef) (a addr.ProviderConfig, block *config.Provider, in *module.Node, ok bool) {
	b, ds := Bind(n, ref)
	if ds.HasErrors() {
		return a, nil, nil, false
	}
	a = addr.ProviderConfig{Module: b.node.Path, Provider: b.src}
	if b.cfg != nil {
		a.Alias = b.cfg.Alias
	}
	return a, b.cfg, b.node, true
}
