package mock

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

var source = addr.Provider{Host: "registry.opentofu.org", Namespace: "x", Type: "x"}

func typ() *schema.Resource {
	return &schema.Resource{Block: &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"name": {Type: cty.String, Required: true}, "id": {Type: cty.String, Computed: true},
			"size": {Type: cty.Number, Optional: true, Computed: true}, "tags": {Type: cty.Map(cty.String), Computed: true},
			"secret": {Type: cty.String, Optional: true, WriteOnly: true},
		},
		Blocks: map[string]*schema.NestedBlock{"item": {Nesting: schema.List, Block: &schema.Block{Attributes: map[string]*schema.Attribute{
			"key": {Type: cty.String, Required: true}, "id": {Type: cty.String, Computed: true},
		}}}},
	}}
}

// decorated returns a provider with rules, and a context for calls about x_y.a.
func decorated(t *testing.T, r *Rules) (context.Context, provider.Provider, *Shared) {
	t.Helper()
	script := &fake.Script{Managed: map[string]*fake.Type{"x_y": {Schema: typ()}}}
	s := &Shared{}
	t.Cleanup(s.Close)
	f := s.Decorate(r)(source, func(ctx context.Context) (provider.Provider, diag.List) { return script.Factory()(ctx) })
	p, ds := f(t.Context())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	c := provider.Caller{Config: addr.ProviderConfig{Provider: source}, Instance: addr.Instance{Resource: addr.Resource{Type: "x_y", Name: "a"}}}
	return provider.WithCaller(t.Context(), c), p, s
}

func configured(name string) cty.Value {
	null := cty.NullVal(cty.String)
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(name), "id": null, "size": cty.NullVal(cty.Number), "tags": cty.NullVal(cty.Map(cty.String)), "secret": null,
		"item": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal("k"), "id": null})}),
	})
}

func planned(t *testing.T, ctx context.Context, p provider.Provider, config cty.Value) cty.Value {
	t.Helper()
	got, ds := p.Plan(ctx, provider.PlanRequest{Type: "x_y", Prior: cty.NullVal(config.Type()), Proposed: config, Config: config})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if errs := schema.AssertPlanValid(typ().Block, cty.NullVal(config.Type()), config, got.Planned, false); len(errs) > 0 {
		t.Fatalf("the plan breaks the protocol: %v", errs)
	}
	return got.Planned
}

func TestMockValues(t *testing.T) {
	rules := &Rules{Configs: map[addr.ProviderConfig]*Config{{Provider: source}: {Resources: map[string]Values{
		"x_y": {Value: cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(3), "item": cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("i")})})},
	}}}}
	ctx, p, _ := decorated(t, rules)
	v := planned(t, ctx, p, configured("n"))
	if id := v.GetAttr("id"); !id.IsKnown() || len(id.AsString()) != wordLength {
		t.Errorf("id is %#v", id)
	}
	if !v.GetAttr("size").RawEquals(cty.NumberIntVal(3)) || v.GetAttr("tags").LengthInt() != 0 {
		t.Errorf("size is %#v, tags %#v", v.GetAttr("size"), v.GetAttr("tags"))
	}
	if id := v.GetAttr("item").Index(cty.Zero).GetAttr("id"); !id.RawEquals(cty.StringVal("i")) {
		t.Errorf("item.id is %#v", id)
	}
	_, again, _ := decorated(t, rules)
	if w := planned(t, ctx, again, configured("n")); !w.RawEquals(v) {
		t.Errorf("another run generates other values: %#v, %#v", v, w)
	}
	if w := planned(t, ctx, p, configured("n")); !w.RawEquals(v) {
		t.Errorf("the second plan of one object has other values: %#v, %#v", v, w)
	}
	if _, ds := p.Apply(ctx, provider.ApplyRequest{Type: "x_y", Prior: cty.NullVal(v.Type()), Planned: v, Config: configured("n")}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if w := planned(t, ctx, p, configured("n")); w.GetAttr("id").RawEquals(v.GetAttr("id")) {
		t.Error("another object in the place of the first has the same id")
	}
}

// When an object is planned again with known arguments, values that were known before stay the
// same. This includes a null that becomes a generated value, also in lists and in sets.
func TestMockPlannedTwice(t *testing.T) {
	str := func(text string) cty.Value { return cty.StringVal(text) }
	unknown, null := cty.UnknownVal(cty.String), cty.NullVal(cty.String)
	make := func(name, a, key cty.Value) cty.Value {
		item := func(key cty.Value) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"key": key, "id": null})
		}
		return cty.ObjectVal(map[string]cty.Value{
			"name": name, "a": a, "id": null, "z": null,
			"list": cty.ListVal([]cty.Value{item(key), item(str("fixed"))}),
			"set":  cty.SetVal([]cty.Value{item(key), item(str("fixed"))}),
		})
	}
	text := func() *schema.Attribute { return &schema.Attribute{Type: cty.String, Computed: true} }
	optional := func() *schema.Attribute { return &schema.Attribute{Type: cty.String, Optional: true, Computed: true} }
	inner := &schema.Block{Attributes: map[string]*schema.Attribute{"key": {Type: cty.String, Required: true}, "id": text()}}
	block := &schema.Block{
		Attributes: map[string]*schema.Attribute{"name": {Type: cty.String, Required: true}, "a": optional(), "id": text(), "z": text()},
		Blocks:     map[string]*schema.NestedBlock{"list": {Nesting: schema.List, Block: inner}, "set": {Nesting: schema.Set, Block: inner}},
	}
	for _, v := range []Values{{}, {AtApply: true}, {Value: cty.ObjectVal(map[string]cty.Value{"z": str("given")})}} {
		d := &filler{values: v, later: v.AtApply, seed: "x_y.a", generation: 1}
		before := make(unknown, unknown, unknown)
		planned := d.object(block, before, before, nil)
		for _, after := range []cty.Value{make(str("n"), null, str("k")), make(str("n"), str("a"), str("z")), make(str("n"), str("a"), str("a"))} {
			again := d.object(block, after, after, nil)
			if errs := schema.AssertObjectCompatible(block, planned, again); len(errs) > 0 {
				t.Errorf("%v: the second plan breaks the protocol: %v\n%#v\n%#v", v, errs, planned, again)
			}
		}
		if len(d.ds) > 0 {
			t.Error(d.ds.Err())
		}
	}
}

// An override of one instance takes precedence over one of all instances, whatever their order.
func TestMockOverrideOfInstance(t *testing.T) {
	var all []Override
	for _, text := range []string{"x_y.a", "x_y.a[0]"} {
		target, err := addr.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Override{Target: target, Values: Values{Value: cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(text)})}})
	}
	for _, list := range [][]Override{all, {all[1], all[0]}} {
		for _, r := range []*Rules{{Overrides: list}, {Configs: map[addr.ProviderConfig]*Config{{Provider: source}: {Overrides: list}}}} {
			_, p, _ := decorated(t, r)
			for i, want := range []string{"x_y.a[0]", "x_y.a"} {
				c := provider.Caller{Config: addr.ProviderConfig{Provider: source}, Instance: addr.Instance{Resource: addr.Resource{Type: "x_y", Name: "a"}, Key: addr.Int(i)}}
				if v := planned(t, provider.WithCaller(t.Context(), c), p, configured("n")); v.GetAttr("id").AsString() != want {
					t.Errorf("instance %d is overridden by %#v", i, v.GetAttr("id"))
				}
			}
		}
	}
}

func TestMockLater(t *testing.T) {
	ctx, p, _ := decorated(t, &Rules{Named: map[string]*Config{"": {AtApply: true}}})
	config := configured("n")
	v := planned(t, ctx, p, config)
	if v.GetAttr("id").IsKnown() {
		t.Errorf("id is known while planning: %#v", v.GetAttr("id"))
	}
	got, ds := p.Apply(ctx, provider.ApplyRequest{Type: "x_y", Prior: cty.NullVal(config.Type()), Planned: v, Config: config})
	if ds.HasErrors() || !got.State.IsWhollyKnown() {
		t.Fatalf("%#v, %v", got.State, ds.Err())
	}
	if errs := schema.AssertObjectCompatible(typ().Block, v, got.State); len(errs) > 0 {
		t.Errorf("the result breaks the protocol: %v", errs)
	}
}

func TestMockOverride(t *testing.T) {
	target, err := addr.ParseTarget("x_y.a")
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string) *Rules {
		return &Rules{Overrides: []Override{{Target: target, Values: Values{Value: cty.ObjectVal(map[string]cty.Value{name: cty.StringVal("v")})}}}}
	}
	ctx, p, _ := decorated(t, set("id"))
	if v := planned(t, ctx, p, configured("n")); !v.GetAttr("id").RawEquals(cty.StringVal("v")) {
		t.Errorf("id is %#v", v.GetAttr("id"))
	}
	for name, want := range map[string]string{"name": "Non-computed field", "nope": "Unknown mock/override field"} {
		ctx, p, _ := decorated(t, set(name))
		_, ds := p.Plan(ctx, provider.PlanRequest{Type: "x_y", Prior: cty.NullVal(configured("n").Type()), Proposed: configured("n"), Config: configured("n")})
		if len(ds) != 1 || len(ds[0].Summary) < len(want) || ds[0].Summary[:len(want)] != want {
			t.Errorf("%s: %v", name, ds)
		}
	}
}
