package refactoring

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
)

// removedStatement is one removed block, or one element of its for_each.
type removedStatement struct {
	in    *module.Node
	from  addr.Target
	block *config.Removed
	order int // position of the block; decides which block a message names first
}

// Removals contains the removed blocks of a module tree. The zero value is empty. It is safe
// for concurrent use.
type Removals struct {
	by    map[removedPlace][]*removedStatement
	count int
}

// removedPlace is the index key for statements about an instance. It contains the last keys,
// because for_each creates many statements that differ only in these.
type removedPlace struct {
	module   addr.Module
	resource addr.Resource // zero for a statement about a module
	key      addr.Key      // instance key of the resource
	keyed    bool
	step     addr.Key // key of the innermost module; zero means all of its instances
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

// covering returns the statements whose address covers an instance, in the order of their
// blocks.
func (r Removals) covering(a addr.Instance) []*removedStatement {
	if len(r.by) == 0 {
		return nil
	}
	var out []*removedStatement
	look := func(p removedPlace) {
		for _, s := range r.by[p] {
			if s.covers(a) {
				out = append(out, s)
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
	slices.SortFunc(out, func(x, y *removedStatement) int { return cmp.Compare(x.order, y.order) })
	return out
}

// deciding returns the statements with the most specific addresses among those that cover an
// instance. There can be several: two with the same address, or two of which neither contains
// the other, such as module.a["k"] and module.a.module.b.
func (r Removals) deciding(a addr.Instance) []*removedStatement {
	all := r.covering(a)
	if len(all) < 2 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *removedStatement) bool {
		return slices.ContainsFunc(all, func(o *removedStatement) bool { return s.contains(o) && !o.contains(s) })
	})
}

// contains reports whether a statement covers every instance that o covers. Both must cover one
// common instance, so that their names and keys agree.
func (s *removedStatement) contains(o *removedStatement) bool {
	mine, other := s.steps(), o.steps()
	if len(mine) > len(other) {
		return false
	}
	for i, step := range mine {
		if step.Key.Kind != addr.NoKey && other[i].Key.Kind == addr.NoKey {
			return false
		}
	}
	switch {
	case s.from.IsModule():
		return true
	case o.from.IsModule():
		return false
	}
	return !s.from.HasKey || o.from.HasKey
}

// destroys reports whether a block destroys its objects instead of forgetting them.
func destroys(b *config.Removed) bool { return b.Destroy != nil && *b.Destroy }

// steps returns the module path of a statement from the root. A step without a key matches
// every instance of the call.
func (s *removedStatement) steps() []addr.Step {
	var out []addr.Step
	for _, name := range s.in.Path.Calls() {
		out = append(out, addr.Step{Name: name})
	}
	return append(out, s.from.Module.Steps()...)
}

// address returns the address of a statement as seen from the root module.
func (s *removedStatement) address() string {
	if s.in.Path == "" {
		return s.from.String()
	}
	return string(s.in.Path) + "." + s.from.String()
}

// contradicts returns an error if two blocks have different instructions for objects that both
// cover.
func (s *removedStatement) contradicts(o *removedStatement) diag.List {
	if s.block == o.block {
		return nil
	}
	does := func(s *removedStatement) string {
		if destroys(s.block) {
			return "destroys"
		}
		return "keeps"
	}
	var why string
	switch {
	case destroys(s.block) != destroys(o.block):
		why = fmt.Sprintf("This block %s what it removes at %s. The block at %s %s what it removes at %s, and neither address is more specific than the other.", does(s), s.address(), o.block.At, does(o), o.address())
	case len(s.block.Provisioners) > 0 && len(o.block.Provisioners) > 0:
		why = fmt.Sprintf("This block and the block at %s both have provisioners for the objects of %s, and neither address is more specific than the other.", o.block.At, s.address())
	default:
		return nil
	}
	return diag.Errorf(diag.CodePlanRemovedConflict, &s.block.At, "Contradictory removed blocks", "%s Remove one of the blocks, or let both say the same.", why).Note(&o.block.At, "the other block")
}

// keysOf returns a key, and the zero key that matches all keys.
func keysOf(k addr.Key) []addr.Key {
	if k.Kind == addr.NoKey {
		return []addr.Key{k}
	}
	return []addr.Key{k, {}}
}

// Of returns the instruction for an instance that is not in the configuration. forget means
// that the object is not destroyed. The block with the most specific address wins, in any order
// of blocks. Contradictory blocks are an error.
func (r Removals) Of(a addr.Instance) (forget, found bool, ds diag.List) {
	list := r.deciding(a)
	if len(list) == 0 {
		return false, false, nil
	}
	for i, s := range list {
		for _, o := range list[:i] {
			if ds = s.contradicts(o); ds.HasErrors() {
				return true, true, ds
			}
		}
	}
	return !destroys(list[0].block), true, nil
}

// Provisioners returns the destroy provisioners in the block for an instance, and their
// connection. It uses the same block as Of.
func (r Removals) Provisioners(a addr.Instance) ([]*config.Provisioner, *config.Block) {
	for _, s := range r.deciding(a) {
		if len(s.block.Provisioners) > 0 {
			return s.block.Provisioners, s.block.Connection
		}
	}
	return nil, nil
}

// StillWanted returns an error for a removed block about an instance that the configuration
// declares; at is the position of the declaration. Blocks without for_each were checked when
// they were read.
func (r Removals) StillWanted(a addr.Instance, at source.Range) diag.List {
	all := r.covering(a)
	i := slices.IndexFunc(all, func(s *removedStatement) bool { return s.block.ForEach != nil })
	if i < 0 {
		return nil
	}
	return diag.Errorf(diag.CodePlanStillExists, &all[i].block.At, "Removed resource instance still exists", "This statement declares a removal of %s, but the configuration still declares that instance. Take its key out of the for_each of one of the two.", a).Note(&at, "still declared here")
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

// ReadRemovals reads and checks the removed blocks of a module tree.
func ReadRemovals(tree *module.Tree, early module.Options) (Removals, diag.List) {
	var out Removals
	var ds diag.List
	same := sameAddress{}
	tree.Walk(func(n *module.Node) {
		for _, b := range n.Config.Removed {
			add := func(ctx *hcl.EvalContext) diag.List {
				t, ds := ReadAddress(b.From, ctx)
				if ds.HasErrors() {
					return ds
				}
				s := &removedStatement{in: n, from: t, block: b}
				out.add(s)
				return append(append(ds, stillThere(n, t, b)...), same.add(s)...)
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

// sameAddress contains the statements that were read so far, by address.
type sameAddress map[string][]*removedStatement

// add returns an error if an earlier block has another instruction for the address of s.
func (x sameAddress) add(s *removedStatement) diag.List {
	a := s.address()
	for _, o := range x[a] {
		if ds := s.contradicts(o); ds.HasErrors() {
			return ds
		}
	}
	x[a] = append(x[a], s)
	return nil
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
			return diag.Errorf(diag.CodePlanStillExists, &b.At, "Removed module block still exists", "This statement declares a removal of the module %s, but this module block still exists in the configuration. Please remove the module block.", t).Note(&child.Call.At, "still declared here")
		}
		n = child
	}
	if r := n.Config.Resources[t.Resource]; r != nil && !t.HasKey {
		return diag.Errorf(diag.CodePlanStillExists, &b.At, "Removed resource block still exists", "This statement declares a removal of the resource %s, but this resource block still exists in the configuration. Please remove the resource block.", t).Note(&r.At, "still declared here")
	}
	return nil
}
