package fake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/fake"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func thing() *schema.Resource {
	return &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"name": {Type: cty.String, Required: true}, "id": {Type: cty.String, Computed: true}, "list": {Type: cty.List(cty.String), Computed: true},
	}}}
}

type vals = map[string]cty.Value

func config(t *testing.T, name cty.Value) cty.Value {
	t.Helper()
	v, err := thing().Block.Coerce(cty.ObjectVal(vals{"name": name}))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPlainLife(t *testing.T) {
	ctx := context.Background()
	s := &fake.Script{Managed: map[string]*fake.Type{"thing": {Schema: thing(), Replace: []string{"name"}}}}
	p, ds := s.Factory()(ctx)
	if ds != nil {
		t.Fatal(ds)
	}
	c := config(t, cty.StringVal("a"))
	null := cty.NullVal(c.Type())
	plan, ds := p.Plan(ctx, provider.PlanRequest{Type: "thing", Prior: null, Proposed: c, Config: c})
	if ds != nil || plan.Planned.GetAttr("id").IsKnown() {
		t.Fatalf("%#v, %v", plan, ds)
	}
	got, ds := p.Apply(ctx, provider.ApplyRequest{Type: "thing", Prior: null, Planned: plan.Planned, Config: c})
	want := cty.ObjectVal(vals{"name": cty.StringVal("a"), "id": cty.StringVal("thing.id"), "list": cty.ListValEmpty(cty.String)})
	if ds != nil || !got.State.RawEquals(want) {
		t.Fatalf("%#v, %v", got.State, ds)
	}
	c2 := config(t, cty.StringVal("b"))
	plan, ds = p.Plan(ctx, provider.PlanRequest{Type: "thing", Prior: got.State, Proposed: thing().Block.ProposedNew(got.State, c2), Config: c2})
	if ds != nil || len(plan.RequiresReplace) != 1 || !plan.Planned.GetAttr("id").RawEquals(cty.StringVal("thing.id")) {
		t.Errorf("%#v, %v", plan, ds)
	}
	if s.Open() != 1 || p.Close() != nil || p.Close() != nil || s.Open() != 0 {
		t.Error("Close")
	}
	_, ds = p.Read(ctx, provider.ReadRequest{Type: "thing", Prior: got.State})
	if !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "closed") {
		t.Error(ds)
	}
	var calls []string
	for _, c := range s.Calls() {
		calls = append(calls, c.String())
	}
	if d := cmp.Diff([]string{"Plan thing", "Apply thing", "Plan thing", "Close"}, calls); d != "" {
		t.Error(d)
	}
}

func TestScript(t *testing.T) {
	ctx := context.Background()
	no := diag.Errorf("", nil, "No", "No.")
	s := &fake.Script{
		Configure: func(cty.Value) diag.List { return nil },
		Managed: map[string]*fake.Type{"thing": {
			Schema:   thing(),
			Validate: func(cty.Value) diag.List { return no },
			Plan:     func(provider.PlanRequest) (provider.PlanResponse, diag.List) { return provider.PlanResponse{}, no },
			Apply:    func(provider.ApplyRequest) (provider.ApplyResponse, diag.List) { return provider.ApplyResponse{}, no },
			Read:     func(provider.ReadRequest) (provider.ReadResponse, diag.List) { return provider.ReadResponse{}, no },
			Import:   func(provider.ImportRequest) ([]provider.Imported, diag.List) { return nil, no },
			Upgrade:  func(provider.UpgradeRequest) (cty.Value, diag.List) { return cty.DynamicVal, no },
			Move:     func(provider.MoveRequest) (provider.MoveResponse, diag.List) { return provider.MoveResponse{}, no },
		}},
		Data:      map[string]*fake.Data{"thing": {Schema: thing()}},
		Ephemeral: map[string]*fake.Ephemeral{"thing": {Schema: thing()}},
		Functions: map[string]*fake.Function{"f": {Signature: &schema.Function{Return: cty.String}, Call: func([]cty.Value) (cty.Value, error) {
			return cty.DynamicVal, errors.New("no")
		}}},
	}
	p := s.New()
	c := config(t, cty.StringVal("a"))
	if ds := p.Configure(ctx, cty.EmptyObjectVal); ds != nil {
		t.Error(ds)
	}
	if ds := p.Configure(ctx, cty.EmptyObjectVal); !ds.HasErrors() {
		t.Error("configured twice")
	}
	fails := map[string]diag.List{"validate": p.ValidateResource(ctx, addr.Managed, "thing", c)}
	_, fails["plan"] = p.Plan(ctx, provider.PlanRequest{Type: "thing", Proposed: c})
	_, fails["apply"] = p.Apply(ctx, provider.ApplyRequest{Type: "thing", Planned: c})
	_, fails["read"] = p.Read(ctx, provider.ReadRequest{Type: "thing", Prior: c})
	_, fails["import"] = p.Import(ctx, provider.ImportRequest{Type: "thing"})
	_, fails["upgrade"] = p.UpgradeState(ctx, provider.UpgradeRequest{Type: "thing"})
	_, fails["move"] = p.Move(ctx, provider.MoveRequest{TargetType: "thing"})
	for what, ds := range fails {
		if len(ds) != 1 || ds[0].Summary != "No" {
			t.Errorf("%s: %v", what, ds)
		}
	}
	if v, ds := p.ReadData(ctx, "thing", c, cty.NilVal); ds != nil || !v.GetAttr("id").RawEquals(cty.StringVal("thing.id")) {
		t.Errorf("data: %#v, %v", v, ds)
	}
	if v, ds := p.OpenEphemeral(ctx, "thing", c); ds != nil || !v.Result.IsWhollyKnown() {
		t.Errorf("ephemeral: %#v, %v", v, ds)
	}
	if _, err := p.CallFunction(ctx, "f", nil); err == nil {
		t.Error("function")
	}
}

func TestStrict(t *testing.T) {
	ctx := context.Background()
	done, cancel := context.WithCancel(ctx)
	cancel()
	p := (&fake.Script{Managed: map[string]*fake.Type{"thing": {Schema: thing()}}}).New()
	c := config(t, cty.StringVal("a"))
	for i, ds := range []diag.List{
		p.ValidateResource(ctx, addr.Managed, "thing", config(t, cty.StringVal("a").Mark("m"))),
		p.ValidateResource(ctx, addr.Managed, "thing", cty.EmptyObjectVal),
		p.ValidateResource(ctx, addr.Managed, "other", c),
		p.ValidateResource(ctx, addr.Data, "thing", c),
		p.ValidateResource(done, addr.Managed, "thing", c),
	} {
		if !ds.HasErrors() {
			t.Error(fmt.Sprint(i), "no error")
		}
	}
}
