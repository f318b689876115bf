package manager

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A handle is a provider as a pool hands it out: whatever process does the work at
// the moment. See the package comment for what happens when that ends.
type handle struct {
	pool   *Pool
	addr   addr.Provider
	prog   *program
	config cty.Value       // NilVal: not configured
	limit  *parallel.Turns // of the configuration; nil: none

	mu         sync.Mutex // held while a process is looked for
	proc       *process
	callFailed bool // a call of ours failed and the process ended: no other is looked for
}

var _ provider.Provider = (*handle)(nil)

// process is the one that does the work now.
func (h *handle) process(ctx context.Context) (*process, diag.List) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil && (h.callFailed || !h.proc.ended()) {
		return h.proc, nil
	}
	proc, ds := h.pool.take(ctx, h)
	if ds.HasErrors() {
		return nil, ds
	}
	if h.proc != nil {
		h.pool.host.left(h.proc, h.pool)
	}
	h.proc = proc
	return proc, ds
}

// usable reports whether the handle has a process.
func (h *handle) usable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.proc != nil
}

// failed reports whether a call of ours failed since the process ended.
func (h *handle) failed(proc *process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.callFailed && h.proc == proc
}

// note remembers that a call failed because the process ended.
func (h *handle) note(proc *process, failed bool) {
	if !failed || !proc.ended() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callFailed = h.callFailed || h.proc == proc
}

// do makes a call when it is the pool's turn. fallback is the answer where there
// is none.
func do[R any](ctx context.Context, h *handle, fallback R, call func(provider.Provider) (R, diag.List)) (R, diag.List) {
	if h.config == cty.NilVal {
		if other := h.pool.configured(h.addr); other != nil {
			h = other
		}
	}
	for tries := 1; ; tries++ {
		proc, ds := h.process(ctx)
		if ds.HasErrors() {
			return fallback, ds
		}
		if ds := h.turn(ctx); ds.HasErrors() {
			return fallback, ds
		}
		out, ds := answer(proc, call, h.give)
		if again(proc, ds, tries) && !h.failed(proc) {
			continue
		}
		h.note(proc, ds.HasErrors())
		return out, ds
	}
}

// mostTries is how many processes are tried one after the other that end before
// they can be asked.
const mostTries = 3

// again reports whether a call did not reach its process, which had ended, so that
// another one is asked.
func again(proc *process, ds diag.List, tries int) bool {
	return tries < mostTries && has(ds, provider.CodeUnasked) && proc.ended()
}

// turn waits for the pool's turn to make a call.
func (p *Pool) turn(ctx context.Context, a addr.Provider) diag.List {
	if err := p.host.turns.Take(ctx, p.name); err != nil {
		return uncalled(a)
	}
	return nil
}

// turn waits for a turn among the calls of the configuration, and then for the pool's.
func (h *handle) turn(ctx context.Context) diag.List {
	if err := h.limit.Take(ctx, h.pool.name); err != nil {
		return uncalled(h.addr)
	}
	ds := h.pool.turn(ctx, h.addr)
	if ds.HasErrors() {
		h.limit.Give()
	}
	return ds
}

// give ends what turn began.
func (h *handle) give() {
	h.pool.host.turns.Give()
	h.limit.Give()
}

func uncalled(a addr.Provider) diag.List {
	return interrupted("Provider was not called", "The run was interrupted before it was the turn of a call of the provider %s.", a.Display())
}

// check makes a call that any process of the program can answer.
func check[R any](ctx context.Context, h *handle, fallback R, call func(provider.Provider) (R, diag.List)) (R, diag.List) {
	if h.config != cty.NilVal {
		return do(ctx, h, fallback, call)
	}
	if ds := h.pool.turn(ctx, h.addr); ds.HasErrors() {
		return fallback, ds
	}
	defer h.pool.host.turns.Give()
	return visit(ctx, h.pool, h.prog, fallback, call)
}

// only makes a call that answers with messages alone.
func only(call func(provider.Provider) diag.List) func(provider.Provider) (struct{}, diag.List) {
	return func(p provider.Provider) (struct{}, diag.List) { return struct{}{}, call(p) }
}

func (h *handle) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	return h.pool.Schema(ctx, h.addr)
}

func (h *handle) ValidateConfig(ctx context.Context, config cty.Value) (cty.Value, diag.List) {
	return check(ctx, h, config, func(p provider.Provider) (cty.Value, diag.List) { return p.ValidateConfig(ctx, config) })
}

// Configure is for who makes the handle; a configuration is no call of its users.
func (h *handle) Configure(context.Context, cty.Value) diag.List {
	return diag.Errorf(diag.CodeProviderCall, nil, "Provider is configured already", "The provider %s is configured by the pool that it comes from.", h.addr.Display())
}

func (h *handle) ValidateResource(ctx context.Context, mode addr.Mode, typ string, config cty.Value) diag.List {
	_, ds := check(ctx, h, struct{}{}, only(func(p provider.Provider) diag.List { return p.ValidateResource(ctx, mode, typ, config) }))
	return ds
}

func (h *handle) UpgradeState(ctx context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	return do(ctx, h, cty.DynamicVal, func(p provider.Provider) (cty.Value, diag.List) { return p.UpgradeState(ctx, req) })
}

func (h *handle) UpgradeIdentity(ctx context.Context, typ string, version int64, json []byte) (cty.Value, diag.List) {
	return do(ctx, h, cty.NilVal, func(p provider.Provider) (cty.Value, diag.List) { return p.UpgradeIdentity(ctx, typ, version, json) })
}

func (h *handle) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	none := provider.ReadResponse{State: req.Prior, Private: req.Private, Identity: req.Identity}
	return do(ctx, h, none, func(p provider.Provider) (provider.ReadResponse, diag.List) { return p.Read(ctx, req) })
}

func (h *handle) Plan(ctx context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	none := provider.PlanResponse{Planned: req.Prior, Private: req.Private, Identity: req.PriorIdentity}
	return do(ctx, h, none, func(p provider.Provider) (provider.PlanResponse, diag.List) { return p.Plan(ctx, req) })
}

func (h *handle) Apply(ctx context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	none := provider.ApplyResponse{State: req.Prior, Private: req.Private, Identity: req.PlannedIdentity}
	return do(ctx, h, none, func(p provider.Provider) (provider.ApplyResponse, diag.List) { return p.Apply(ctx, req) })
}

func (h *handle) Import(ctx context.Context, req provider.ImportRequest) ([]provider.Imported, diag.List) {
	return do(ctx, h, nil, func(p provider.Provider) ([]provider.Imported, diag.List) { return p.Import(ctx, req) })
}

func (h *handle) Move(ctx context.Context, req provider.MoveRequest) (provider.MoveResponse, diag.List) {
	return do(ctx, h, provider.MoveResponse{State: cty.DynamicVal}, func(p provider.Provider) (provider.MoveResponse, diag.List) { return p.Move(ctx, req) })
}

func (h *handle) ReadData(ctx context.Context, typ string, config, meta cty.Value) (cty.Value, diag.List) {
	return do(ctx, h, cty.DynamicVal, func(p provider.Provider) (cty.Value, diag.List) { return p.ReadData(ctx, typ, config, meta) })
}

func (h *handle) OpenEphemeral(ctx context.Context, typ string, config cty.Value) (provider.Opened, diag.List) {
	none := provider.Opened{Result: cty.DynamicVal}
	return do(ctx, h, none, func(p provider.Provider) (provider.Opened, diag.List) { return p.OpenEphemeral(ctx, typ, config) })
}

func (h *handle) RenewEphemeral(ctx context.Context, typ string, private []byte) (provider.Renewal, diag.List) {
	return do(ctx, h, provider.Renewal{}, func(p provider.Provider) (provider.Renewal, diag.List) { return p.RenewEphemeral(ctx, typ, private) })
}

func (h *handle) CloseEphemeral(ctx context.Context, typ string, private []byte) diag.List {
	_, ds := do(ctx, h, struct{}{}, only(func(p provider.Provider) diag.List { return p.CloseEphemeral(ctx, typ, private) }))
	return ds
}

func (h *handle) Functions(ctx context.Context) (map[string]*schema.Function, diag.List) {
	return do(ctx, h, nil, func(p provider.Provider) (map[string]*schema.Function, diag.List) { return p.Functions(ctx) })
}

func (h *handle) CallFunction(ctx context.Context, name string, args []cty.Value) (cty.Value, error) {
	var err error
	v, ds := do(ctx, h, cty.DynamicVal, func(p provider.Provider) (v cty.Value, _ diag.List) {
		v, err = p.CallFunction(ctx, name, args)
		return v, nil
	})
	if err == nil {
		err = ds.Err()
	}
	return v, err
}

// Stop and Close are the pool's.
func (h *handle) Stop(ctx context.Context) error {
	h.pool.Stop(ctx)
	return nil
}

func (h *handle) Close() error { return nil }
