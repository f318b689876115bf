// Package live keeps the running providers of one engine: an instance for each
// provider that is in use, configured or not, started when it is first needed.
//
// Main type: Pool. The one rule: who asks a Pool for a provider never closes
// it; Close of the Pool does.
package live

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Source gives the factory of a provider.
type Source interface {
	Factory(addr.Provider) (provider.Factory, diag.List)
}

// A Pool is the running providers of one engine. Its methods may be called concurrently.
type Pool struct {
	source Source

	mu      sync.Mutex
	idle    map[addr.Provider]*entry         // started, not configured
	used    map[addr.ProviderConfig][]*entry // configured
	schemas map[addr.Provider]*schemaEntry
	all     []*entry
	closed  bool
}

type entry struct {
	once   sync.Once
	p      provider.Provider
	ds     diag.List
	config cty.Value // what it was configured with
	ready  sync.Once
	cds    diag.List
}

type schemaEntry struct {
	once sync.Once
	s    *schema.Provider
	ds   diag.List
}

// New makes a pool that starts providers from a source.
func New(source Source) *Pool {
	return &Pool{source: source, idle: map[addr.Provider]*entry{}, used: map[addr.ProviderConfig][]*entry{}, schemas: map[addr.Provider]*schemaEntry{}}
}

// Schema returns the schema of a provider, read once.
func (p *Pool) Schema(ctx context.Context, a addr.Provider) (*schema.Provider, diag.List) {
	p.mu.Lock()
	e := p.schemas[a]
	if e == nil {
		e = &schemaEntry{}
		p.schemas[a] = e
	}
	p.mu.Unlock()
	e.once.Do(func() {
		inst, ds := p.Any(ctx, a)
		if ds.HasErrors() {
			e.ds = ds
			return
		}
		e.s, e.ds = inst.Schema(ctx)
		if e.s == nil && !e.ds.HasErrors() {
			e.ds = diag.Errorf(nil, "Failed to load plugin schemas", "The provider %s returned no schema.", a)
		}
	})
	return e.s, e.ds
}

// Any returns some running instance of a provider, for calls that need no
// configuration: schema, validation, upgrades, functions.
func (p *Pool) Any(ctx context.Context, a addr.Provider) (provider.Provider, diag.List) {
	p.mu.Lock()
	e := p.idle[a]
	if e == nil {
		for _, k := range slices.SortedFunc(keysOf(p.used), compareConfigs) {
			if k.Provider == a && len(p.used[k]) > 0 {
				e = p.used[k][0]
				break
			}
		}
	}
	if e == nil {
		e = p.newEntry()
		p.idle[a] = e
	}
	p.mu.Unlock()
	p.start(ctx, a, e)
	return e.p, e.ds
}

func keysOf(m map[addr.ProviderConfig][]*entry) func(func(addr.ProviderConfig) bool) {
	return func(yield func(addr.ProviderConfig) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func compareConfigs(a, b addr.ProviderConfig) int {
	switch as, bs := a.String(), b.String(); {
	case as < bs:
		return -1
	case as > bs:
		return 1
	}
	return 0
}

func (p *Pool) newEntry() *entry {
	e := &entry{}
	p.all = append(p.all, e)
	return e
}

func (p *Pool) start(ctx context.Context, a addr.Provider, e *entry) {
	e.once.Do(func() {
		f, ds := p.source.Factory(a)
		if ds.HasErrors() {
			e.ds = ds
			return
		}
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			e.ds = diag.Errorf(nil, "Provider stopped", "The provider %s was needed after everything was stopped.", a)
			return
		}
		e.p, e.ds = f(ctx)
	})
}

// Configured returns the provider of a configuration, started and configured
// with the value, which carries no marks. An instance that was configured with an
// equal value before is used again.
func (p *Pool) Configured(ctx context.Context, a addr.ProviderConfig, config cty.Value) (provider.Provider, diag.List) {
	p.mu.Lock()
	var e *entry
	for _, have := range p.used[a] {
		if have.config.RawEquals(config) {
			e = have
		}
	}
	if e == nil {
		if e = p.idle[a.Provider]; e != nil {
			delete(p.idle, a.Provider)
		} else {
			e = p.newEntry()
		}
		e.config = config
		p.used[a] = append(p.used[a], e)
	}
	p.mu.Unlock()
	p.start(ctx, a.Provider, e)
	if e.ds.HasErrors() {
		return nil, e.ds
	}
	e.ready.Do(func() {
		prepared, ds := e.p.ValidateConfig(ctx, config)
		if !ds.HasErrors() {
			if prepared == cty.NilVal || prepared.IsNull() {
				prepared = config
			}
			ds = append(ds, e.p.Configure(ctx, prepared)...)
		}
		e.cds = ds
	})
	return e.p, e.cds
}

// Stop asks every provider to end its running calls soon.
func (p *Pool) Stop(ctx context.Context) {
	for _, e := range p.entries() {
		if e.p != nil {
			_ = e.p.Stop(ctx)
		}
	}
}

func (p *Pool) entries() []*entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// Close ends every provider. It is idempotent.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, e := range p.entries() {
		e.once.Do(func() {})
		if e.p != nil {
			_ = e.p.Close()
		}
	}
}
