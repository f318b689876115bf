package manager

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/provider/intercept"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// A handle is a provider as a pool returns it. It passes calls to its current process. See
// the package comment for the end of a process.
type handle struct {
	intercept.Calls
	pool   *Pool
	addr   addr.Provider
	prog   *program
	config cty.Value       // NilVal means no configuration
	limit  *parallel.Turns // limits the calls of the configuration; nil means no limit

	mu         sync.Mutex // held while a process is selected; guards prog too
	proc       *process
	callFailed bool // one of our calls failed because the process ended, so the handle does not get another process
}

var _ provider.Provider = (*handle)(nil)

func newHandle(p *Pool, prog *program, config cty.Value, limit *parallel.Turns) *handle {
	h := &handle{pool: p, addr: prog.addr, prog: prog, config: config, limit: limit}
	h.Calls = intercept.Calls{Handler: h}
	return h
}

// process returns the current process.
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

// failed reports whether one of our calls failed because the process ended.
func (h *handle) failed(proc *process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.callFailed && h.proc == proc
}

// note records that a call failed because the process ended.
func (h *handle) note(proc *process, failed bool) {
	if !failed || !proc.ended() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callFailed = h.callFailed || h.proc == proc
}

// program returns the program whose processes the handle uses.
func (h *handle) program() *program {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prog
}

// separate gives the unit a process of its own from now on, if the call can contain a path. The
// shared process goes on with calls that have begun, and is released with the pool.
func (h *handle) separate(c intercept.Call) {
	prog := h.program()
	if prog.own == nil {
		return
	}
	name := prog.paths.inCall(c)
	if name == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.prog != prog { // another call was first
		return
	}
	h.prog, h.proc, h.callFailed = h.pool.separate(prog, name), nil, false
}

// Handle implements intercept.Handler.
func (h *handle) Handle(ctx context.Context, c intercept.Call) (ds diag.List) {
	call := func(p provider.Provider) diag.List { return c.Do(ctx, p) }
	switch c := c.(type) {
	case *intercept.Schema:
		c.Answer, ds = h.pool.Schema(ctx, h.addr)
		return ds
	case *intercept.Configure: // the pool configures the provider, not its users
		return diag.Errorf(diag.CodeProviderCall, nil, "Provider is configured already", "The provider %s is configured by the pool that it comes from.", h.addr.Display())
	case *intercept.ValidateConfig, *intercept.ValidateResource:
		if h.config == cty.NilVal { // any process of the program can answer
			return h.visit(ctx, c, call)
		}
	}
	return h.do(ctx, c, call)
}

// do waits for the pool's turn and makes a call. It repeats the call on another process if
// the process ended before the call reached it.
func (h *handle) do(ctx context.Context, c intercept.Call, call func(provider.Provider) diag.List) diag.List {
	if h.config == cty.NilVal {
		if other := h.pool.configured(h.addr); other != nil {
			h = other
		}
	}
	h.separate(c)
	for tries := 1; ; tries++ {
		proc, ds := h.process(ctx)
		if ds.HasErrors() {
			return ds
		}
		if ds := h.turn(ctx); ds.HasErrors() {
			return ds
		}
		ds = answer(proc, call, h.give)
		if again(proc, ds, tries) && !h.failed(proc) {
			continue
		}
		h.note(proc, ds.HasErrors())
		return ds
	}
}

// visit waits for the pool's turn and makes a call on any process of the program.
func (h *handle) visit(ctx context.Context, c intercept.Call, call func(provider.Provider) diag.List) diag.List {
	h.separate(c)
	if ds := h.pool.turn(ctx, h.addr); ds.HasErrors() {
		return ds
	}
	defer h.pool.host.turns.Give()
	return h.pool.visit(ctx, h.program(), call)
}

// mostTries is the maximum number of processes that are tried in a row for one call, if
// they end before the call reaches them.
const mostTries = 3

// again reports whether a call must be repeated on another process, because its process had
// ended before the call reached it.
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

// turn waits for a turn among the calls of the configuration, and then for the pool's turn.
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

// give ends a turn.
func (h *handle) give() {
	h.pool.host.turns.Give()
	h.limit.Give()
}

func uncalled(a addr.Provider) diag.List {
	return interrupted("Provider was not called", "The run was interrupted before it was the turn of a call of the provider %s.", a.Display())
}

// Stop stops the providers of the pool.
func (h *handle) Stop(ctx context.Context) error {
	h.pool.Stop(ctx)
	return nil
}

// Close does nothing: the pool closes its providers.
func (h *handle) Close() error { return nil }
