package workdir

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// recovering is a factory of providers whose panics are error messages: the program that
// has them in it goes on, and what was applied before is in the state.
func recovering(a addr.Provider, f provider.Factory) provider.Factory {
	return func(ctx context.Context) (out provider.Provider, ds diag.List) {
		r := &recovered{addr: a}
		defer r.caught("Factory", &ds)
		if r.p, ds = f(ctx); ds.HasErrors() {
			return nil, ds
		}
		return r, ds
	}
}

// recovered is a provider of a program that has Terrace in it.
type recovered struct {
	addr addr.Provider
	p    provider.Provider
}

// caught is deferred around a call: it adds a message about a panic of it.
func (r *recovered) caught(method string, ds *diag.List) {
	if x := recover(); x != nil {
		more := diag.Errorf(diag.CodeProviderPanic, nil, "Provider panicked", "The method %s of the provider %s panicked: %v. This is a mistake in the provider, which is part of this program.", method, r.addr.Display(), x)
		*ds = append(*ds, more...)
	}
}

// failed is caught for methods that return errors.
func (r *recovered) failed(method string, err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("the method %s of the provider %s panicked: %v", method, r.addr.Display(), x)
	}
}

func (r *recovered) Schema(ctx context.Context) (s *schema.Provider, ds diag.List) {
	defer r.caught("Schema", &ds)
	return r.p.Schema(ctx)
}

func (r *recovered) ValidateConfig(ctx context.Context, config cty.Value) (v cty.Value, ds diag.List) {
	v = config
	defer r.caught("ValidateConfig", &ds)
	return r.p.ValidateConfig(ctx, config)
}

func (r *recovered) Configure(ctx context.Context, config cty.Value) (ds diag.List) {
	defer r.caught("Configure", &ds)
	return r.p.Configure(ctx, config)
}

func (r *recovered) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) (ds diag.List) {
	defer r.caught("ValidateResource", &ds)
	return r.p.ValidateResource(ctx, mode, typ, config)
}

func (r *recovered) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (v cty.Value, ds diag.List) {
	v = cty.DynamicVal
	defer r.caught("UpgradeState", &ds)
	return r.p.UpgradeState(ctx, req)
}

func (r *recovered) UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (v cty.Value, ds diag.List) {
	defer r.caught("UpgradeIdentity", &ds)
	return r.p.UpgradeIdentity(ctx, typ, version, json)
}

func (r *recovered) Read(ctx context.Context, req provider.ReadRequest) (out provider.ReadResponse, ds diag.List) {
	out = provider.ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}
	defer r.caught("Read", &ds)
	return r.p.Read(ctx, req)
}

func (r *recovered) Plan(ctx context.Context, req provider.PlanRequest) (out provider.PlanResponse, ds diag.List) {
	out = provider.PlanResponse{Planned: req.Prior, Private: req.Private, Identity: req.PriorIdentity}
	defer r.caught("Plan", &ds)
	return r.p.Plan(ctx, req)
}

func (r *recovered) Apply(ctx context.Context, req provider.ApplyRequest) (out provider.ApplyResponse, ds diag.List) {
	out = provider.ApplyResponse{State: req.Prior, Private: req.Private, Identity: req.PlannedIdentity}
	defer r.caught("Apply", &ds)
	return r.p.Apply(ctx, req)
}

func (r *recovered) Import(ctx context.Context, req provider.ImportRequest) (out []provider.Imported, ds diag.List) {
	defer r.caught("Import", &ds)
	return r.p.Import(ctx, req)
}

func (r *recovered) Move(ctx context.Context, req provider.MoveRequest) (out provider.MoveResponse, ds diag.List) {
	out = provider.MoveResponse{State: cty.DynamicVal}
	defer r.caught("Move", &ds)
	return r.p.Move(ctx, req)
}

func (r *recovered) ReadData(ctx context.Context, typ string, config, meta cty.Value) (v cty.Value, ds diag.List) {
	v = cty.DynamicVal
	defer r.caught("ReadData", &ds)
	return r.p.ReadData(ctx, typ, config, meta)
}

func (r *recovered) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (out provider.Opened, ds diag.List) {
	out = provider.Opened{Result: cty.DynamicVal}
	defer r.caught("OpenEphemeral", &ds)
	return r.p.OpenEphemeral(ctx, typ, config)
}

func (r *recovered) RenewEphemeral(ctx context.Context, typ string, private []byte) (out provider.Renewal, ds diag.List) {
	defer r.caught("RenewEphemeral", &ds)
	return r.p.RenewEphemeral(ctx, typ, private)
}

func (r *recovered) CloseEphemeral(ctx context.Context, typ string, private []byte) (ds diag.List) {
	defer r.caught("CloseEphemeral", &ds)
	return r.p.CloseEphemeral(ctx, typ, private)
}

func (r *recovered) Functions(ctx context.Context) (out map[string]*schema.Function, ds diag.List) {
	defer r.caught("Functions", &ds)
	return r.p.Functions(ctx)
}

func (r *recovered) CallFunction(ctx context.Context, name string, args []cty.Value) (v cty.Value, err error) {
	v = cty.DynamicVal
	defer r.failed("CallFunction", &err)
	return r.p.CallFunction(ctx, name, args)
}

func (r *recovered) Stop(ctx context.Context) (err error) {
	defer r.failed("Stop", &err)
	return r.p.Stop(ctx)
}

func (r *recovered) Close() (err error) {
	defer r.failed("Close", &err)
	return r.p.Close()
}

// Ended reports whether the provider is of no use any more, if it tells.
func (r *recovered) Ended() bool {
	e, ok := r.p.(interface{ Ended() bool })
	return ok && e.Ended()
}
