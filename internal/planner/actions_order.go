package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/state"
)

// priorDependencies is what the object of a change depended on when it was made.
func (b *actionList) priorDependencies(c *plan.Change) []addr.ConfigResource {
	if c.Before.IsNull() {
		return nil
	}
	return dependenciesIn(b.p.prior, c)
}

// laterDependencies are those that configuration has got since state was written,
// in a plan to destroy. They must not be held against those of state: together
// they may close a circle.
func (b *actionList) laterDependencies(c *plan.Change, prior []addr.ConfigResource) []addr.ConfigResource {
	if b.plan.Mode != plan.Destroy {
		return nil
	}
	now := dependenciesIn(b.plan.Prior, c)
	if slices.Equal(now, prior) {
		return nil
	}
	had := make(map[addr.ConfigResource]bool, len(prior))
	for _, r := range prior {
		had[r] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(r addr.ConfigResource) bool { return had[r] })
}

func dependenciesIn(s *state.State, c *plan.Change) []addr.ConfigResource {
	obj, _, ok := s.Object(addr.Object{Instance: c.Addr, Deposed: c.Deposed})
	if !ok {
		return nil
	}
	return obj.Dependencies
}

// finish adds the soft needs, unless they close a circle.
func (b *actionList) finish() {
	if len(b.soft) > 0 {
		plain := make(map[int][]int, len(b.soft))
		for i, more := range b.soft {
			plain[i] = b.out[i].Needs
			b.out[i].Needs = append(slices.Clone(plain[i]), more...)
		}
		if !acyclic(b.out) {
			for i, needs := range plain {
				b.out[i].Needs = needs
			}
		}
	}
	for i := range b.out {
		n := b.out[i].Needs
		if len(n) > 1 {
			slices.Sort(n)
			b.out[i].Needs = slices.Compact(n)
		}
	}
}

// acyclic reports whether the list can be carried out.
func acyclic(list []plan.Action) bool {
	waiting := make([]int, len(list))
	users := make([][]int, len(list))
	var ready []int
	for i, a := range list {
		waiting[i] = len(a.Needs)
		for _, n := range a.Needs {
			users[n] = append(users[n], i)
		}
		if len(a.Needs) == 0 {
			ready = append(ready, i)
		}
	}
	done := 0
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		for _, u := range users[i] {
			if waiting[u]--; waiting[u] == 0 {
				ready = append(ready, u)
			}
		}
	}
	return done == len(list)
}

// readResources lists the resources that a node reads, directly or through
// nodes that are no resources.
func readResources(n *demand.Node) []*eval.Resource {
	var out []*eval.Resource
	seen := map[*demand.Node]bool{n: true}
	stack := []*demand.Node{n}
	for len(stack) > 0 {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, r := range x.Reads() {
			if seen[r.Node] {
				continue
			}
			seen[r.Node] = true
			if res, ok := r.Node.What.(*eval.Resource); ok {
				out = append(out, res)
				continue
			}
			stack = append(stack, r.Node)
		}
	}
	return out
}
