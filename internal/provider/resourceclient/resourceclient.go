// Package resourceclient makes the calls to running providers while instances are planned,
// applied and checked. It removes marks from values before a call, restores them on the
// results, and sends the events.
//
// Main types: Client (schemas, configured providers and functions, for one run), Subject
// (calls about one instance) and Object. The one rule: every response is checked against
// the schema and the protocol in this package.
package resourceclient

import (
	"context"
	"iter"
	"strings"
	"sync"

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

// Providers is the set of running providers.
type Providers interface {
	Schema(context.Context, addr.Provider) (*schema.Provider, diag.List)
	Any(context.Context, addr.Provider) (provider.Provider, diag.List)
	Configured(context.Context, addr.ProviderConfig, cty.Value) (provider.Provider, diag.List)
}

// Options configures a client.
type Options struct {
	Providers   Providers
	Observe     event.Sink
	Parallelism int // maximum number of concurrent calls; below 1: no maximum
	// MayDefer allows providers to defer objects that are planned, read, imported or opened.
	MayDefer bool
}

// A Client provides access to running providers for plan, apply, validate and explain: schemas,
// configurations and functions. It reports each message once. It may be used concurrently.
type Client struct {
	ctx      context.Context
	o        Options
	slots    chan struct{} // limits concurrent calls; nil: no limit
	schemas  parallel.Cache[addr.Provider, asked]
	reported sync.Map // the set of each addr.Provider whose missing schema was reported

	digests sync.Map // maps an *eval.ProviderConfig to a state.Digest

	mu     sync.Mutex
	live   map[*eval.ProviderConfig]*demand.Cell[provider.Provider]
	opened []*opened
}

// asked is the result of a request for a provider's schema.
type asked struct {
	schema *schema.Provider
	ds     diag.List
}

// CodeInterrupted is the code of messages about interrupted calls.
const CodeInterrupted = provider.CodeInterrupted

// New returns a client. ctx is the context of all its calls.
func New(ctx context.Context, o Options) *Client {
	x := &Client{ctx: ctx, o: o, live: map[*eval.ProviderConfig]*demand.Cell[provider.Provider]{}}
	if o.Parallelism > 0 {
		x.slots = make(chan struct{}, o.Parallelism)
	}
	return x
}

// call waits for a slot for one provider call. done releases the slot.
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

// Schema returns a provider's schema. A failure is reported to the first caller. The client
// does not request the schema again, so that a provider that does not start delays a run
// only once.
func (x *Client) Schema(a addr.Provider) (*schema.Provider, diag.List) {
	got, err := x.schemas.Do(x.ctx, a, func() (asked, bool) {
		ps, ds := x.o.Providers.Schema(x.ctx, a)
		return asked{ps, ds}, true
	})
	if err != nil {
		return nil, demand.Fail() // the interruption is reported once, elsewhere
	}
	if !got.ds.HasErrors() {
		return got.schema, nil
	}
	if _, reported := x.reported.LoadOrStore(a, true); reported {
		return nil, demand.Fail()
	}
	for _, m := range got.ds {
		if !strings.Contains(m.Detail, a.Display()) { // a message of the provider itself
			m.Notes = append(m.Notes, diag.Note{Text: "The provider " + a.Display() + " says so."})
		}
	}
	return nil, got.ds
}

// Decode decodes a stored object. It calls the provider only if the schema version differs.
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

// Configured returns the provider of a configuration, started and configured. The
// configuration's cell reports a failure once. at is the range that needs the provider, for
// messages about cycles; nil if there is none.
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
	ctx := provider.WithCaller(x.ctx, provider.Caller{Config: pc.Addr})
	if x.o.MayDefer { // the provider may decide now that it defers all objects
		ctx = provider.WithDeferral(ctx, &provider.Deferral{})
	}
	prov, ds := x.o.Providers.Configured(ctx, pc.Addr, plain)
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

// Digest returns the digest of a provider's configuration. The provider need not run. The
// digest is zero if part of the configuration is unknown. Ephemeral values are not
// included, because they differ in each run.
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

// Digests returns the digests of the configurations of running providers.
func (x *Client) Digests() map[addr.ProviderConfig]state.Digest {
	out := map[addr.ProviderConfig]state.Digest{}
	for pc, d := range x.digests.Range {
		out[pc.(*eval.ProviderConfig).Addr] = d.(state.Digest)
	}
	return out
}

// Live yields the configurations that were requested, each with the node that contains the
// reads of the configuration. It must not be called concurrently with other methods.
func (x *Client) Live() iter.Seq2[*eval.ProviderConfig, *demand.Node] {
	return func(yield func(*eval.ProviderConfig, *demand.Node) bool) {
		for pc, cell := range x.live {
			if !yield(pc, &cell.Node) {
				return
			}
		}
	}
}
