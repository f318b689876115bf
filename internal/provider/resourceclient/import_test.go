package resourceclient

import (
	"context"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/fake"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// The result of an import is checked when it is read afterwards, even if the provider
// returns it unchanged.
func TestImportUnusable(t *testing.T) {
	block := &schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Computed: true}, "secret": {Type: cty.String, Optional: true, WriteOnly: true},
	}}
	for name, attrs := range map[string]map[string]cty.Value{
		"unknown":    {"id": cty.UnknownVal(cty.String), "secret": cty.NullVal(cty.String)},
		"write-only": {"id": cty.StringVal("i"), "secret": cty.StringVal("s")},
		"":           {"id": cty.StringVal("i"), "secret": cty.NullVal(cty.String)},
	} {
		script := &fake.Script{Managed: map[string]*fake.Type{"fake_thing": {Schema: &schema.Resource{Block: block}, Import: func(provider.ImportRequest) ([]provider.Imported, diag.List) {
			return []provider.Imported{{Type: "fake_thing", State: cty.ObjectVal(attrs)}}, nil
		}}}}
		p := script.New()
		if ds := p.Configure(context.Background(), cty.EmptyObjectVal); ds.HasErrors() {
			t.Fatal(ds)
		}
		sub := &Subject{
			x: New(context.Background(), Options{}), Schema: &schema.Resource{Block: block}, prov: p,
			Addr: addr.Instance{Resource: addr.Resource{Mode: addr.Managed, Type: "fake_thing", Name: "x"}},
		}
		if _, ds := sub.Import("i", cty.NilVal); ds.HasErrors() != (name != "") {
			t.Errorf("%q: %v", name, ds)
		}
	}
}
