// Package depgraph writes the dependency graph of a configuration, state and plan in the DOT
// language, with OpenTofu's node names.
//
// Main types: Input and Graph. The one rule: it analyses the configuration's text and evaluates
// nothing.
package depgraph

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// Type is the operation that a graph describes.
type Type string

// The types.
const (
	Plan        Type = "plan"
	RefreshOnly Type = "plan-refresh-only"
	Destroy     Type = "plan-destroy"
	Apply       Type = "apply"
)

// Input is the input from which a graph is built.
type Input struct {
	Type    Type
	Tree    *module.Tree
	State   *state.State   // for Destroy, and for the objects that Changes destroys; nil means none
	Changes []*plan.Change // for Apply
}

// kind is the kind of a node.
type kind uint8

const (
	other    kind = iota
	value         // a variable, local value or output of a module, or the repetition of a module call
	output        // of the root module
	end           // the end of a module, which depends on everything in the module
	block         // a resource block, drawn as a box
	object        // an instance of a resource, drawn as a box
	provider      // drawn as a diamond
	variable      // a root variable, drawn as a note
)

type node struct {
	kind  kind
	label string
	needs map[string]bool
}

// A Graph contains nodes by name.
type Graph struct {
	nodes map[string]*node
	typ   Type
	users map[string][]string // provider to the resources that use it
}

const (
	expand = " (expand)"
	closed = " (close)"
	report = " (report)"
)

// Make returns the graph without redundant edges.
func Make(in Input) *Graph {
	g := &Graph{nodes: map[string]*node{}, typ: in.Type, users: map[string][]string{}}
	if in.Type == Destroy {
		g.destroy(in)
	} else {
		in.Tree.Walk(func(n *module.Node) { g.module(in.Tree, n) })
		if in.Type == Apply {
			g.changes(in.Changes)
			if in.State != nil {
				g.destroyOrder(in.State)
			}
			g.prune()
		}
	}
	g.providers()
	g.root()
	g.reduce()
	return g
}

func (g *Graph) add(name string, k kind, label string) *node {
	n := g.nodes[name]
	if n == nil {
		n = &node{needs: map[string]bool{}}
		g.nodes[name] = n
	}
	if label != "" || n.label == "" {
		n.kind, n.label = k, label
	}
	return n
}

// in returns a name qualified by its module.
func in(path addr.Module, name string) string {
	if path == "" {
		return name
	}
	return string(path) + "." + name
}

// module adds the contents of a module.
func (g *Graph) module(tree *module.Tree, n *module.Node) {
	var all []string
	add := func(name string, k kind, label string) *node {
		all = append(all, in(n.Path, name))
		return g.add(in(n.Path, name), k, label)
	}
	m := n.Config
	for name, v := range m.Variables {
		ref := add("var."+name+" (expand, reference)", value, "")
		g.rules(ref, n, v.Validations)
		if n.Path == "" {
			g.add("var."+name, variable, "var."+name)
			ref.needs["var."+name] = true
			continue
		}
		ref.needs[in(n.Path, "var."+name+" (expand, input)")] = true
		add("var."+name+" (expand, input)", value, "")
	}
	for name, l := range m.Locals {
		g.setting(add("local."+name+expand, value, ""), n, l.Value)
	}
	for name, o := range m.Outputs {
		k := value
		if n.Path == "" {
			k = output
		}
		out := add("output."+name+expand, k, "")
		g.setting(out, n, o.Value)
		g.refs(out, n, o.DependsOn)
		g.rules(out, n, o.Preconditions)
	}
	for a, r := range m.Resources {
		if g.typ == Apply && a.Mode == addr.Data && r.Check == "" {
			continue // it is read while planning
		}
		name := a.String() + expand
		x := add(name, block, in(n.Path, a.String()))
		g.refs(x, n, eval.Written(r))
		g.uses(in(n.Path, name), n, r)
		if r.Check != "" && g.typ != Apply {
			x.needs[in(n.Path, "check."+r.Check+report)] = true
		}
	}
	for _, c := range m.Checks {
		x := add("check."+c.Name+expand, other, "")
		if g.typ != Apply {
			add("check."+c.Name+report, other, "")
			x.needs[in(n.Path, "check."+c.Name+report)] = true
		}
		if c.Data != nil {
			x.needs[in(n.Path, c.Data.String()+expand)] = true
		}
		g.rules(x, n, c.Asserts)
	}
	for name, child := range n.Calls {
		g.call(n, m.Calls[name], child)
		all = append(all, string(child.Path)+closed, string(child.Path)+expand)
	}
	if n.Path == "" {
		return
	}
	last, begin := g.add(string(n.Path)+closed, end, ""), string(n.Path)+expand
	g.add(begin, value, "")
	last.needs[begin] = true
	for _, name := range all {
		last.needs[name] = true
		if !strings.HasSuffix(name, report) && !strings.HasSuffix(name, closed) {
			g.nodes[name].needs[begin] = true
		}
	}
}

// call adds the arguments of a module call.
func (g *Graph) call(n *module.Node, c *config.Call, child *module.Node) {
	begin := g.add(string(child.Path)+expand, value, "")
	g.setting(begin, n, c.Repeat.Count)
	g.setting(begin, n, c.Repeat.ForEach)
	g.setting(begin, n, c.Repeat.Enabled)
	g.refs(begin, n, c.DependsOn)
	attrs, _ := c.Body.JustAttributes()
	for name := range child.Config.Variables {
		if a := attrs[name]; a != nil {
			g.refs(g.add(in(child.Path, "var."+name+" (expand, input)"), value, ""), n, a.Expr.Variables())
		}
	}
}

func (g *Graph) setting(x *node, n *module.Node, s *config.Setting) {
	if s != nil && s.Expr != nil {
		g.refs(x, n, s.Expr.Variables())
	}
}

func (g *Graph) rules(x *node, n *module.Node, rules []*config.Rule) {
	for _, r := range rules {
		for _, e := range []hcl.Expression{r.Condition, r.ErrorMessage} {
			if e != nil {
				g.refs(x, n, e.Variables())
			}
		}
	}
}

func (g *Graph) refs(x *node, n *module.Node, refs []hcl.Traversal) {
	for _, ref := range refs {
		if to := g.target(n, ref); to != "" && g.nodes[to] != x {
			x.needs[to] = true
		}
	}
}

// target returns the node that a reference refers to, or "".
func (g *Graph) target(n *module.Node, ref hcl.Traversal) string {
	name := ""
	if len(ref) > 1 {
		if a, ok := ref[1].(hcl.TraverseAttr); ok {
			name = a.Name
		}
	}
	switch ref.RootName() {
	case "var":
		if n.Config.Variables[name] != nil {
			return in(n.Path, "var."+name+" (expand, reference)")
		}
		return ""
	case "local":
		if n.Config.Locals[name] != nil {
			return in(n.Path, "local."+name+expand)
		}
		return ""
	case "module":
		child := n.Calls[name]
		if child == nil {
			return ""
		}
		for _, step := range ref[2:] {
			if a, ok := step.(hcl.TraverseAttr); ok {
				if _, declared := child.Config.Outputs[a.Name]; declared {
					return in(child.Path, "output."+a.Name+expand)
				}
				break
			}
		}
		return string(child.Path) + closed
	}
	a, ok := resourceIn(ref)
	if !ok || n.Config.Resources[a] == nil {
		return ""
	}
	return in(n.Path, a.String()+expand)
}

// resourceIn returns the resource that a reference names.
func resourceIn(ref hcl.Traversal) (addr.Resource, bool) {
	mode := addr.Managed
	switch ref.RootName() {
	case "data":
		mode, ref = addr.Data, ref[1:]
	case "ephemeral":
		mode, ref = addr.Ephemeral, ref[1:]
	case "resource":
		ref = ref[1:]
	}
	var names []string
	for _, step := range ref {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			names = append(names, s.Name)
		case hcl.TraverseAttr:
			names = append(names, s.Name)
		default:
			return addr.Resource{}, false
		}
		if len(names) == 2 {
			return addr.Resource{Mode: mode, Type: names[0], Name: names[1]}, true
		}
	}
	return addr.Resource{}, false
}

// uses records the provider of a resource.
func (g *Graph) uses(user string, n *module.Node, r *config.Resource) {
	ref := config.ProviderRef{Name: r.LocalProvider()}
	if r.Provider != nil {
		ref = *r.Provider
	}
	a, block, where, ok := eval.StaticProvider(n, ref)
	if !ok {
		return
	}
	name := a.String()
	x := g.add(name, provider, name)
	if block != nil && len(g.users[name]) == 0 {
		g.refs(x, where, config.References(block.Body))
		g.setting(x, where, block.ForEach)
	}
	g.nodes[user].needs[name] = true
	g.users[name] = append(g.users[name], user)
}

// providers adds the closing node of each provider, which depends on everything that uses the
// provider.
func (g *Graph) providers() {
	for name, users := range g.users {
		if g.nodes[name] == nil {
			continue // no user of the provider is left
		}
		last := g.add(name+closed, other, "")
		last.needs[name] = true
		for _, u := range users {
			if g.nodes[u] != nil {
				last.needs[u] = true
			}
		}
	}
}

// root adds the root node, which depends on all nodes that nothing else depends on.
func (g *Graph) root() {
	needed := map[string]bool{}
	for _, n := range g.nodes {
		for to := range n.needs {
			needed[to] = true
		}
	}
	root := &node{needs: map[string]bool{}}
	for name := range g.nodes {
		if !needed[name] {
			root.needs[name] = true
		}
	}
	g.nodes["root"] = root
}

// prune removes the nodes that an apply does not need: values and blocks that no executed or
// shown node depends on, and providers that only those use.
func (g *Graph) prune() {
	for again := true; again; {
		again = false
		users := map[string][]string{}
		for name, n := range g.nodes {
			for to := range n.needs {
				users[to] = append(users[to], name)
			}
		}
		for name, n := range g.nodes {
			prunable := n.kind == value || n.kind == block || n.kind == provider
			if prunable && !slices.ContainsFunc(users[name], func(u string) bool { return g.keeps(u, n, users) }) {
				delete(g.nodes, name)
				again = true
			}
		}
	}
}

// keeps reports whether a node that depends on n prevents its removal.
func (g *Graph) keeps(user string, n *node, users map[string][]string) bool {
	u := g.nodes[user]
	switch {
	case u == nil:
		return false
	case u.kind == output:
		return n.kind == value
	case u.kind == end:
		return n.kind == value && slices.ContainsFunc(users[user], func(name string) bool { return g.nodes[name] != nil })
	}
	return true
}

// reduce removes every edge that is implied by a longer path. It keeps all edges of cycles.
func (g *Graph) reduce() {
	for _, n := range g.nodes {
		maps.DeleteFunc(n.needs, func(to string, _ bool) bool { return g.nodes[to] == nil })
	}
	reach := make(map[string]map[string]bool, len(g.nodes))
	for name := range g.nodes {
		reach[name] = g.reachable(name)
	}
	for name, n := range g.nodes {
		for to := range n.needs {
			for via := range n.needs {
				if via != to && via != name && reach[via][to] && !reach[to][via] {
					delete(n.needs, to)
					break
				}
			}
		}
	}
}

// reachable returns the nodes that a node depends on, directly or indirectly. It contains the node
// itself if the node is part of a cycle.
func (g *Graph) reachable(name string) map[string]bool {
	out := map[string]bool{}
	for work := []string{name}; len(work) > 0; {
		n := g.nodes[work[len(work)-1]]
		work = work[:len(work)-1]
		for to := range n.needs {
			if !out[to] {
				out[to] = true
				work = append(work, to)
			}
		}
	}
	return out
}
