package validate

import (
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/zclconf/go-cty/cty"
)

// list validates an instance of a list block. It returns a value whose data is unknown.
func (v *validator) list(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	of, more := d.Resource.Listed(t)
	if ds = append(ds, more...); more.HasErrors() {
		return cty.DynamicVal, ds
	}
	out := eval.UnknownListed(of)
	pc, more := d.Provider(t)
	ds = append(ds, more...)
	if pc != nil && v.limited() != nil {
		v.graph.Report(v.provider(t, pc))
	}
	_, more = d.Listing(t)
	ds = append(ds, more...)
	if b, more := d.Resource.Body(s); more.HasErrors() {
		return out, append(ds, resourceclient.Blame(d, s, more)...)
	} else if b.Dynamic() { // the contents of dynamic blocks are only evaluated if there are any
		if more = b.Static(t, d.Scope(cty.NilVal)); more.HasErrors() {
			return out, append(ds, resourceclient.Blame(d, s, more)...)
		}
	}
	config, _, more := resourceclient.ConfigValue(t, d, s)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() || v.in.SchemasOnly {
		return out, ds
	}
	prov, more := v.in.Providers.Any(v.ctx, d.Resource.Provider())
	if ds = append(ds, more...); more.HasErrors() {
		return out, ds
	}
	more = prov.ValidateResource(v.ctx, d.Addr().Resource.Mode, d.Addr().Resource.Type, config)
	return out, append(ds, resourceclient.Blame(d, s, more)...).About(d.Addr().String())
}
