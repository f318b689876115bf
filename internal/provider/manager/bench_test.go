package manager

import (
	"context"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// echo is a provider that plans the proposed object.
type echo struct{ provider.Unimplemented }

func (echo) Plan(_ context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	return provider.PlanResponse{Planned: req.Proposed}, nil
}

func (echo) ReadData(_ context.Context, _ string, config, _ cty.Value) (cty.Value, diag.List) {
	return config, nil
}

type echoes struct{}

func (echoes) Factory(addr.Provider) (provider.Factory, diag.List) {
	return func(context.Context) (provider.Provider, diag.List) { return echo{}, nil }, nil
}

// BenchmarkCall measures the overhead of a pool for a call of a configured provider.
func BenchmarkCall(b *testing.B) {
	pool := New(echoes{})
	defer pool.Close()
	p, ds := pool.Configured(b.Context(), addr.ProviderConfig{Provider: thing}, configOf("x"))
	if ds.HasErrors() {
		b.Fatal(ds.Err())
	}
	v := configOf("a")
	b.Run("Plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out, ds := p.Plan(b.Context(), provider.PlanRequest{Type: "thing", Prior: cty.NullVal(v.Type()), Proposed: v, Config: v}); ds.HasErrors() || out.Planned.IsNull() {
				b.Fatal(ds.Err())
			}
		}
	})
	b.Run("ReadData", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out, ds := p.ReadData(b.Context(), "thing", v, cty.NilVal); ds.HasErrors() || out.IsNull() {
				b.Fatal(ds.Err())
			}
		}
	})
}
