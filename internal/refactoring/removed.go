package refactoring

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
	order int // of several about one instance the first counts
}

// Removals are the removed blocks of a tree. The zero value holds none. They may
// be asked by many goroutines at once.
type Removals struct {
	by    map[removedPlace][]*removedStatement
	count int
}

// removedPlace is where the statements about an instance are looked for: by what
// they name and by the last keys that they give, since for_each makes many that
// differ in these alone.
type removedPlace struct {
	module   addr.Module
	resource addr.Resource // zero for a statement about a module
	key      addr.Key      // of the resource
	keyed    bool
	step     addr.Key // of the innermost module; without one all of its instances are meant
}

func (s *removedStatement) place() removedPlace {
	p := removedPlace{module: s.in.Path, resource: s.from.Resource, key: s.from.Key, keyed: s.from.HasKey}
	for _, step := range s.from.Module.Steps() {
		p.module, p.step = p.module.Child(step.Name), step.Key
	}
	return p
}

func (r *Removals) add(s *removedStatement) {
	if r.by == nil {
		r.by = map[removedPlace][]*removedStatement{}
	}
	s.order = r.count
	r.count++
	p := s.place()
	r.by[p] = append(r.by[p], s)
}

// find looks for the first statement about an instance that a test accepts.
func (r Removals) find(a addr.Instance, ok func(*removedStatement) bool) *removedStatement {
	if len(r.by) == 0 {
		return nil
	}
	var first *removedStatement
	look := func(p removedPlace) {
		for _, s := range r.by[p] {
			if (first == nil || s.order < first.order) && s.covers(a) && ok(s) {
				first = s
			}
		}
	}
	module, last := addr.Module(""), addr.Key{}
	for _, step := range a.Module.Steps() {
		module, last = module.Child(step.Name), step.Key
		for _, k := range keysOf(last) {
			look(removedPlace{module: module, step: k})
		}
	}
	for _, k := range keysOf(last) {
		look(removedPlace{module: module, resource: a.Resource, step: k})
		look(removedPlace{module: module, resource: a.Resource, key: a.Key, keyed: true, step: k})
	}
	return first
}

// keysOf are a key and what stands for all.
func keysOf(k addr.Key) []addr.Key {
	if k.Kind == addr.NoKey {
		return []addr.Key{k}
	}
	return []addr.Key{k, {}}
}

func anyStatement(*removedStatement) bool { return true }

// Of looks for a block about an instance that nothing wants; forget says that the
// object is to stay.
func (r Removals) Of(a addr.Instance) (forget, found bool) {
	s := r.find(a, anyStatement)
	return s != nil && (s.block.Destroy == nil || !*s.block.Destroy), s != nil
}

// Provisioners are the destroy provisioners that a block gives for an instance,
// and their connection.
func (r Removals) Provisioners(a addr.Instance) ([]*config.Provisioner, *config.Block) {
	if s := r.find(a, anyStatement); s != nil {
		return s.block.Provisioners, s.block.Connection
	}
	return nil, nil
}

// StillWanted refuses a block about an instance that configuration wants, at the
// given place. Blocks without for_each were held to this when they were read.
func (r Removals) StillWanted(a addr.Instance, at source.Range) diag.List {
	s := r.find(a, func(s *removedStatement) bool { return s.block.ForEach != nil })
	if s == nil {
		return nil
	}
	return diag.Errorf(&s.block.At, "Removed resource instance still exists", "This statement declares a removal of %s, but the configuration still declares that instance. Take its key out of the for_each of one of the two.", a).Note(&at, "still declared here")
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
				out.add(&removedStatement{in: n, from: t, block: b})
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
