package validate

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # Before a plan
//
// Configuration errors are reported before any provider is called to read or plan. A directory
// is validated once, however many module calls refer to it. The plan reuses the compiled files
// (eval.Compiled), and the configurations that providers accepted, so that it need not validate
// them again (Validated).

// Validated contains the configurations of blocks that their providers accepted without
// messages.
type Validated map[*config.Resource]cty.Value

// Has reports whether a configuration was accepted. Unknown values equal nothing, since a
// provider may have messages when they are known.
func (v Validated) Has(r *config.Resource, written cty.Value) bool {
	known, ok := v[r]
	return ok && known.RawEquals(written)
}

// BeforePlan returns the errors in configuration that a plan would have, and others that it
// would not find. A plan to destroy needs only little of the configuration; errors in the rest
// become warnings.
func BeforePlan(ctx context.Context, in Input, destroy bool) (Validated, diag.List) {
	v := newValidator(ctx, in, true)
	v.destroy, v.validated = destroy, Validated{}
	if ds := module.CheckProviders(in.Tree); ds.HasErrors() {
		return nil, ds.Errors()
	}
	v.run()
	ds := v.graph.Diags().Errors()
	if destroy && !ds.HasErrors() {
		all := newValidator(ctx, in, true)
		all.validated, all.mild = Validated{}, true
		all.run()
		ds = append(ds, all.graph.Diags().Errors().AsWarnings()...)
		v.redundant = append(v.redundant, all.redundant...)
	}
	return v.validated, append(ds, v.redundant...)
}

// valueBeforePlan is Value before a plan.
func (v *validator) valueBeforePlan(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	out := v.anything(d, s)
	if v.destroy && d.Addr().Resource.Mode == addr.Managed { // a provider configuration reads it
		return out, ds
	}
	more := v.block(t, d, s, out)
	if v.mild { // readers continue with a value that conforms to the schema
		v.graph.Report(more)
		return out, ds
	}
	return out, append(ds, more...)
}

// anything returns the value of an instance that is only known by its schema.
func (v *validator) anything(d *eval.Desired, s *schema.Resource) cty.Value {
	key := anyOf{s, d.Addr().Resource.Mode}
	if out, ok := v.instances.Load(key); ok {
		return out.(cty.Value)
	}
	out := anything(key)
	v.instances.Store(key, out)
	return out
}

// anyOf identifies a resource type in a mode.
type anyOf struct {
	schema *schema.Resource
	mode   addr.Mode
}

func anything(of anyOf) cty.Value {
	s := of.schema
	ty := s.Block.ImpliedType()
	out := cty.UnknownVal(ty)
	if s.Block.HasSensitive() {
		attrs := make(map[string]cty.Value, len(ty.AttributeTypes()))
		for name, at := range ty.AttributeTypes() {
			attrs[name] = cty.UnknownVal(at)
		}
		out = resourceclient.WithSensitive(cty.ObjectVal(attrs), nil, s)
	}
	if of.mode == addr.Ephemeral {
		out = out.Mark(value.Ephemeral)
	}
	return out
}

// block returns the errors in a resource block.
func (v *validator) block(t *demand.Task, d *eval.Desired, s *schema.Resource, self cty.Value) diag.List {
	pc, ds := d.Provider(t)
	if pc != nil && v.limited() != nil {
		v.graph.Report(v.provider(t, pc))
	}
	b, more := d.Resource.Body(s)
	ds = append(ds, resourceclient.Blame(d, s, more)...)
	if more.HasErrors() {
		return ds
	}
	first := v.first(d.Resource.Config())
	asked := first && !acceptsAll(d)
	if !asked || b.Dynamic() { // the contents of dynamic blocks are only evaluated if there are any
		more = resourceclient.Blame(d, s, b.Static(t, d.Scope(cty.NilVal)))
		ds = append(ds, more...)
	}
	if !first {
		return ds
	}
	if asked && !more.HasErrors() {
		ds = append(ds, v.configuration(t, d, s)...)
	}
	_, more = d.Preconditions(t)
	ds = append(ds, notFailures(more)...)
	ds = append(ds, v.ignored(t, d, s)...)
	ds = append(ds, v.provisioners(t, d, self)...)
	return append(ds, made(t, d, self)...)
}

// acceptsAll reports whether the provider of an instance accepts every configuration that
// conforms to its schema.
func acceptsAll(d *eval.Desired) bool {
	return d.Resource.Provider().IsBuiltIn() && d.Addr().Resource.Mode == addr.Managed
}

// configuration lets the provider validate the block, as far as its text determines the values.
// It records configurations without messages.
func (v *validator) configuration(t *demand.Task, d *eval.Desired, s *schema.Resource) diag.List {
	written, _, ds := resourceclient.ConfigValue(t, d, s)
	if ds = resourceclient.Blame(d, s, ds); ds.HasErrors() {
		return ds
	}
	a := d.Addr()
	prov, more := v.in.Providers.Any(v.ctx, d.Resource.Provider())
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	more = prov.ValidateResource(v.ctx, a.Resource.Mode, a.Resource.Type, written)
	if len(more) == 0 && written.IsWhollyKnown() {
		v.mu.Lock()
		v.validated[d.Resource.Config()] = written
		v.mu.Unlock()
	}
	return append(ds, resourceclient.Blame(d, s, more).About(a.String())...)
}
