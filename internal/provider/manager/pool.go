package manager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Pool contains the providers of one engine. Its methods may be called concurrently.
type Pool struct {
	host   *Host
	source Source
	name   string // the pool's name in the queue for turns

	programs parallel.Cache[addr.Provider, program]

	mu      sync.Mutex
	handles map[addr.ProviderConfig][]*handle
	any     map[addr.Provider]*handle

	schemas schemaCache // for unshared programs

	// Guarded by the host's lock.
	used     map[*process]bool
	stopping bool
	closed   bool
}

// A program is a Program with its key.
type program struct {
	Program
	addr addr.Provider
	key  key
	ds   diag.List

	// own is the program with processes that only this pool uses, in the directory of its unit.
	// It replaces the program from the first request on in which paths finds a path. Both are
	// nil if requests are not searched.
	own   *program
	paths *pathFinder
}

// New returns a pool with its own processes.
func New(source Source) *Pool {
	h := NewHost(Options{})
	h.alone = true
	return h.New(source, "")
}

// New returns a pool of the host's processes. Pools with equal names share their turns.
func (h *Host) New(source Source, name string) *Pool {
	return &Pool{host: h, source: source, name: name, handles: map[addr.ProviderConfig][]*handle{}, any: map[addr.Provider]*handle{}, used: map[*process]bool{}}
}

// Schema returns the schema of a provider. It is read once; a failure is not cached.
func (p *Pool) Schema(ctx context.Context, a addr.Provider) (*schema.Provider, diag.List) {
	prog, ds := p.program(ctx, a)
	if ds.HasErrors() {
		return nil, ds
	}
	e := &p.schemas
	if prog.key.owner == nil {
		e = &p.host.schemas
	}
	got, err := e.Do(ctx, prog.key.path, func() (schemaAnswer, bool) {
		s, more := p.readSchema(ctx, a, prog)
		if more.HasErrors() {
			return schemaAnswer{s, more}, false
		}
		ds = more
		return schemaAnswer{schema: s}, true
	})
	if err != nil {
		return nil, interrupted("Provider start interrupted", "The schema of the provider %s was not read: %s.", a.Display(), err)
	}
	return got.schema, append(ds, clone(got.ds)...)
}

func (p *Pool) readSchema(ctx context.Context, a addr.Provider, prog *program) (s *schema.Provider, ds diag.List) {
	if prog.Schema != nil {
		if s := prog.Schema(); s != nil {
			return s, nil
		}
	}
	if ds := p.turn(ctx, a); ds.HasErrors() {
		return nil, ds
	}
	defer p.host.turns.Give()
	ds = p.visit(ctx, prog, func(inst provider.Provider) (ds diag.List) {
		s, ds = inst.Schema(ctx)
		if s == nil && !ds.HasErrors() {
			ds = diag.Errorf(diag.CodeProviderStart, nil, "Failed to load plugin schemas", "The provider %s returned no schema.", a)
		}
		return ds
	})
	return s, ds
}

// program returns the program of a provider. A failure is not cached.
func (p *Pool) program(ctx context.Context, a addr.Provider) (*program, diag.List) {
	got, err := p.programs.Do(ctx, a, func() (program, bool) {
		prog := program{addr: a}
		if s, ok := p.source.(Sharer); ok {
			prog.Program, prog.ds = s.Program(ctx, a)
		}
		if prog.ds.HasErrors() {
			return prog, false
		}
		if prog.Start == nil {
			var f provider.Factory
			if f, prog.ds = p.source.Factory(a); prog.ds.HasErrors() {
				return prog, false
			}
			prog.Start = func(ctx context.Context, _ string) (provider.Provider, diag.List) { return f(ctx) }
		}
		dir := prog.Dir
		prog.key = p.host.keyOf(p, a, &prog.Program)
		if p.host.use(a) == UsesNamedPaths && prog.key.dir == p.host.o.Empty && !prog.Outside {
			prog.separable(p, dir)
		}
		return prog, true
	})
	switch {
	case err != nil:
		return nil, interrupted("Provider start interrupted", "The provider %s was not started: %s.", a.Display(), err)
	case got.ds.HasErrors():
		return nil, clone(got.ds)
	}
	return &got, nil
}

// separable prepares the program for requests with paths. dir is the directory of the unit. If
// the environment contains a path, the pool has its own processes from the start.
func (prog *program) separable(p *Pool, dir string) {
	own := *prog
	own.Dir = dir
	own.key.dir, own.key.owner = dir, p
	find := pathFinder{own: dir, shared: prog.Dir}
	prog.own, prog.paths = &own, &find
	if name := find.inEnviron(environOf(prog.Env)); name != "" {
		*prog = *p.separate(prog, name)
	}
}

// separate reports that an argument can name a path, and returns the program with processes of the
// pool alone.
func (p *Pool) separate(prog *program, argument string) *program {
	p.host.o.Sharing.Separated(p.name, prog.addr, argument)
	return prog.own
}

// Any returns a provider for calls that need no configuration: schema, validation,
// upgrades, functions.
func (p *Pool) Any(ctx context.Context, a addr.Provider) (provider.Provider, diag.List) {
	prog, ds := p.program(ctx, a)
	if ds.HasErrors() {
		return nil, ds
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.any[a]
	if h == nil {
		h = newHandle(p, prog, cty.NilVal, nil)
		p.any[a] = h
	}
	return h, nil
}

// configured returns a handle of the pool for the provider that has a configuration, or
// nil.
func (p *Pool) configured(a addr.Provider) *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *handle
	var name string
	for k, list := range p.handles {
		if k.Provider != a {
			continue
		}
		for _, h := range list {
			if text := k.String(); h.usable() && (first == nil || strings.Compare(text, name) < 0) {
				first, name = h, text
			}
		}
	}
	return first
}

// Configured returns the provider of a configuration, started and configured with the
// value, which must not have marks. It reuses a provider that was configured with an equal
// value.
func (p *Pool) Configured(ctx context.Context, a addr.ProviderConfig, config cty.Value) (provider.Provider, diag.List) {
	prog, ds := p.program(ctx, a.Provider)
	if ds.HasErrors() {
		return nil, ds
	}
	p.mu.Lock()
	var h *handle
	if i := slices.IndexFunc(p.handles[a], func(h *handle) bool { return h.config.RawEquals(config) }); i >= 0 {
		h = p.handles[a][i]
	} else {
		if prog.own != nil {
			if name := prog.paths.inValues(config); name != "" {
				prog = p.separate(prog, name)
			}
		}
		h = newHandle(p, prog, config, p.host.limit(a.Provider, config, p))
		p.handles[a] = append(p.handles[a], h)
	}
	p.mu.Unlock()
	if _, ds = h.process(ctx); ds.HasErrors() {
		return nil, ds
	}
	return h, ds
}

// take finds or starts a process for a handle, and configures it.
func (p *Pool) take(ctx context.Context, h *handle) (*process, diag.List) {
	for {
		proc, start, ds := p.host.find(h.prog, h.config, p)
		if ds.HasErrors() {
			return nil, ds
		}
		again, ds := p.launch(ctx, h.prog, proc, start)
		if !ds.HasErrors() && h.config != cty.NilVal {
			var more diag.List
			again, more = proc.configure(ctx, h.config, p)
			ds = append(ds, more...)
		}
		if !ds.HasErrors() {
			return proc, ds
		}
		p.host.discard(proc)
		p.host.left(proc, p)
		if !again {
			return nil, ds
		}
	}
}

// launch starts a process, or waits for another goroutine that starts it.
func (p *Pool) launch(ctx context.Context, prog *program, proc *process, start bool) (again bool, ds diag.List) {
	if start {
		proc.start(ctx, func(ctx context.Context) (provider.Provider, diag.List) { return prog.Start(ctx, prog.Dir) })
	}
	again, ds = proc.await(ctx)
	return again && !start, ds
}

// visit makes a call that needs no configuration on any process of a program.
func (p *Pool) visit(ctx context.Context, prog *program, call func(provider.Provider) diag.List) diag.List {
	for tries := 1; ; tries++ {
		proc, start, ds := p.host.visit(prog, p)
		if ds.HasErrors() {
			return ds
		}
		restart, ds := p.launch(ctx, prog, proc, start)
		if ds.HasErrors() {
			p.host.discard(proc)
			p.host.left(proc, nil)
			if restart {
				continue
			}
			return ds
		}
		more := answer(proc, call, func() { p.host.left(proc, nil) })
		if !again(proc, more, tries) {
			return append(ds, more...)
		}
	}
}

// Stop asks the providers to end their running calls soon. A provider that other pools use too
// is asked when all of these pools are stopping or closed.
func (p *Pool) Stop(ctx context.Context) {
	p.host.mu.Lock()
	p.stopping = true
	var stop []*process
	for proc := range p.used {
		if proc.mayStop(p.host) {
			stop = append(stop, proc)
		}
	}
	p.host.mu.Unlock()
	parallel.Each(len(stop), len(stop), func(i int) { _ = stop[i].p.Stop(ctx) })
}

// Close releases every provider. Those that no other pool needs end. It is idempotent.
func (p *Pool) Close() {
	p.host.mu.Lock()
	p.closed = true
	used := slices.Collect(maps.Keys(p.used))
	p.host.mu.Unlock()
	parallel.Each(len(used), len(used), func(i int) { p.host.left(used[i], p) })
}
