package planner

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// destroyedByModule indexes the instances in state that are not wanted. It is computed on
// demand.
type destroyedByModule struct {
	once    sync.Once
	below   map[addr.ModuleInstance][]*state.Resource // resources in a module instance and below
	modules sync.Map                                  // *eval.Call to []addr.ConfigResource
}

// readsDestroyed returns the blocks that a data source refers to in its block, depends_on or
// conditions and that lose instances in this plan. The data source is read after those are
// destroyed.
func (p *planner) readsDestroyed(t *demand.Task, d *eval.Desired, conditions *demand.Node) []addr.ConfigResource {
	if p.in.Mode != plan.Normal || len(p.prior.Resources) == 0 {
		return nil
	}
	var out []addr.ConfigResource
	seen := map[*demand.Node]bool{}
	visit := func(n *demand.Node) (more bool) {
		if seen[n] {
			return false
		}
		seen[n] = true
		if r, ok := n.What.(*eval.Resource); ok {
			if in, ok := r.Instances(t); ok && p.losesInstances(t, r, in) {
				out = append(out, r.Addr().Config())
			}
			return false
		}
		if call := eval.Completed(n); call != nil {
			out = append(out, p.destroyedIn(t, call)...)
		}
		_, instance := n.What.(*eval.Desired)
		return !instance
	}
	for _, read := range append(demand.ReadsOf(t), d.Resource.CountNode().Reads()...) {
		if _, ok := read.Node.What.(*eval.Resource); ok {
			visit(read.Node)
		}
	}
	var stack []*demand.Node
	if d.Resource.HasDependsOn() {
		stack = append(stack, d.Resource.DependsOn(t))
	}
	if conditions != nil {
		stack = append(stack, conditions)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if visit(n) {
			for _, r := range n.Reads() {
				stack = append(stack, r.Node)
			}
		}
	}
	return out
}

// losesInstances reports whether this plan destroys instances of a managed resource that are no
// longer wanted.
func (p *planner) losesInstances(t *demand.Task, r *eval.Resource, in *eval.Instances) bool {
	had := p.prior.Resource(r.Addr())
	if had == nil || r.Config().Addr.Mode != addr.Managed || in.Deferred != nil {
		return false
	}
	for k := range had.Instances {
		if in.Get(k) == nil && p.willBeDestroyed(t, r.Addr().Instance(k)) {
			return true
		}
	}
	return false
}

// willBeDestroyed reports whether an instance in state is not wanted and this plan destroys it.
func (p *planner) willBeDestroyed(t *demand.Task, a addr.Instance) bool {
	if !p.scope.target(a) || !p.scope.allows(a) {
		return false
	}
	_, wanted := p.whyOrphan(t, a)
	return !wanted
}

// destroyedIn returns the blocks in a called module and in all modules below it that lose
// instances.
func (p *planner) destroyedIn(t *demand.Task, call *eval.Call) []addr.ConfigResource {
	if known, ok := p.destroyed.modules.Load(call); ok {
		return known.([]addr.ConfigResource)
	}
	p.destroyed.once.Do(func() {
		p.destroyed.below = map[addr.ModuleInstance][]*state.Resource{}
		for _, r := range p.prior.Sorted() {
			if r.Addr.Resource.Mode != addr.Managed {
				continue
			}
			path := addr.ModuleInstance("")
			for _, step := range r.Addr.Module.Steps() {
				every := path.Child(step.Name, addr.Key{}) // represents all instances of the call
				p.destroyed.below[every] = append(p.destroyed.below[every], r)
				path = path.Child(step.Name, step.Key)
			}
		}
	})
	var out []addr.ConfigResource
	for _, r := range p.destroyed.below[call.Module().Addr.Child(call.Name(), addr.Key{})] {
		for k := range r.Instances {
			if p.willBeDestroyed(t, r.Addr.Instance(k)) {
				out = append(out, r.Addr.Config())
				break
			}
		}
	}
	p.destroyed.modules.Store(call, out)
	return out
}
