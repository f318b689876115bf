package estate

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/par"
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
func (e *Estate) Check(ctx context.Context, strict bool) diag.List {
	c := &checker{e: e}
	c.loader = e.loader.Anew(c.outputs)
	all := par.Map(len(e.Units), 0, func(i int) diag.List {
		if e.Units[i].Excluded != "" || e.Units[i].Broken != nil {
			return nil
		}
		return c.check(ctx, e.Units[i], strict)
	})
	var ds diag.List
	for _, one := range all {
		ds = append(ds, one...)
	}
	return ds
}

type checker struct {
	e      *Estate
	loader *unit.Loader
}

// outputs are those that a unit's module declares, none of them known. Where they
// cannot be told, everything is possible.
func (c *checker) outputs(t *demand.Task, target string, _ source.Range) (cty.Value, bool, diag.List) {
	u := c.e.byID[target]
	if u == nil {
		return cty.DynamicVal, true, nil
	}
	m := c.e.localModule(c.e.task(t.Context()), u)
	if m == nil {
		return cty.DynamicVal, true, nil
	}
	return unknownOutputs(m), len(m.Outputs) > 0, nil
}

// check checks one unit.
func (c *checker) check(ctx context.Context, u *Unit, strict bool) diag.List {
	t := c.loader.Task(ctx)
	in := u.Unit.In(c.loader)
	_, ds := in.Terraform(t)
	_, more := in.RemoteState(t)
	ds = append(ds, more...)
	_, more = in.Features(t)
	ds = append(ds, more...)
	_, more = in.Errors(t)
	ds = append(ds, more...)
	ds = append(ds, in.CheckRunner(t).Errors()...)
	_, more = in.Generate(t)
	if ds = append(ds, more...); ds.HasErrors() {
		return ds
	}
	m := c.e.localModule(c.e.task(ctx), u)
	if m == nil {
		return ds
	}
	return append(ds, below(m.Dir, c.inputs(t, u, in, m, strict))...)
}

func (c *checker) inputs(t *demand.Task, u *Unit, in *unit.Unit, m *config.Module, strict bool) diag.List {
	settings, ds := in.Inputs(t, func(name string) bool { return m.Variables[name] != nil })
	given := map[string]bool{}
	for _, s := range settings {
		if s.Name == "" {
			return ds // nothing can be said of inputs that hang on what is not known
		}
		given[s.Name] = true
		_, more := inputOf(m.Variables[s.Name], s.Value, s.At, s.Layer)
		ds = append(ds, more.Errors()...)
	}
	required := map[string]bool{}
	for name, v := range m.Variables {
		_, env := c.e.o.Environ.Lookup("TF_VAR_" + name)
		required[name] = v.Default == cty.NilVal && !env && !c.e.mayHaveValues(u, m)
	}
	return append(ds, in.CheckInputs(t, required, strict)...)
}

// mayHaveValues reports whether values may come from files or flags, so that
// nothing can be said about those that are missing.
func (e *Estate) mayHaveValues(u *Unit, m *config.Module) bool {
	if e.o.OtherValues {
		return true
	}
	for _, dir := range []string{u.Dir, m.Dir} {
		if holdsValues(dir) {
			return true
		}
	}
	tf, _ := u.In(e.blind).Terraform(e.task(context.Background()))
	return tf != nil && len(tf.ExtraArguments)+len(tf.Before)+len(tf.After) > 0
}
