// Package outputs is what units see of each other's outputs: stored ones, those that a
// plan expects, and unknown ones.
//
// Main types: Computed, which are those of a run, and Reader, which serves unit files. The one
// rule: what this run planned or applied counts before what a state holds.
package outputs

import (
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Computed are the outputs that a run planned or applied, by the ID of the unit. The zero
// value has none; its methods may be called concurrently.
type Computed struct {
	mu  sync.Mutex
	all map[string]cty.Value
}

// Get are the outputs of a unit; ok is false where those in its state count. m may be nil.
func (m *Computed) Get(id string) (v cty.Value, ok bool) {
	if m == nil {
		return cty.NilVal, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.all[id]
	return v, ok
}

// Set notes the outputs of a unit.
func (m *Computed) Set(id string, v cty.Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]cty.Value{}
	}
	m.all[id] = v
}

// Stored returns the outputs of a state as other units see them: sensitive ones are hidden
// wherever they are shown, and accepted everywhere. An output that is null does not exist.
// A state that has objects and no outputs gives an empty object. The result is cty.NilVal if
// the state has neither, most likely because the unit was not applied yet or is destroyed.
func Stored(s *state.State) cty.Value {
	if s == nil {
		return cty.NilVal
	}
	m := make(map[string]cty.Value, len(s.Outputs))
	for name, o := range s.Outputs {
		if exists(o.Value) {
			m[name] = hide(o.Value, o.Sensitive)
		}
	}
	if len(m) == 0 && len(s.Resources) == 0 {
		return cty.NilVal
	}
	return cty.ObjectVal(m)
}

// exists reports whether an output is there for other units. State does not keep outputs
// that are null, so a run must not have them either: a unit that is run alone afterwards
// would compute other inputs.
func exists(v cty.Value) bool { return v == cty.NilVal || !v.IsNull() }

// hide returns a value as other units see it: a sensitive one is hidden wherever it is
// shown. cty.NilVal stands for one that is not known.
func hide(v cty.Value, sensitive bool) cty.Value {
	if v == cty.NilVal {
		v = cty.DynamicVal
	}
	if sensitive {
		return v.Mark(value.Hidden)
	}
	return v
}

// Planned returns the outputs as a plan expects them, unknown where they are not known
// before apply. An output that is unknown may turn out to be null, and does not exist then.
func Planned(p *plan.Plan, root *config.Module) cty.Value {
	m := map[string]cty.Value{}
	planned := map[string]bool{}
	for _, c := range p.Outputs {
		if root.Outputs[c.Name] == nil {
			continue
		}
		planned[c.Name] = true
		if exists(c.After) {
			m[c.Name] = hide(c.After, c.AfterSensitive)
		}
	}
	for name, o := range root.Outputs {
		if !planned[name] && !o.Ephemeral {
			m[name] = hide(cty.NilVal, o.Sensitive)
		}
	}
	return cty.ObjectVal(m)
}

// Unknown stand for the outputs of a unit that cannot be planned yet.
func Unknown(root *config.Module) cty.Value {
	if root == nil {
		return cty.DynamicVal
	}
	return Planned(&plan.Plan{}, root)
}
