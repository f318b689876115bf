package estate

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// readOutputs reads the outputs of a dependency: those that the run has planned or
// applied, else those in its state.
func (e *Estate) readOutputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	if e.o.Without.Outputs {
		return cty.DynamicVal, false, nil
	}
	u := e.byID[target]
	if r := e.run; r != nil && u != nil {
		if v, ok := r.outputsOf(u); ok {
			return v, v != cty.NilVal && !v.RawEquals(cty.EmptyObjectVal), nil
		}
	}
	if u == nil && isStack(target) {
		return e.stackOutputs(t, target, at)
	}
	if u == nil {
		var ds diag.List
		if u, ds = e.outside(t, target, at); u == nil {
			return cty.DynamicVal, false, ds
		}
	}
	s, ds := e.stateOf(t, u)
	if ds.HasErrors() {
		if ds = ds.Note(&at, "its outputs are needed here"); e.o.Inputs.tolerant {
			ds = warned(ds) // a state that cannot be read is as good as none
		}
		return cty.DynamicVal, false, ds
	}
	if v := storedOutputs(s); v != cty.NilVal {
		return v, true, nil
	}
	return cty.DynamicVal, false, nil
}

// outside reads a unit that is no part of the estate.
func (e *Estate) outside(t *demand.Task, target string, at source.Range) (*Unit, diag.List) {
	path, module := target, ""
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		up := filepath.Dir(path)
		if up == path {
			return nil, diag.Errorf(&at, "Dependency not found", "There is no unit %s.", target)
		}
		module = strings.TrimPrefix(filepath.ToSlash(filepath.Join(filepath.Base(path), module)), "/")
		path = up
	}
	in, ds := e.loader.Unit(t, path, module)
	if ds.HasErrors() || in == nil {
		return nil, ds
	}
	return &Unit{Unit: in, Name: e.name(in.ID)}, ds
}

// storedOutputs are the outputs of a state as other units see them: sensitive ones
// are hidden wherever they are shown, and accepted everywhere. Without any the
// result is cty.NilVal.
func storedOutputs(s *state.State) cty.Value {
	if s == nil || len(s.Outputs) == 0 {
		return cty.NilVal
	}
	m := make(map[string]cty.Value, len(s.Outputs))
	for name, o := range s.Outputs {
		m[name] = hide(o.Value, o.Sensitive)
	}
	return cty.ObjectVal(m)
}

func hide(v cty.Value, sensitive bool) cty.Value {
	if v == cty.NilVal {
		v = cty.NullVal(cty.DynamicPseudoType)
	}
	if sensitive {
		return v.Mark(value.Hidden)
	}
	return v
}

// plannedOutputs are the outputs as a plan expects them, unknown where they are
// not known before apply.
func plannedOutputs(p *engine.Plan, root *config.Module) cty.Value {
	m := map[string]cty.Value{}
	for _, c := range p.Outputs {
		if root.Outputs[c.Name] == nil {
			continue
		}
		after := c.After // null of one that is to have no value any more
		if after == cty.NilVal {
			after = cty.DynamicVal
		}
		m[c.Name] = hide(after, c.AfterSensitive)
	}
	for name, o := range root.Outputs {
		if _, ok := m[name]; !ok && !o.Ephemeral {
			m[name] = hide(cty.DynamicVal, o.Sensitive)
		}
	}
	return cty.ObjectVal(m)
}

// unknownOutputs stand for the outputs of a unit that cannot be planned yet.
func unknownOutputs(root *config.Module) cty.Value {
	if root == nil {
		return cty.DynamicVal
	}
	return plannedOutputs(&engine.Plan{}, root)
}

// Outputs reads the stored outputs of every unit of the estate that takes part, by
// name. A state that cannot be read is told of its unit alone.
func (e *Estate) Outputs(ctx context.Context) (map[string]map[string]*state.Output, []*Result) {
	out := map[string]map[string]*state.Output{}
	var results []*Result
	for _, u := range e.Units {
		res := &Result{Unit: u, Status: Succeeded, Started: e.o.Machine.Now()}
		results = append(results, res)
		if u.Excluded != "" {
			res.LeaveOut()
			res.Ended = res.Started
			continue
		}
		s, ds := (*state.State)(nil), u.Broken
		if ds == nil {
			s, ds = e.State(ctx, u)
		}
		if res.Diags, res.Ended = ds, e.o.Machine.Now(); ds.HasErrors() {
			res.Status, res.Reason, res.Cause, res.Code = Failed, "run error", ds.Errors()[0].Summary, 1
		}
		if s != nil {
			out[u.Name] = maps.Clone(s.Outputs)
		}
	}
	return out, results
}
