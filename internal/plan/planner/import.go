package planner

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
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
	d, more := p.importTarget(t, a)
	var obj *imported
	if d != nil && !more.HasErrors() {
		obj, more = p.importOne(t, d, id)
	}
	ds = append(append(ds, more...), p.messages(nil)...)
	if ds.HasErrors() || obj == nil {
		return nil, append(ds, p.client.Close()...)
	}
	obj.Sensitive = p.importSensitive(t, d, obj)
	edit := p.in.State.Edit()
	edit.Apply(state.Change{Object: addr.Object{Instance: a}, Provider: obj.provider, New: obj.Object})
	return edit.Freeze(), append(ds, p.client.Close()...)
}

// imported is an imported object as it is stored.
type imported struct {
	*state.Object
	value    cty.Value
	schema   *schema.Resource
	provider addr.ProviderConfig
}

// importSensitive returns the sensitive paths of an imported object: those that the schema
// declares, and those that have a sensitive value in the configuration. It takes the values of
// other objects from state. Errors in the configuration do not concern the import: no message
// of the graph is reported after this.
func (p *driver) importSensitive(t *demand.Task, d *eval.Desired, obj *imported) []cty.Path {
	p.walked = true
	_, given, _ := resourceclient.ConfigValue(t, d, obj.schema)
	return resourceclient.SensitivePaths(obj.schema, obj.value, resourceclient.Present(obj.value, given))
}

// importTarget returns the instance in the configuration; nil if it has errors.
func (p *driver) importTarget(t *demand.Task, a addr.Instance) (*eval.Desired, diag.List) {
	d := p.ev.Desired(t, a)
	if d == nil && !p.graph.Diags().HasErrors() { // otherwise these messages contain the reason
		return nil, diag.Errorf(diag.CodePlanImportNoConfiguration, nil, "Configuration for import target does not exist", "The configuration for the given import %s does not exist. All target instances must have an associated configuration to be imported.", a)
	}
	return d, nil
}

func (p *driver) importOne(t *demand.Task, d *eval.Desired, id string) (*imported, diag.List) {
	a := d.Addr()
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
	if ds = append(ds, more.About(a.String())...); more.HasErrors() {
		return nil, ds
	}
	stored, more := sub.Store(obj)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return &imported{Object: stored, value: obj.Value, schema: s, provider: pc.Addr}, ds
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
