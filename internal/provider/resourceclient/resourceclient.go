// Package resourceclient is what passes between Terrace and the running providers while
// instances are planned, applied and checked: calls and their answers, values
// with marks on the one side and without on the other, and the events that
// report it.
//
// Main types: Client (schemas, configured providers and functions, for one run),
// Subject (calls about one instance) and Object. The one rule: every answer is held
// to the schema and to the protocol here, before anybody else sees it.
package resourceclient

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Providers is what is asked of the running providers.
type Providers interface {
	Schema(context.Context, addr.Provider) (*schema.Provider, diag.List)
	Any(context.Context, addr.Provider) (provider.Provider, diag.List)
	Configured(context.Context, addr.ProviderConfig, cty.Value) (provider.Provider, diag.List)
}

// Options are what a client works with.
type Options struct {
	Providers   Providers
	Observe     event.Sink
	Parallelism int // how many calls may run at once; below 1: any number
}

// A Client is what plan, apply, validate and explain have in common around the
// running providers: schemas, configurations and functions, with messages reported
// once. It may be used by many tasks at once.
type Client struct {
	ctx     context.Context
	o       Options
	slots   chan struct{} // bounds calls; nil: nothing does
	failed  sync.Map      // addr.Provider without a schema to *atomic.Bool: its failure was reported
	schemas parallel.Cache[addr.Provider, asked]

	digests sync.Map // *eval.ProviderConfig to state.Digest

	mu     sync.Mutex
	live   map[*eval.ProviderConfig]*demand.Cell[provider.Provider]
	opened []*opened
}

// asked is what a provider answered when it was asked for its schema.
type asked struct {
	schema *schema.Provider
	ds     diag.List
}

// CodeInterrupted is the code of messages about calls that were given up.
const CodeInterrupted = provider.CodeInterrupted

// New prepares a client; all its calls run under the context.
func New(ctx context.Context, o Options) *Client {
	x := &Client{ctx: ctx, o: o, live: map[*eval.ProviderConfig]*demand.Cell[provider.Provider]{}}
	if o.Parallelism > 0 {
		x.slots = make(chan struct{}, o.Parallelism)
	}
	return x
}

// call takes a slot for one provider call.
func (x *Client) call() (done func()) {
	if x.slots == nil {
		return func() {}
	}
	x.slots <- struct{}{}
	return func() { <-x.slots }
}

// Function returns a function of a provider, configured or not.
func (x *Client) Function(t *demand.Task, a addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	var prov provider.Provider
	var ds diag.List
	if pc != nil {
		if v, ok := pc.Value(t); ok && !v.IsWhollyKnown() {
			return UnknownFunction(), nil
		}
		prov, ds = x.Configured(t, pc, nil)
	} else {
		prov, ds = x.o.Providers.Any(x.ctx, a)
	}
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	return ProviderFunction(x.ctx, prov, a, name, pc != nil)
}

// Schema returns a provider's schema. A failure is reported to the first caller, and the
// provider is not asked again by this client, which is one attempt: a provider that does not
// start is waited for once.
func (x *Client) Schema(a addr.Provider) (*schema.Provider, diag.List) {
	if _, failed := x.failed.Load(a); failed {
		return nil, demand.Fail()
	}
	got, err := x.schemas.Do(x.ctx, a, func() (asked, bool) {
		ps, ds := x.o.Providers.Schema(x.ctx, a)
		if ds.HasErrors() {
			x.failed.Store(a, new(atomic.Bool))
		}
		return asked{ps, ds}, !ds.HasErrors()
	})
	if err != nil {
		return nil, demand.Fail() // the operation was interrupted, which is reported once
	}
	ps, ds := got.schema, got.ds
	if reported, failed := x.failed.Load(a); failed {
		if reported.(*atomic.Bool).Swap(true) {
			return nil, demand.Fail()
		}
		for _, m := range ds {
			if !strings.Contains(m.Detail, a.Display()) { // in the provider's own words
				m.Notes = append(m.Notes, diag.Note{Text: "The provider " + a.Display() + " says so."})
			}
		}
		return nil, ds
	}
	return ps, nil
}

// Decode reads a stored object, with the provider's help only where its version
// does not fit.
func (x *Client) Decode(a addr.Instance, o *state.Object, r *schema.Resource, pa addr.Provider) (cty.Value, diag.List) {
	if o.SchemaVersion == r.Version {
		if v, err := o.Decode(r.Block.ImpliedType()); err == nil {
			return v, nil
		}
	}
	prov, ds := x.o.Providers.Any(x.ctx, pa)
	if ds.HasErrors() {
		return cty.UnknownVal(r.Block.ImpliedType()), ds
	}
	sub := &Subject{x: x, Addr: a, Of: addr.ProviderConfig{Provider: pa}, Schema: r, prov: prov}
	v, more := sub.upgrade(o)
	return v, append(ds, more...)
}

// Configured returns the provider of a configuration, started and configured. A
// failure is reported once, by the configuration's own cell. at is what asks, for
// reports of cycles; nil: nothing in a file.
func (x *Client) Configured(t *demand.Task, pc *eval.ProviderConfig, at *source.Range) (provider.Provider, diag.List) {
	x.mu.Lock()
	c := x.live[pc]
	if c == nil {
		c = demand.NewCell[provider.Provider](demand.Subject(pc), nil, func(t *demand.Task) (provider.Provider, diag.List) {
			return x.configure(t, pc)
		})
		x.live[pc] = c
	}
	x.mu.Unlock()
	prov, ok := c.Get(t, at)
	if !ok {
		return nil, demand.Fail()
	}
	return prov, nil
}

// configure evaluates a provider configuration and starts the provider with it.
func (x *Client) configure(t *demand.Task, pc *eval.ProviderConfig) (provider.Provider, diag.List) {
	v, ok := pc.Value(t)
	if !ok {
		return nil, demand.Fail()
	}
	x.digest(pc, v)
	plain, _ := v.UnmarkDeep()
	prov, ds := x.o.Providers.Configured(provider.WithCaller(x.ctx, provider.Caller{Config: pc.Addr}), pc.Addr, plain)
	if len(ds) > 0 {
		ps, more := x.Schema(pc.Addr.Provider)
		if !more.HasErrors() {
			for _, m := range ds {
				if m.At == nil {
					m.At = pc.AttrRange(m.Attr, ps)
				}
			}
		}
		ds = ds.About(pc.Addr.String())
	}
	if ds.HasErrors() && pc.Implied() {
		ds = append(diag.Errorf(diag.CodeEvalProviderConfiguration, nil, "Invalid provider configuration",
			"Provider %q requires explicit configuration. Add a provider block to the root module and configure the provider's required arguments as described in the provider documentation.", pc.Addr.Provider.Display()), ds...)
	}
	return prov, ds
}

// Digest stands for what a provider is configured with, whether it runs or not; zero where
// that is not known as a whole. What is ephemeral is another each time, and does not count.
func (x *Client) Digest(t *demand.Task, pc *eval.ProviderConfig) state.Digest {
	if d, ok := x.digests.Load(pc); ok {
		return d.(state.Digest)
	}
	v, ok := pc.Value(t)
	if !ok {
		return state.Digest{}
	}
	return x.digest(pc, v)
}

func (x *Client) digest(pc *eval.ProviderConfig, v cty.Value) state.Digest {
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.HasMark(value.Ephemeral) {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	var d state.Digest
	if err == nil && v.IsWhollyKnown() {
		d = state.DigestArgs(v).With([]byte(pc.Addr.String()))
	}
	x.digests.Store(pc, d)
	return d
}

// Digests are those of the configurations that providers run with.
func (x *Client) Digests() map[addr.ProviderConfig]state.Digest {
	out := map[addr.ProviderConfig]state.Digest{}
	for pc, d := range x.digests.Range {
		out[pc.(*eval.ProviderConfig).Addr] = d.(state.Digest)
	}
	return out
}

// Live lists the configurations that were asked for, each with the node whose
// reads are those of the configuration. It must not run beside other calls.
func (x *Client) Live() iter.Seq2[*eval.ProviderConfig, *demand.Node] {
	return func(yield func(*eval.ProviderConfig, *demand.Node) bool) {
		for pc, cell := range x.live {
			if !yield(pc, &cell.Node) {
				return
			}
		}
	}
}
