package validate

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # Before a plan
//
// What configuration alone shows is told before any provider is asked to read or plan.
// That is less than validating, so that a plan costs hardly more for it: providers are
// asked for nothing but their schemas, of resource blocks only the references and types
// are looked at, what stands in a folder is looked at once however many calls name it,
// and what was read of the files is kept for the plan (eval.Compiled).

// Early finds the errors in configuration that a plan would run into, and others that
// it would not. A plan to destroy needs little of configuration: what is wrong with the
// rest gives warnings.
func Early(ctx context.Context, in Input, destroy bool) diag.List {
	v := newValidator(ctx, in, true)
	v.destroy = destroy
	if ds := in.Tree.CheckProviders(); ds.HasErrors() {
		return ds.Errors()
	}
	v.run(v.earlyModule)
	ds := v.graph.Diags().Errors()
	if destroy && !ds.HasErrors() {
		v.graph = &demand.Graph{}
		v.done = map[any]bool{}
		v.run(v.unneeded)
		for _, m := range v.graph.Diags().Errors() {
			m.Severity = diag.Warning
			ds = append(ds, m)
		}
	}
	return ds
}

// earlyModule demands what there is in a module instance.
func (v *validator) earlyModule(w *parallel.Work[job], m *eval.Module) {
	first := v.first(m.Node.Config)
	var all []job
	for _, r := range m.Resources() {
		if v.destroy && r.Config().Addr.Mode == addr.Managed {
			all = append(all, func(t *demand.Task) { r.Instances(t) })
			continue
		}
		all = append(all, func(t *demand.Task) { r.Whole(t) })
	}
	for _, c := range m.Calls() {
		all = append(all, func(t *demand.Task) {
			if ch, ok := c.Children(t); ok {
				for _, child := range ch.All {
					v.earlyModule(w, child)
				}
			}
		})
	}
	all = append(all, func(t *demand.Task) {
		if first {
			for _, pc := range m.ProviderInstances(t) {
				pc.Value(t)
			}
		}
		if !v.destroy {
			v.values(t, m, first)
		}
	})
	w.Add(all...)
}

// values demands the values of a module instance, those that its text alone decides if
// it is the first with that text.
func (v *validator) values(t *demand.Task, m *eval.Module, first bool) {
	if !first {
		for _, f := range m.Inputs() {
			f(t)
		}
		return
	}
	for _, f := range m.Demands() {
		f(t)
	}
	for _, c := range m.Checks() {
		_, ds := c.Run(t)
		v.graph.Report(notFailures(ds))
	}
	v.graph.Report(m.CheckReferences())
}

// unneeded demands what a plan to destroy does not.
func (v *validator) unneeded(w *parallel.Work[job], m *eval.Module) {
	first := v.first(m.Node.Config)
	var all []job
	for _, r := range m.Resources() {
		if r.Config().Addr.Mode != addr.Managed || !first {
			continue
		}
		all = append(all, func(t *demand.Task) {
			in, ok := r.Instances(t)
			if !ok {
				return
			}
			for _, d := range in.All {
				if s, ds := r.Schema(t); !ds.HasErrors() {
					v.graph.Report(v.block(t, d, s, v.anything(d, s)).About(d.Addr().String()))
				}
			}
		})
	}
	for _, c := range m.Calls() {
		all = append(all, func(t *demand.Task) {
			if ch, ok := c.Children(t); ok {
				for _, child := range ch.All {
					v.unneeded(w, child)
				}
			}
		})
	}
	all = append(all, func(t *demand.Task) { v.values(t, m, first) })
	w.Add(all...)
}

// earlyValue is Value before a plan.
func (v *validator) earlyValue(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	out := v.anything(d, s)
	if v.destroy && d.Addr().Resource.Mode == addr.Managed {
		return out, ds
	}
	return out, append(ds, v.block(t, d, s, out)...).About(d.Addr().String())
}

// anything is what an instance may be by its schema alone.
func (v *validator) anything(d *eval.Desired, s *schema.Resource) cty.Value {
	ty := s.Block.ImpliedType()
	out := cty.UnknownVal(ty)
	if s.Block.HasSensitive() {
		attrs := make(map[string]cty.Value, len(ty.AttributeTypes()))
		for name, at := range ty.AttributeTypes() {
			attrs[name] = cty.UnknownVal(at)
		}
		out = resourceclient.WithSensitive(cty.ObjectVal(attrs), nil, s)
	}
	if d.Addr().Resource.Mode == addr.Ephemeral {
		out = out.Mark(value.Ephemeral)
	}
	return out
}

// block is what is wrong with a resource block.
func (v *validator) block(t *demand.Task, d *eval.Desired, s *schema.Resource, self cty.Value) diag.List {
	_, ds := d.Provider(t)
	b, more := d.Resource.Body(s)
	ds = append(ds, resourceclient.Blame(d, s, more)...)
	if more.HasErrors() {
		return ds
	}
	ds = append(ds, resourceclient.Blame(d, s, b.Static(t, d.Scope(cty.NilVal)))...)
	if !v.first(d.Resource.Config()) {
		return ds
	}
	_, more = d.Preconditions(t)
	ds = append(ds, notFailures(more)...)
	ds = append(ds, v.ignored(d, s)...)
	ds = append(ds, v.provisioners(t, d, self)...)
	return append(ds, made(t, d, self)...)
}
