package depgraph

import (
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

const destroyed = " (destroy)"

// destroy adds the objects in state, each deleted after everything that depends on it. It marks
// the values that are not evaluated any more.
func (g *Graph) destroy(from Input) {
	from.Tree.Walk(func(n *module.Node) {
		if n.Path != "" {
			g.add(string(n.Path)+closed, end, "")
			if up := parent(n.Path); up != "" {
				g.add(string(up)+closed, end, "").needs[string(n.Path)+closed] = true
			}
			return
		}
		for name := range n.Config.Variables {
			g.add("var."+name, variable, "var."+name)
		}
		for name := range n.Config.Outputs {
			g.add("output."+name+expand, output, "")
		}
	})
	if from.State == nil {
		return
	}
	for a, r := range from.State.Resources {
		for key, i := range r.Instances {
			if i.Current != nil {
				name := a.Instance(key).String() + destroyed
				g.provided(name, r.Provider, g.add(name, object, a.Config().String()))
			}
		}
	}
	g.destroyOrder(from.State)
}

// destroyOrder makes each destroyed object wait for the destroyed objects that depend on it.
func (g *Graph) destroyOrder(s *state.State) {
	byConfig := map[addr.ConfigResource][]string{}
	each := func(f func(name string, c addr.ConfigResource, o *state.Object)) {
		for a, r := range s.Resources {
			for key, i := range r.Instances {
				if name := a.Instance(key).String() + destroyed; i.Current != nil && g.nodes[name] != nil {
					f(name, a.Config(), i.Current)
				}
			}
		}
	}
	each(func(name string, c addr.ConfigResource, _ *state.Object) { byConfig[c] = append(byConfig[c], name) })
	each(func(name string, _ addr.ConfigResource, o *state.Object) {
		for _, dep := range o.Dependencies {
			for _, of := range byConfig[dep] {
				g.nodes[of].needs[name] = true
			}
		}
	})
}

func parent(m addr.Module) addr.Module {
	calls := m.Calls()
	if len(calls) < 2 {
		return ""
	}
	return addr.Module("module." + strings.Join(calls[:len(calls)-1], ".module."))
}

// changes adds the instances that a plan changes, next to their blocks.
func (g *Graph) changes(all []*plan.Change) {
	for _, c := range all {
		if c.Op == plan.NoOp || c.Op == plan.Read || c.Op == plan.Forget {
			continue
		}
		block := c.Addr.Abs().Config().String() + expand
		label := c.Addr.Abs().Config().String()
		x := g.nodes[block]
		if c.Op == plan.Delete || c.Op.IsReplace() {
			gone := g.add(c.Addr.String()+destroyed, object, label)
			g.provided(c.Addr.String()+destroyed, c.Provider, gone)
		}
		if c.Op == plan.Delete || x == nil {
			continue
		}
		name := c.Addr.String()
		made := g.add(name, object, label)
		for to := range x.needs {
			made.needs[to] = true
		}
		if string(c.Addr.Module) == string(c.Addr.Abs().Config().Module) {
			made.needs[block] = true
		}
		if c.Op.IsReplace() {
			made.needs[name+destroyed] = true
		}
		g.provided(name, c.Provider, made)
		for other, n := range g.nodes {
			if n.needs[block] && other != name && n.label != label {
				n.needs[name] = true
			}
		}
	}
}

// provided records the provider of an object.
func (g *Graph) provided(name string, p addr.ProviderConfig, n *node) {
	p.Key = addr.Key{}
	g.add(p.String(), provider, p.String())
	n.needs[p.String()] = true
	g.users[p.String()] = append(g.users[p.String()], name)
}
