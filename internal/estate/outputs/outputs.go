// Package outputs provides the outputs of units to other units: stored, planned and unknown ones.
//
// Main types: Computed, the outputs of a run, and Reader, which returns outputs to unit files.
// The one rule: outputs that this run planned or applied take precedence over those in a state.
package outputs

import (
	"sync"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Computed contains the outputs that a run planned or applied, by the ID of the unit. The zero
// value is empty. Its methods may be called concurrently.
type Computed struct {
	mu  sync.Mutex
	all map[string]cty.Value
}

// Get returns the outputs of a unit. ok is false if the run has none, so that those in the state
// are used. m may be nil.
func (m *Computed) Get(id string) (v cty.Value, ok bool) {
	if m == nil {
		return cty.NilVal, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.all[id]
	return v, ok
}

// Set sets the outputs of a unit.
func (m *Computed) Set(id string, v cty.Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]cty.Value{}
	}
	m.all[id] = v
}

// Stored returns the outputs of a state as other units receive them. Sensitive outputs are
// accepted everywhere and hidden wherever they are shown. Null outputs are omitted. If the state
// has objects but no outputs, the result is an empty object. If it has neither, the result is
// cty.NilVal; the unit was probably never applied, or is destroyed.
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

// exists reports whether other units receive an output. State does not store null outputs, so a
// run must omit them too: otherwise a unit that is run alone later would compute other inputs.
func exists(v cty.Value) bool { return v == cty.NilVal || !v.IsNull() }

// hide returns a value as other units receive it. A sensitive value is hidden wherever it is
// shown. cty.NilVal means an unknown value.
func hide(v cty.Value, sensitive bool) cty.Value {
	if v == cty.NilVal {
		v = cty.DynamicVal
	}
	if sensitive {
		return v.Mark(value.Hidden)
	}
	return v
}

// Planned returns the outputs that a plan expects. Those that are unknown before apply are
// unknown values, and are omitted later if they are null.
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

// Only returns the stored outputs that p plans. The others wait for objects that p defers.
func Only(stored cty.Value, p *plan.Plan) cty.Value {
	if stored == cty.NilVal || !stored.Type().IsObjectType() {
		return stored
	}
	m := stored.AsValueMap()
	out := map[string]cty.Value{}
	for _, c := range p.Outputs {
		if v, ok := m[c.Name]; ok {
			out[c.Name] = v
		}
	}
	return cty.ObjectVal(out)
}

// Unknown returns unknown values for the outputs of a unit that cannot be planned yet. root is
// its module. nil means that the names are unknown too.
func Unknown(root *config.Module) cty.Value {
	if root == nil {
		return cty.DynamicVal
	}
	return Planned(&plan.Plan{}, root)
}
