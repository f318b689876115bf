package planner

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Import adds one existing object to a state without a plan, for the import command. It
// evaluates only the provider configuration and the instance keys, with values from state.
// Nothing else is read, planned or changed. The mode of the input is ignored.
func Import(ctx context.Context, in Input, a addr.Instance, id string) (*state.State, diag.List) {
	in.Mode, in.SkipRefresh = plan.RefreshOnly, true
	p := newDriver(ctx, in)
	ds := p.prepare()
	if ds.HasErrors() {
		return nil, ds
	}
	t := p.graph.Task(ctx)
	changed, more := p.importOne(t, a, id)
	p.graph.Report(p.client.Close())
	ds = append(append(ds, more...), p.messages(nil)...)
	if ds.HasErrors() || changed == nil {
		return nil, ds
	}
	d := p.in.State.Edit()
	d.Apply(*changed)
	return d.Freeze(), ds
}

func (p *driver) importOne(t *demand.Task, a addr.Instance, id string) (*state.Change, diag.List) {
	d := p.ev.Desired(t, a)
	if d == nil {
		if p.graph.Diags().HasErrors() {
			return nil, nil // the messages contain the reason
		}
		return nil, diag.Errorf(diag.CodePlanImportNoConfiguration, nil, "Configuration for import target does not exist", "The configuration for the given import %s does not exist. All target instances must have an associated configuration to be imported.", a)
	}
	s, pc, ds := p.importWith(t, d)
	if ds.HasErrors() {
		return nil, ds
	}
	prov, more := p.client.Configured(t, pc, &d.Resource.Config().At)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	if _, _, ok := p.prior.Object(addr.Object{Instance: a}); ok {
		return nil, append(ds, diag.Errorf(diag.CodePlanAlreadyManaged, nil, "Resource already managed by Terrace", "Terrace is already managing a remote object for %s. To import to this address you must first remove the existing object from the state.", a)...)
	}
	sub := p.client.Subject(p.ev, a, pc.Addr, s, prov)
	obj, more := sub.Import(id, cty.NilVal)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	stored, more := sub.Store(obj)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return &state.Change{Object: addr.Object{Instance: a}, Provider: pc.Addr, New: stored}, ds
}

// importWith returns the schema and the provider configuration of an instance.
func (p *planner) importWith(t *demand.Task, d *eval.Desired) (*schema.Resource, *eval.ProviderConfig, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, nil, ds
	}
	pc, more := d.Provider(t)
	return s, pc, append(ds, more...)
}
