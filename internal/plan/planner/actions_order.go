package planner

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// priorDependencies returns the stored dependencies of the object of a change.
func (b *actionList) priorDependencies(c *plan.Change) []addr.ConfigResource {
	if c.Before.IsNull() {
		return nil
	}
	return dependenciesIn(b.p.prior, c)
}

// laterDependencies returns, in a plan to destroy, the dependencies in the configuration that
// the stored object does not have. They are separate from the stored ones, because both
// together may close a cycle.
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

// finish adds the soft needs that are not on a cycle.
func (b *actionList) finish() {
	if len(b.soft) > 0 {
		plain := make(map[int][]int, len(b.soft))
		for i, more := range b.soft {
			plain[i] = b.out[i].Needs
			b.out[i].Needs = append(slices.Clone(plain[i]), more...)
		}
		if !acyclic(b.out) {
			b.breakCycles(plain)
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

// breakCycles removes the soft needs within a strongly connected component. If a join is in the
// component, the need is replaced by those of its members that are outside.
func (b *actionList) breakCycles(plain map[int][]int) {
	knot := cycles(b.out)
	outside := map[int]int{} // per join: one member outside its component; -1 if there is none
	rest := func(join int) int {
		i, known := outside[join]
		if !known {
			i = -1
			other := slices.DeleteFunc(slices.Clone(b.out[join].Needs), func(n int) bool { return knot[n] == knot[join] })
			if len(other) > 0 {
				i = b.add(plan.StepJoin, -1, other...)
			}
			outside[join] = i
		}
		return i
	}
	for _, i := range slices.Sorted(maps.Keys(plain)) {
		needs := plain[i]
		for _, n := range b.soft[i] {
			if knot[n] == knot[i] {
				if b.out[n].Kind != plan.StepJoin {
					continue
				}
				if n = rest(n); n < 0 {
					continue
				}
			}
			needs = append(needs[:len(needs):len(needs)], n)
		}
		b.out[i].Needs = needs
	}
}

// cycles numbers the strongly connected components: two actions have the same number if each
// needs the other, directly or indirectly. It uses Tarjan's algorithm.
func cycles(list []plan.Action) []int {
	type visit struct{ action, next int }
	knot, low := make([]int, len(list)), make([]int, len(list)) // low is 0 before the first visit
	count, found := 0, 0
	var open []int // visited actions that have no component yet
	for start := range list {
		if low[start] != 0 {
			continue
		}
		var path []visit
		enter := func(i int) {
			count++
			low[i], knot[i] = count, -1-count // the negative visit order until the component is known
			open, path = append(open, i), append(path, visit{i, 0})
		}
		enter(start)
		for len(path) > 0 {
			at := &path[len(path)-1]
			i := at.action
			if at.next < len(list[i].Needs) {
				n := list[i].Needs[at.next]
				at.next++
				switch {
				case low[n] == 0:
					enter(n)
				case knot[n] < 0:
					low[i] = min(low[i], -1-knot[n])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].action
				low[up] = min(low[up], low[i])
			}
			if low[i] != -1-knot[i] {
				continue
			}
			for member := -1; member != i; {
				member = open[len(open)-1]
				open = open[:len(open)-1]
				knot[member] = found
			}
			found++
		}
	}
	return knot
}

// acyclic reports whether the needs have no cycle, so that the list can be carried out.
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

// readResources returns the resources that a node reads, directly or through nodes that are not
// resources.
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
