package check

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/unit"
)

// stated is the location of a unit's state.
type stated struct {
	path  string
	claim states.Claim
}

// noteState records the location of a unit's state if it is the same for all units that specify
// it. Relative paths are not, since they depend on the unit, and neither are locations in other
// workspaces. Commands in examining skip this.
func (c *checker) noteState(u *discovery.Unit, tf *unit.Terraform, rs *unit.RemoteState) {
	if rs == nil || u.Excluded != "" || slices.Contains(examining, c.Command) {
		return
	}
	env := c.Environ
	if tf != nil {
		env = env.With(arguments.Read(tf.ExtraArguments, strings.Clone, c.Command).Env...)
	}
	if w := env.Get("TF_WORKSPACE"); w != "" && w != store.Default {
		return
	}
	place := c.States.PlaceOf(rs)
	if place == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[u] = stated{place, states.Claim{Unit: u.Name, Called: u.Called(), At: rs.At}}
}

// oneState adds an error for each unit that has the same state as an earlier one.
func (c *checker) oneState(all []diag.List, invalid map[*discovery.Unit]diag.List) {
	first := map[string]states.Claim{}
	for i, u := range c.Found.Units {
		s, ok := c.states[u]
		if !ok {
			continue
		}
		other, taken := first[s.path]
		if !taken {
			first[s.path] = s.claim
			continue
		}
		ds := s.claim.And(other, s.path)
		all[i] = append(all[i], ds...)
		invalid[u] = append(invalid[u], ds...)
	}
}
