package outputs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A Reader returns the outputs of dependencies to unit files. Its methods may be called
// concurrently.
type Reader struct {
	Found    *discovery.Found
	Loader   func() *unit.Loader // returns the loader of units outside of the estate
	Computed *Computed           // outputs of the run; nil if there is none
	// State reads the state of a unit.
	State func(t *demand.Task, u *discovery.Unit) (*state.State, diag.List)
	// Off makes all outputs unknown. Tolerant turns errors of reading states into warnings.
	Off, Tolerant bool
}

// Get implements unit.OutputsFunc.
func (r *Reader) Get(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	_, s := telemetry.Start(t.Context(), "dependency_output_fetch")
	if s == nil {
		return r.get(t, target, at)
	}
	strategy := "state"
	if _, ok := r.Computed.Get(target); ok {
		strategy = "memory"
	}
	s.Text("target", target).Text("caller", at.Filename)
	s.Outcome("strategy", strategy)
	v, ok, ds := r.get(t, target, at)
	s.Messages(ds)
	s.End()
	return v, ok, ds
}

func (r *Reader) get(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	if r.Off {
		return cty.DynamicVal, false, nil
	}
	u := r.Found.ByID(target)
	if u != nil {
		target = u.ID // the target may be the path of a symbolic link
	}
	if v, ok := r.Computed.Get(target); ok {
		return some(v)
	}
	if u == nil && stacks.Is(r.Loader(), target) {
		return r.stack(t, target, at)
	}
	if u == nil {
		var ds diag.List
		if u, ds = r.Outside(t, target, at); u == nil {
			return cty.DynamicVal, false, ds
		}
	}
	s, ds := r.State(t, u)
	if ds.HasErrors() {
		if ds = ds.Note(&at, "its outputs are needed here"); r.Tolerant {
			ds = ds.AsWarnings()
		}
		return cty.DynamicVal, false, ds
	}
	return some(Stored(s))
}

// some returns outputs in the form of unit.OutputsFunc.
func some(v cty.Value) (cty.Value, bool, diag.List) {
	if v == cty.NilVal {
		return cty.DynamicVal, false, nil
	}
	return v, !v.RawEquals(cty.EmptyObjectVal), nil
}

// Outside reads a unit that is not part of the estate.
func (r *Reader) Outside(t *demand.Task, target string, at source.Range) (*discovery.Unit, diag.List) {
	path, module := r.Found.Resolve(target), ""
	for {
		if r.Loader().Exists(path) {
			break
		}
		up := filepath.Dir(path)
		if up == path {
			return nil, diag.Errorf(diag.CodeUnitDependencyNotFound, &at, "Dependency not found", "There is no unit %s.", target)
		}
		module = strings.TrimPrefix(filepath.ToSlash(filepath.Join(filepath.Base(path), module)), "/")
		path = up
	}
	in, ds := r.Loader().Unit(t, path, module)
	if ds.HasErrors() || in == nil {
		return nil, ds
	}
	return &discovery.Unit{Unit: in, Name: r.Found.Name(in.ID)}, ds
}

// stack returns the outputs of a stack as a dependency: an object with the outputs of its units
// by name. Nested stacks are nested objects.
func (r *Reader) stack(t *demand.Task, dir string, at source.Range) (cty.Value, bool, diag.List) {
	parts, ds := stacks.Parts(t, r.Loader(), dir)
	if ds.HasErrors() {
		return cty.DynamicVal, false, ds
	}
	v, some, more := r.parts(t, parts, at)
	return v, some, append(ds, more...)
}

// has reports whether the unit that a stack file generates in a directory exists.
func (r *Reader) has(dir string) bool {
	if r.Found.ByID(dir) != nil {
		return true
	}
	entries, _ := os.ReadDir(dir) // an unreadable directory has no unit
	l := r.Loader()
	return slices.ContainsFunc(entries, func(en os.DirEntry) bool { return l.IsUnitFile(filepath.Join(dir, en.Name())) })
}

func (r *Reader) parts(t *demand.Task, parts []stacks.Part, at source.Range) (v cty.Value, some bool, ds diag.List) {
	m, instances := map[string]cty.Value{}, map[string]map[string]cty.Value{} // instances are by name and key
	for _, p := range parts {
		var v cty.Value
		var ok bool
		var more diag.List
		if p.Stack {
			v, ok, more = r.parts(t, p.Parts, at)
		} else if !r.has(p.Dir) {
			more = stacks.Invalid("Stack not generated", "The unit %q of the stack that the outputs are of is not at %s, so it has none. Run \"stack generate\" in the stack's directory.", p.Address(), p.Dir).Under(&at).AsWarnings()
		} else {
			v, ok, more = r.Get(t, p.Dir, at)
		}
		ds = append(ds, more...)
		if !ok {
			continue
		}
		some = true
		if p.Key == (addr.Key{}) {
			m[p.Name] = v
			continue
		}
		if instances[p.Name] == nil {
			instances[p.Name] = map[string]cty.Value{}
		}
		key, _ := convert.Convert(p.Key.Value(), cty.String) // a number or a string
		instances[p.Name][key.AsString()] = v
	}
	for name, all := range instances {
		m[name] = cty.ObjectVal(all)
	}
	return cty.ObjectVal(m), some, ds
}
