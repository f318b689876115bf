// Package outputs is what units see of each other's outputs: stored ones, those that a
// plan expects, and unknown ones.
//
// Main types: Computed, which are those of a run, and Reader, which serves unit files. The one
// rule: what this run planned or applied counts before what a state holds.
package outputs

import (
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/value"
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

// Stored are the outputs of a state as other units see them: sensitive ones
// are hidden wherever they are shown, and accepted everywhere. Without any the
// result is cty.NilVal.
func Stored(s *state.State) cty.Value {
	if s == nil || len(s.Outputs) == 0 {
		return cty.NilVal
	}
	m := make(map[string]cty.Value, len(s.Outputs))
	for name, o := range s.Outputs {
		m[name] = Hide(o.Value, o.Sensitive)
	}
	return cty.ObjectVal(m)
}

// Hide is a value as other units see it: a sensitive one is hidden wherever it is shown.
func Hide(v cty.Value, sensitive bool) cty.Value {
	if v == cty.NilVal {
		v = cty.NullVal(cty.DynamicPseudoType)
	}
	if sensitive {
		return v.Mark(value.Hidden)
	}
	return v
}

// Planned are the outputs as a plan expects them, unknown where they are
// not known before apply.
func Planned(p *plan.Plan, root *config.Module) cty.Value {
	m := map[string]cty.Value{}
	for _, c := range p.Outputs {
		if root.Outputs[c.Name] == nil {
			continue
		}
		after := c.After // null of one that is to have no value any more
		if after == cty.NilVal {
			after = cty.DynamicVal
		}
		m[c.Name] = Hide(after, c.AfterSensitive)
	}
	for name, o := range root.Outputs {
		if _, ok := m[name]; !ok && !o.Ephemeral {
			m[name] = Hide(cty.DynamicVal, o.Sensitive)
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
