package resourceclient

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Read reads a data source with a validated configuration without marks. sensitive are the
// sensitive paths in the configuration. If the provider defers the data source, it returns the
// reason and no value.
func (sub *Subject) Read(config cty.Value, sensitive []cty.Path) (cty.Value, provider.DeferReason, diag.List) {
	a := sub.Addr
	e := event.Event{Kind: event.ReadStart, Object: addr.Object{Instance: a}, Op: event.Read}
	sub.x.o.Observe.Send(e)
	ctx, wait := sub.deferrable()
	done := sub.x.call()
	v, ds := sub.prov.ReadData(ctx, a.Resource.Type, config, sub.meta)
	done()
	if ds.HasErrors() {
		return sub.Null(), "", ds
	}
	if wait.Reason != "" {
		return sub.Null(), wait.Reason, ds
	}
	if v == cty.NilVal || v.IsNull() {
		return sub.Null(), "", append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced null object", "Provider %q produced a null value for %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Of.Provider.String(), a)...)
	}
	if err := schema.AssertUsable(sub.Schema.Block, v, true); err != nil {
		return sub.Null(), "", append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "Provider %q produced an invalid value for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", sub.Of.Provider.String(), a, err)...)
	}
	e.Kind = event.ReadDone
	called := sub.Called(v, sensitive)
	e.IDKey, e.IDValue = called.Key, called.Value
	sub.x.o.Observe.Send(e)
	return v, "", ds
}
