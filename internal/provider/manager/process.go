package manager

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// A process is a provider process, from before its start to its end.
type process struct {
	addr    addr.Provider
	key     key
	outside bool // see Program

	// Guarded by the host's lock.
	config   cty.Value // its current or future configuration; NilVal means none
	users    map[*Pool]bool
	visits   int  // running calls of visitors
	out      bool // gets no new users
	stopSent bool
	held     int64 // its memory in bytes, when it became idle

	started chan struct{} // closed at the end of the start
	p       provider.Provider
	ds      diag.List
	gaveUp  bool // the start failed because its caller was interrupted

	configuring configuring

	calls sync.RWMutex // held for reading by calls, and for writing while it is configured
	once  sync.Once
}

// configuring is the result of configuring a process, which happens once. It is locked
// meanwhile.
type configuring struct {
	sync.Mutex
	done    bool
	ds      diag.List
	spoiled bool // not configured, because the caller was interrupted or the process ended
}

func newProcess(prog *program) *process {
	return &process{addr: prog.addr, key: prog.key, outside: prog.Outside, users: map[*Pool]bool{}, started: make(chan struct{})}
}

// start starts the process. The caller is the one for which find or visit returned start.
func (p *process) start(ctx context.Context, f func(context.Context) (provider.Provider, diag.List)) {
	defer close(p.started)
	p.p, p.ds = f(ctx)
	if p.ds.HasErrors() {
		p.gaveUp = ctx.Err() != nil
		if p.p != nil {
			_ = p.p.Close()
			p.p = nil
		}
	}
}

// await waits for the end of the start. again reports that another caller must start the
// process.
func (p *process) await(ctx context.Context) (again bool, ds diag.List) {
	select {
	case <-p.started:
	case <-ctx.Done():
		return false, interrupted("Provider start interrupted", "The provider %s was being started, but that was given up before it was ready.", p.addr.Display())
	}
	if p.p == nil {
		return (p.gaveUp || !has(p.ds, provider.CodeSlow)) && ctx.Err() == nil, clone(p.ds)
	}
	return false, clone(p.ds)
}

// provider returns the started provider, or nil.
func (p *process) provider() provider.Provider {
	select {
	case <-p.started:
		return p.p
	default:
		return nil
	}
}

// ended reports whether the process ended unexpectedly.
func (p *process) ended() bool {
	e, ok := p.provider().(interface{ Ended() bool })
	return ok && e.Ended()
}

// memory returns the memory of the process in bytes. A process of unknown size counts as
// large, so that few of them are kept.
func (p *process) memory() int64 {
	if m, ok := p.provider().(interface{ Memory() int64 }); ok {
		if n := m.Memory(); n > 0 {
			return n
		}
	}
	return idleMemory
}

// configure configures the process once, when it is a pool's turn. Other callers get the
// result. again reports that another process is needed, because the configuring caller was
// interrupted. A caller that has a turn must not call configure, which waits for one.
func (p *process) configure(ctx context.Context, config cty.Value, by *Pool) (again bool, ds diag.List) {
	c := &p.configuring
	c.Lock()
	defer c.Unlock()
	if c.done {
		return c.spoiled && ctx.Err() == nil, clone(c.ds)
	}
	if ds := by.turn(ctx, p.addr); ds.HasErrors() {
		c.done, c.ds, c.spoiled = true, ds, true
		return false, clone(ds)
	}
	defer by.host.turns.Give()
	p.calls.Lock()
	defer p.calls.Unlock()
	var prepared cty.Value
	prepared, ds = p.p.ValidateConfig(ctx, config)
	if !ds.HasErrors() {
		if prepared == cty.NilVal || prepared.IsNull() {
			prepared = config
		}
		ds = append(ds, p.p.Configure(ctx, prepared)...)
	}
	c.done, c.ds, c.spoiled = true, ds, ds.HasErrors() && (ctx.Err() != nil || p.ended())
	return false, clone(ds)
}

// mayStop reports, once, whether the process must be asked to stop, because all its users
// are stopping. No other pool gets it afterwards. The caller holds the host's lock.
func (p *process) mayStop(h *Host) bool {
	if p.stopSent || p.provider() == nil || len(p.users) == 0 || p.visits > 0 {
		return false
	}
	with := []*process{p}
	if p.outside {
		with = h.procs[p.key] // other connections to the same process
	}
	for _, p := range with {
		for pool := range p.users {
			if !pool.stopping {
				return false
			}
		}
	}
	p.stopSent = true
	h.drop(p)
	return true
}

// answer makes a call, but not while the process is being configured.
func answer(p *process, call func(provider.Provider) diag.List, after func()) diag.List {
	defer after()
	p.calls.RLock()
	defer p.calls.RUnlock()
	return call(p.p)
}

// has reports whether a message has a code.
func has(ds diag.List, code string) bool {
	return slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Code == code })
}

// interrupted returns a message about an interrupted operation.
func interrupted(summary, detail string, args ...any) diag.List {
	return diag.Errorf(provider.CodeInterrupted, nil, summary, detail, args...)
}

func (p *process) close() {
	p.once.Do(func() {
		<-p.started
		if p.p != nil {
			_ = p.p.Close()
		}
	})
}

// clone copies messages, because callers add their own source ranges.
func clone(ds diag.List) diag.List {
	if len(ds) == 0 {
		return nil
	}
	out := make(diag.List, len(ds))
	for i, m := range ds {
		c := *m
		out[i] = &c
	}
	return out
}
