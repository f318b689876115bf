// Package check checks the units of an estate and their connections without state, and without
// running anything.
//
// Outputs of dependencies are unknown values with the names that the dependency's module
// declares. A reference to a missing output and an input that does not fit its variable are
// therefore errors before state, credentials or providers are needed. Modules that are not on
// this machine are skipped.
//
// Main types: Checker and Result. The one rule: values that are unknown before a run cause no
// error.
package check

import (
	"context"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"io/fs"
	"maps"
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

// A Checker contains the data that a check reads. All fields are required unless noted.
type Checker struct {
	Found   *discovery.Found
	Loader  *unit.Loader
	Static  *unit.Loader // evaluates with all outputs unknown
	Dirs    *workcopy.Maker
	States  *states.Keeper
	Outside func(t *demand.Task, target string, at source.Range) (*discovery.Unit, diag.List) // reads a unit outside of the estate

	Command string
	Environ sys.Env
	Now     func() time.Time
	// ValuesElsewhere means that flags may set variables, so that missing inputs are no error.
	// Strict makes inputs that a module does not declare errors.
	ValuesElsewhere, Strict bool
	// Last means that the units are not used after the check, so that their data can be discarded.
	Last bool

	Examiner *engine.Examiner
	Examined *Examined
	Services func(dir string) engine.Services
	ReadFile func(path string) ([]byte, error) // nil means that files are read from disk
}

// Examined caches the messages about modules. The zero value is empty and ready to use.
type Examined struct {
	done parallel.Cache[*workcopy.Parsed, diag.List]
}

func (x *Examined) of(ctx context.Context, p *workcopy.Parsed, examine func() diag.List) diag.List {
	ds, err := x.done.Do(ctx, p, func() (diag.List, bool) { return examine(), true })
	if err != nil {
		return nil // the interrupted run reports this
	}
	return ds
}

// A Result is the result of a check.
type Result struct {
	Diags diag.List
	// Invalid contains the errors of units that are not excluded.
	Invalid map[*discovery.Unit]diag.List
}

// Run checks all units. It does not repeat messages that discovery reported.
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
		if c.Last {
			for _, l := range []*unit.Loader{in.loader, c.Loader, c.Static} {
				u.In(l).ForgetFile()
			}
		}
		if u.Excluded != "" {
			return ds.AsWarnings() // the unit is excluded from this command only
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

// checker is the state of one call of Run.
type checker struct {
	*Checker
	loader *unit.Loader // evaluates with unknown outputs that have the declared names

	mu     sync.Mutex
	states map[*discovery.Unit]stated // units whose state has a fixed location
}

// outputs returns unknown values for the outputs that a unit's module declares. If the module is
// not fully known, the result is wholly unknown.
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
	if m.Root == nil || u.Partial { // definitions may be missing because the file was read in part
		_, more = in.Inputs(t, nil)
		return slices.Concat(ds, more.Errors(), c.noModule(ctx, u, tf))
	}
	return append(ds, below(m.Root.Dir, c.inputs(t, u, in, m))...)
}

// noModule returns an error if the source of a module does not exist on this machine, unless
// hooks may create it.
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
			return ds // the inputs depend on unknown values
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
	if !m.Whole { // unknown files may declare further variables
		all, _ := in.Inputs(t, nil)
		for _, s := range all {
			if _, known := required[s.Name]; !known {
				required[s.Name] = false
			}
		}
	}
	return append(ds, in.CheckInputs(t, required, c.Strict)...)
}

// mayHaveValues reports whether files or flags may set variables, so that missing inputs are no
// error. validate and init need no values.
func (c *checker) mayHaveValues(ctx context.Context, u *discovery.Unit, m *workcopy.Module) bool {
	if c.ValuesElsewhere || m.Values || c.Command == "validate" || c.Command == "init" {
		return true
	}
	for _, dir := range []string{u.Dir, m.Root.Dir} {
		if holdsValues(c.Dirs.Disk(), c.Dirs.OnDisk(dir)) {
			return true
		}
	}
	tf, _ := u.In(c.Static).Terraform(c.Static.Task(ctx))
	return tf != nil && len(tf.ExtraArguments)+len(tf.Before)+len(tf.After) > 0
}

// module returns the module of a unit as it will run.
func (c *checker) module(ctx context.Context, u *discovery.Unit) *workcopy.Module {
	return c.Dirs.Module(c.Static.Task(ctx), u.In(c.Static))
}

// holdsValues reports whether a directory contains variable files that are loaded automatically.
func holdsValues(files *readfile.Kept, dir string) bool {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(en fs.DirEntry) bool { return overlay.IsValues(en.Name()) })
}

// below makes the file names in messages about a module absolute. dir is the directory of the
// module.
func below(dir string, ds diag.List) diag.List {
	return placed(ds, func(name string) string { return filepath.Join(dir, name) })
}
