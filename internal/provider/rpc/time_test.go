package rpc_test

import (
	"context"
	"os"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// timeProvider starts the real hashicorp/time provider, with protocol 5.
func timeProvider(t testing.TB, cache *rpc.SchemaCache) provider.Provider {
	t.Helper()
	path := os.Getenv("TERRACE_TEST_PROVIDER_TIME")
	if path == "" {
		t.Skip("SKIP: TERRACE_TEST_PROVIDER_TIME does not name the binary of hashicorp/time")
	}
	p, ds := rpc.Launch(context.Background(), rpc.Options{
		Addr: addr.DefaultProvider("time"), Path: path, Dir: t.TempDir(), Env: os.Environ(), Cache: cache,
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestTime(t *testing.T) {
	ctx := context.Background()
	p := timeProvider(t, nil)
	s, ds := p.Schema(ctx)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if ds := p.Configure(ctx, cty.EmptyObjectVal); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	b := s.Resource(addr.Managed, "time_static").Block
	config, err := b.Coerce(cty.ObjectVal(map[string]cty.Value{"triggers": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")})}))
	if err != nil {
		t.Fatal(err)
	}
	if ds := p.ValidateResource(ctx, addr.Managed, "time_static", config); len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	prior := cty.NullVal(b.ImpliedType())
	plan, ds := p.Plan(ctx, provider.PlanRequest{Type: "time_static", Prior: prior, Proposed: b.ProposedNew(prior, config), Config: config})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if plan.Planned.GetAttr("rfc3339").IsKnown() {
		t.Errorf("planned %#v", plan.Planned)
	}
	got, ds := p.Apply(ctx, provider.ApplyRequest{Type: "time_static", Prior: prior, Planned: plan.Planned, Config: config, Private: plan.Private})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if !got.State.IsWhollyKnown() || got.State.GetAttr("triggers").LengthInt() != 1 {
		t.Errorf("state %#v", got.State)
	}
	read, ds := p.Read(ctx, provider.ReadRequest{Type: "time_static", Prior: got.State, Private: got.Private})
	if ds.HasErrors() || !read.State.RawEquals(got.State) {
		t.Errorf("read %#v: %v", read.State, ds.Err())
	}
	v, err := p.CallFunction(ctx, "rfc3339_parse", []cty.Value{cty.StringVal("2024-02-03T04:05:06Z")})
	if err != nil || !v.GetAttr("year").RawEquals(cty.NumberIntVal(2024)) {
		t.Errorf("rfc3339_parse: %#v, %v", v, err)
	}
	if _, err := p.CallFunction(ctx, "rfc3339_parse", []cty.Value{cty.StringVal("x")}); err == nil {
		t.Error("no error for an argument that is no time")
	} else if ae, ok := err.(*provider.ArgError); !ok || ae.Arg != 0 {
		t.Errorf("%T: %v", err, err)
	}
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}
