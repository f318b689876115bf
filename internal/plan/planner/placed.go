package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// placed is a resource block in one module instance. Dependencies in state contain blocks
// without module instances. Two blocks depend on each other within the same instances of their
// common modules.
type placed struct {
	block  addr.ConfigResource
	module addr.ModuleInstance
}

// places indexes the module instances in which each block has objects.
type places struct {
	in     map[addr.ConfigResource][]addr.ModuleInstance
	shared map[sharing][]addr.ModuleInstance
	done   map[addr.ConfigResource]map[int]bool
}

// sharing identifies the part of a module path that a block has in common with another block.
type sharing struct {
	block  addr.ConfigResource
	prefix addr.ModuleInstance
	steps  int
}

func placesOf(s *state.State) *places {
	p := &places{in: map[addr.ConfigResource][]addr.ModuleInstance{}, shared: map[sharing][]addr.ModuleInstance{}, done: map[addr.ConfigResource]map[int]bool{}}
	seen := map[placed]bool{}
	for i := range s.Instances() {
		if at := (placed{i.Config(), i.Module}); !seen[at] {
			seen[at] = true
			p.in[at.block] = append(p.in[at.block], at.module)
		}
	}
	return p
}

// beside returns the module instances of a block that agree with m in the modules common to
// both.
func (p *places) beside(c addr.ConfigResource, m addr.ModuleInstance) []addr.ModuleInstance {
	steps := m.Steps()
	calls := c.Module.Calls()
	n := 0
	for n < len(steps) && n < len(calls) && steps[n].Name == calls[n] {
		n++
	}
	if n == 0 {
		return p.in[c]
	}
	if p.done[c] == nil {
		p.done[c] = map[int]bool{}
	}
	if !p.done[c][n] {
		p.done[c][n] = true
		for _, other := range p.in[c] {
			k := sharing{c, prefix(other.Steps(), n), n}
			p.shared[k] = append(p.shared[k], other)
		}
	}
	return p.shared[sharing{c, prefix(steps, n), n}]
}

func prefix(steps []addr.Step, n int) (m addr.ModuleInstance) {
	for _, s := range steps[:n] {
		m = m.Child(s.Name, s.Key)
	}
	return m
}

// reach returns everything that can be reached from some blocks in any number of steps,
// separately for each module instance.
func (p *places) reach(from []placed, step map[addr.ConfigResource][]addr.ConfigResource) map[placed]bool {
	seen := map[placed]bool{}
	for queue := slices.Clone(from); len(queue) > 0; {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, c := range step[at.block] {
			for _, m := range p.beside(c, at.module) {
				if next := (placed{c, m}); !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return seen
}
