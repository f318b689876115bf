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

// stated is a place that a unit keeps its state in.
type stated struct {
	path  string
	claim states.Claim
}

// noteState notes where the state of a unit is, if that is one place for whoever names
// it: a relative path counts from a folder of the unit's own, and each workspace has a
// state of its own. Commands that only look at modules leave it alone.
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

// oneState adds to the messages about each unit that an earlier one has the same state.
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
