package estate

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// # Checking an estate without running anything
//
// The outputs of each dependency are taken for unknown values under the names
// that its module declares. So an output that there is not is an error where it is
// read, and an input that cannot fit its variable is one where it is written,
// before state, credentials or providers are needed.

// Check holds the units and their connections to every rule that can be checked
// without state. Modules that are not on this machine are passed over. strict makes
// inputs that a module does not declare errors.
func (e *Estate) Check(ctx context.Context, strict bool) (ds diag.List) {
	ctx, s := telemetry.Start(ctx, "estate_check")
	s.Text("working_dir", e.o.Root).Count("components_in", len(e.Units))
	defer func() { over(s, ds) }()
	c := &checker{e: e, states: map[*Unit]stated{}}
	c.loader = e.loader.Anew(c.outputs)
	all := parallel.Map(len(e.Units), 0, func(i int) diag.List {
		u := e.Units[i]
		if u.Broken != nil {
			return nil
		}
		ds := e.withoutUnmade(u, c.check(ctx, u, strict))
		if u.Excluded != "" {
			return warned(ds) // it does not run, but may with another command
		}
		u.wrong = append(u.wrong, ds.Errors()...)
		return ds
	})
	c.oneState(all)
	return together(maps.Clone(e.told.reading), e.Units, all)
}

type checker struct {
	e      *Estate
	loader *unit.Loader

	mu     sync.Mutex
	states map[*Unit]stated // of those whose remote_state names a file for itself
}

// outputs are those that a unit's module declares, none of them known. Where they
// cannot be told, everything is possible.
func (c *checker) outputs(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
	u := c.e.byID[target]
	if u == nil && !isStack(target) {
		u, _ = c.e.outside(t, target, at)
	}
	if u == nil || u.Broken != nil || u.faulty {
		return cty.DynamicVal, true, nil
	}
	m := c.e.laid(t.Context(), u)
	if m.root == nil || !m.whole {
		return cty.DynamicVal, true, nil
	}
	return unknownOutputs(m.root), len(m.root.Outputs) > 0, nil
}

// check checks one unit.
func (c *checker) check(ctx context.Context, u *Unit, strict bool) diag.List {
	t := c.loader.Task(ctx)
	in := u.Unit.In(c.loader)
	tf, ds := in.Terraform(t)
	rs, more := in.RemoteState(t)
	ds = append(ds, more...)
	c.noteState(u, rs)
	_, more = in.Features(t)
	ds = append(ds, more...)
	_, more = in.Errors(t)
	ds = append(ds, more...)
	ds = append(ds, in.CheckRunner(t).Errors()...)
	_, more = in.Generate(t)
	ds = append(ds, more...)
	m := c.e.laid(ctx, u)
	ds = append(ds, m.ds.Errors()...)
	ds = append(ds, c.e.examined(ctx, u, tf, m)...)
	if m.whole {
		ds = append(ds, noBackendBlock(u, rs, m.root)...)
	}
	if m.root == nil || u.faulty { // what it inherits may be missing for that reason alone
		_, more = in.Inputs(t, nil)
		return slices.Concat(ds, more.Errors(), c.noModule(ctx, u, tf))
	}
	return append(ds, below(m.root.Dir, c.inputs(t, u, in, m, strict))...)
}

// noModule is the error that the source of a module leads nowhere on this machine,
// unless hooks may put the module there.
func (c *checker) noModule(ctx context.Context, u *Unit, tf *unit.Terraform) diag.List {
	if tf == nil || len(tf.Before)+len(tf.After) > 0 {
		return nil
	}
	src, ds := c.e.sourceOf(u, tf)
	if ds.HasErrors() || src.text == "" {
		return nil
	}
	_, _, ds = c.e.packageOf(ctx, u, src, false)
	return ds
}

func (c *checker) inputs(t *demand.Task, u *Unit, in *unit.Unit, m *laidModule, strict bool) diag.List {
	variables := m.root.Variables
	settings, ds := in.Inputs(t, func(name string) bool { return variables[name] != nil })
	required, given := map[string]bool{}, map[string]engine.InputValue{}
	for _, s := range settings {
		if s.Name == "" {
			return ds // nothing can be said of inputs that hang on what is not known
		}
		in, more := inputOf(variables[s.Name], s.Value, s.At, s.Layer)
		ds = append(ds, more.Errors()...)
		if !more.HasErrors() && !c.e.environmentGives(variables[s.Name]) {
			given[s.Name] = in
		}
	}
	ds = append(ds, c.rules(t, u, m, given)...)
	for name, v := range variables {
		required[name] = v.Default == cty.NilVal && !c.e.environmentGives(v) && !c.e.mayHaveValues(u, m)
	}
	if !m.whole { // anything may be declared besides
		all, _ := in.Inputs(t, nil)
		for _, s := range all {
			required[s.Name] = required[s.Name]
		}
	}
	return append(ds, in.CheckInputs(t, required, strict)...)
}

// mayHaveValues reports whether values may come from files or flags, so that
// nothing can be said about those that are missing.
func (e *Estate) mayHaveValues(u *Unit, m *laidModule) bool {
	if e.o.Inputs.Elsewhere || m.values {
		return true
	}
	for _, dir := range []string{u.Dir, m.root.Dir} {
		if holdsValues(dir) {
			return true
		}
	}
	tf, _ := u.In(e.blind).Terraform(e.task(context.Background()))
	return tf != nil && len(tf.ExtraArguments)+len(tf.Before)+len(tf.After) > 0
}
