package moves

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/module"
	"github.com/terrace-iac/terrace/source"
)

// removedStatement is one removed block, or one element of its for_each.
type removedStatement struct {
	in    *module.Node
	from  addr.Target
	block *config.Removed
}

// Removals are the removed blocks of a tree.
type Removals []*removedStatement

func (all Removals) find(a addr.Instance) *removedStatement {
	for _, s := range all {
		if s.covers(a) {
			return s
		}
	}
	return nil
}

// Of looks for a block about an instance that nothing wants; forget says that the
// object is to stay.
func (all Removals) Of(a addr.Instance) (forget, found bool) {
	s := all.find(a)
	return s != nil && (s.block.Destroy == nil || !*s.block.Destroy), s != nil
}

// Provisioners are the destroy provisioners that a block gives for an instance,
// and their connection.
func (all Removals) Provisioners(a addr.Instance) ([]*config.Provisioner, *config.Block) {
	if s := all.find(a); s != nil {
		return s.block.Provisioners, s.block.Connection
	}
	return nil, nil
}

// StillWanted refuses a block about an instance that configuration wants, at the
// given place. Blocks without for_each were held to this when they were read.
func (all Removals) StillWanted(a addr.Instance, at source.Range) diag.List {
	for _, s := range all {
		if s.block.ForEach != nil && s.covers(a) {
			return diag.Errorf(&s.block.At, "Removed resource instance still exists", "This statement declares a removal of %s, but configuration still wants that instance. Take its key out of the for_each of one of the two.", a).Note(&at, "still declared here")
		}
	}
	return nil
}

func (s *removedStatement) covers(a addr.Instance) bool {
	steps := a.Module.Steps()
	calls := s.in.Path.Calls()
	if len(steps) < len(calls) {
		return false
	}
	for i, name := range calls {
		if steps[i].Name != name {
			return false
		}
	}
	rel := addr.Instance{Module: addr.ModuleFromSteps(steps[len(calls):]), Resource: a.Resource, Key: a.Key}
	return s.from.Contains(rel)
}

// ReadRemovals reads the removed blocks of a tree and holds them to their rules.
func ReadRemovals(tree *module.Tree, early module.Options) (Removals, diag.List) {
	var out Removals
	var ds diag.List
	tree.Walk(func(n *module.Node) {
		for _, b := range n.Config.Removed {
			add := func(ctx *hcl.EvalContext) diag.List {
				t, ds := ReadAddress(b.From, ctx)
				if ds.HasErrors() {
					return ds
				}
				out = append(out, &removedStatement{n, t, b})
				return append(ds, stillThere(n, t, b)...)
			}
			if b.ForEach != nil {
				ds = append(ds, eachElement(n, early, b.ForEach.Expr, add)...)
			} else {
				ds = append(ds, add(nil)...)
			}
		}
	})
	return out, ds
}

func stillThere(n *module.Node, t addr.Target, b *config.Removed) diag.List {
	if t.HasKey && b.ForEach == nil || !t.IsModule() && t.Resource.Mode != addr.Managed {
		at := b.From.Range()
		return diag.Errorf(&at, "Invalid removed address", "The from address of a removed block must be a managed resource or a module, without instance keys.")
	}
	steps := t.Module.Steps()
	for i, s := range steps {
		child := n.Calls[s.Name]
		if child == nil {
			return nil
		}
		if t.IsModule() && i == len(steps)-1 {
			if b.ForEach != nil {
				return nil
			}
			return diag.Errorf(&b.At, "Removed module block still exists", "This statement declares a removal of the module %s, but this module block still exists in the configuration. Please remove the module block.", t).Note(&child.Call.At, "still declared here")
		}
		n = child
	}
	if r := n.Config.Resources[t.Resource]; r != nil && !t.HasKey {
		return diag.Errorf(&b.At, "Removed resource block still exists", "This statement declares a removal of the resource %s, but this resource block still exists in the configuration. Please remove the resource block.", t).Note(&r.At, "still declared here")
	}
	return nil
}
