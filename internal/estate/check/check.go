// Package check holds the units of an estate and their connections to every rule that can
// be checked without state, and without running anything.
//
// The outputs of each dependency are taken for unknown values under the names that its
// module declares. So an output that there is not is an error where it is read, and an
// input that cannot fit its variable is one where it is written, before state,
// credentials or providers are needed. Modules that are not on this machine are passed
// over.
//
// Main types: Checker and Result. The one rule: what is not known before a run proves
// nothing.
package check

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// A Checker is what a check reads. All of it is required.
type Checker struct {
	Found   *discovery.Found
	Loader  *unit.Loader
	Static  *unit.Loader // to which all outputs are unknown
	Dirs    *workcopy.Maker
	States  *states.Keeper
	Outside func(t *demand.Task, target string, at source.Range) (*discovery.Unit, diag.List) // reads a unit that is no part of the estate

	Command string
	Environ sys.Env
	Now     func() time.Time
	// ValuesElsewhere says that variables may get values by flags, so that missing inputs
	// are no error yet. Strict makes inputs that a module does not declare errors.
	ValuesElsewhere, Strict bool

	Examiner *engine.Examiner
	Examined *Examined
	Services func(dir string) engine.Services
	ReadFile func(path string) ([]byte, error) // nil: from disk
}

// Examined is what was found in modules already. The zero value is empty.
type Examined struct {
	done parallel.Cache[*workcopy.Parsed, diag.List]
}

func (x *Examined) of(ctx context.Context, p *workcopy.Parsed, examine func() diag.List) diag.List {
	ds, err := x.done.Do(ctx, p, func() (diag.List, bool) { return examine(), true })
	if err != nil {
		return nil // the run, which is interrupted, says so
	}
	return ds
}

// A Result is what a check found.
type Result struct {
	Diags diag.List
	// Invalid is what is wrong with units, of those that take part.
	Invalid map[*discovery.Unit]diag.List
}

// Run checks all units. What was reported while they were found is not reported again.
func (c *Checker) Run(ctx context.Context) (out Result) {
	ctx, s := telemetry.Start(ctx, "estate_check")
	s.Text("working_dir", c.Found.Root()).Count("components_in", len(c.Found.Units))
	defer func() {
		s.Messages(out.Diags)
		s.End()
	}()
	in := &checker{Checker: c, states: map[*discovery.Unit]stated{}}
	in.loader = c.Loader.WithOutputs(in.outputs)
	units := c.Found.Units
	all := parallel.Map(len(units), 0, func(i int) diag.List {
		u := units[i]
		if u.Broken != nil {
			return nil
		}
		ds := c.Found.WithoutIncomplete(in.check(ctx, u))
		if u.Excluded != "" {
			return ds.AsWarnings() // it does not run, but may with another command
		}
		return ds
	})
	out.Invalid = map[*discovery.Unit]diag.List{}
	for i, u := range units {
		if ds := all[i].Errors(); len(ds) > 0 {
			out.Invalid[u] = ds
		}
	}
	in.oneState(all, out.Invalid)
	out.Diags = maps.Clone(c.Found.Reported).Join(units, all)
	return out
}

// checker is one call of Run.
type checker struct {
	*Checker
	loader *unit.Loader // to which outputs are unknown, under the names that there are

	mu     sync.Mutex
	states map[*discovery.Unit]stated // of those whose remote_state names a file for itself
}

// outputs are those that a unit's module declares, none of them known. Where they
// is not known, everything is possible.
func (c *checker) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	u := c.Found.ByID(target)
	if u == nil && !stacks.Is(c.Loader, target) {
		u, _ = c.Outside(t, target, at)
	}
	if u == nil || u.Broken != nil || u.Partial {
		return cty.DynamicVal, true, nil
	}
	m := c.module(t.Context(), u)
	if m.Root == nil || !m.Whole {
		return cty.DynamicVal, true, nil
	}
	return outputs.Unknown(m.Root), len(m.Root.Outputs) > 0, nil
}

// check checks one unit.
func (c *checker) check(ctx context.Context, u *discovery.Unit) diag.List {
	t := c.loader.Task(ctx)
	in := u.Unit.In(c.loader)
	tf, ds := in.Terraform(t)
	rs, more := in.RemoteState(t)
	ds = append(ds, more...)
	c.noteState(u, tf, rs)
	_, more = in.Features(t)
	ds = append(ds, more...)
	_, more = in.Errors(t)
	ds = append(ds, more...)
	ds = append(ds, in.CheckRunner(t).Errors()...)
	_, more = in.Generate(t)
	ds = append(ds, more...)
	m := c.module(ctx, u)
	ds = append(ds, m.Diags.Errors()...)
	ds = append(ds, c.examined(ctx, u, tf, m)...)
	if m.Whole {
		ds = append(ds, workcopy.NoBackendBlock(u.Called(), rs, m.Root)...)
	}
	if m.Root == nil || u.Partial { // what it inherits may be missing for that reason alone
		_, more = in.Inputs(t, nil)
		return slices.Concat(ds, more.Errors(), c.noModule(ctx, u, tf))
	}
	return append(ds, below(m.Root.Dir, c.inputs(t, u, in, m))...)
}

// noModule is the error that the source of a module leads nowhere on this machine,
// unless hooks may put the module there.
func (c *checker) noModule(ctx context.Context, u *discovery.Unit, tf *unit.Terraform) diag.List {
	if tf == nil || len(tf.Before)+len(tf.After) > 0 {
		return nil
	}
	return c.Dirs.CheckSource(ctx, u.Unit, tf)
}

func (c *checker) inputs(t *demand.Task, u *discovery.Unit, in *unit.Unit, m *workcopy.Module) diag.List {
	variables := m.Root.Variables
	settings, ds := in.Inputs(t, func(name string) bool { return variables[name] != nil })
	required, given := map[string]bool{}, map[string]engine.InputValue{}
	for _, s := range settings {
		if s.Name == "" {
			return ds // nothing can be said of inputs that depend on what is not known
		}
		in, more := inputs.ForVariable(variables[s.Name], s.Value, s.At, s.Layer)
		ds = append(ds, more.Errors()...)
		if !more.HasErrors() && !c.environmentGives(variables[s.Name]) {
			given[s.Name] = in
		}
	}
	ds = append(ds, c.rules(t, u, m, given)...)
	for name, v := range variables {
		required[name] = v.Default == cty.NilVal && !c.environmentGives(v) && !c.mayHaveValues(t.Context(), u, m)
	}
	if !m.Whole { // anything may be declared besides
		all, _ := in.Inputs(t, nil)
		for _, s := range all {
			if _, known := required[s.Name]; !known {
				required[s.Name] = false
			}
		}
	}
	return append(ds, in.CheckInputs(t, required, c.Strict)...)
}

// mayHaveValues reports whether values may come from files or flags, so that
// nothing can be said about those that are missing. Validate and init need none.
func (c *checker) mayHaveValues(ctx context.Context, u *discovery.Unit, m *workcopy.Module) bool {
	if c.ValuesElsewhere || m.Values || c.Command == "validate" || c.Command == "init" {
		return true
	}
	for _, dir := range []string{u.Dir, m.Root.Dir} {
		if holdsValues(c.Dirs.OnDisk(dir)) {
			return true
		}
	}
	tf, _ := u.In(c.Static).Terraform(c.Static.Task(ctx))
	return tf != nil && len(tf.ExtraArguments)+len(tf.Before)+len(tf.After) > 0
}

// module is the module of a unit as it will run, as far as that is known.
func (c *checker) module(ctx context.Context, u *discovery.Unit) *workcopy.Module {
	return c.Dirs.Module(c.Static.Task(ctx), u.In(c.Static))
}

// holdsValues reports whether a folder has variable files that are taken by
// themselves.
func holdsValues(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(en fs.DirEntry) bool { return overlay.IsValues(en.Name()) })
}

// below puts the places in a module that was read by names of its own where they
// are.
func below(dir string, ds diag.List) diag.List {
	return placed(ds, func(name string) string { return filepath.Join(dir, name) })
}
