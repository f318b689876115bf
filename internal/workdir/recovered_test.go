package workdir

import (
	"context"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// careless is a provider that panics in every method that it does not define.
type careless struct{ provider.Provider }

func (careless) Read(_ context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	return provider.ReadResponse{State: req.Prior, Private: []byte("answer")}, nil
}

// A panic of a provider in the same program becomes a message that names the method. Other
// calls of the provider continue.
func TestRecovered(t *testing.T) {
	ctx := t.Context()
	thing := addr.Provider{Host: "example.com", Namespace: "me", Type: "thing"}
	p, ds := recovering(thing, func(context.Context) (provider.Provider, diag.List) { return careless{}, nil })(ctx)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	out, ds := p.Plan(ctx, provider.PlanRequest{Prior: cty.StringVal("prior")})
	if len(ds) != 1 || ds[0].Code != diag.CodeProviderPanic || !strings.Contains(ds[0].Detail, "The method Plan of the provider example.com/me/thing panicked") {
		t.Errorf("Plan: %v", ds)
	}
	if !out.Planned.RawEquals(cty.StringVal("prior")) {
		t.Errorf("Plan: the object is %#v", out.Planned)
	}
	_, functionErr := p.CallFunction(ctx, "f", nil)
	for method, err := range map[string]error{"CallFunction": functionErr, "Stop": p.Stop(ctx), "Close": p.Close()} {
		if err == nil || !strings.HasPrefix(err.Error(), "the method "+method+" of the provider example.com/me/thing panicked: ") {
			t.Errorf("%s: the error is %v", method, err)
		}
	}
	if out, ds := p.Read(ctx, provider.ReadRequest{Prior: cty.True}); len(ds) > 0 || string(out.Private) != "answer" {
		t.Errorf("Read: %#v, %v", out, ds)
	}
	if _, ds := recovering(thing, func(context.Context) (provider.Provider, diag.List) { panic("no") })(ctx); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "The method Factory of") {
		t.Errorf("Factory: %v", ds)
	}
}
