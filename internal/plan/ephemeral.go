package plan

import (
	"context"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// openEphemeral is an ephemeral resource instance that is open.
type openEphemeral struct {
	opened *Opened
}

// An Opened keeps an ephemeral resource instance open: it is renewed in the
// background as the provider asks, until Close.
type Opened struct {
	addr    addr.Instance
	at      *source.Range
	prov    provider.Provider
	ctx     context.Context
	observe event.Sink

	mu      sync.Mutex
	private []byte
	ds      diag.List
	stop    chan struct{}
	done    chan struct{}
}

// Open opens an ephemeral resource instance; the value carries the ephemeral mark.
func Open(sh *Shell, d *eval.Desired, s *schema.Resource, prov provider.Provider, config cty.Value, observe event.Sink) (*Opened, cty.Value, diag.List) {
	a := d.Addr()
	e := event.Event{Kind: event.OpenStart, Object: addr.Object{Instance: a}}
	observe.Send(e)
	unknown := cty.UnknownVal(s.Block.ImpliedType()).Mark(value.Ephemeral)
	ds := prov.ValidateResource(sh.Context, addr.Ephemeral, a.Resource.Type, config)
	if ds.HasErrors() {
		return nil, unknown, ds
	}
	resp, more := prov.OpenEphemeral(sh.Context, a.Resource.Type, config)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, unknown, ds
	}
	if resp.Result == cty.NilVal || resp.Result.IsNull() {
		return nil, unknown, append(ds, diag.Errorf(nil, "Provider produced null object", "The provider returned nothing for %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a)...)
	}
	if err := schema.AssertUsable(s.Block, resp.Result, true); err != nil {
		return nil, unknown, append(ds, diag.Errorf(nil, "Provider produced invalid object", "The provider returned an invalid value for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	o := &Opened{addr: a, at: &d.Resource.Config().At, prov: prov, ctx: sh.Context, observe: observe, private: resp.Private, stop: make(chan struct{}), done: make(chan struct{})}
	go o.keep(resp.Renew) // owned by Opened: Close waits for it
	e.Kind = event.OpenDone
	observe.Send(e)
	return o, withSensitive(resp.Result, nil, s).Mark(value.Ephemeral), ds
}

// keep renews until Close.
func (o *Opened) keep(at time.Time) {
	defer close(o.done)
	for !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		select {
		case <-o.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		o.observe.Send(event.Event{Kind: event.RenewStart, Object: addr.Object{Instance: o.addr}})
		o.mu.Lock()
		private := o.private
		o.mu.Unlock()
		resp, ds := o.prov.RenewEphemeral(o.ctx, o.addr.Resource.Type, private)
		o.mu.Lock()
		o.ds = append(o.ds, ds...)
		if !ds.HasErrors() {
			o.private = resp.Private
		}
		o.mu.Unlock()
		if ds.HasErrors() {
			return
		}
		o.observe.Send(event.Event{Kind: event.RenewDone, Object: addr.Object{Instance: o.addr}})
		at = resp.Renew
	}
}

// Close ends the renewing and closes the instance. It returns what renewing and closing had to say.
func (o *Opened) Close() diag.List {
	close(o.stop)
	<-o.done
	o.observe.Send(event.Event{Kind: event.CloseStart, Object: addr.Object{Instance: o.addr}})
	ds := append(o.ds, o.prov.CloseEphemeral(context.WithoutCancel(o.ctx), o.addr.Resource.Type, o.private)...)
	o.observe.Send(event.Event{Kind: event.CloseDone, Object: addr.Object{Instance: o.addr}})
	return ds.Under(o.at).About(o.addr.String())
}

// ephemeral opens an ephemeral resource, or leaves it unknown where its
// arguments are not known yet.
func (p *planner) ephemeral(t *demand.Task, d *eval.Desired, ip *instancePlan) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType()).Mark(value.Ephemeral)
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	ip.provider, ip.checked = pc.Addr, true
	pre, more := d.Preconditions(t)
	ip.pre = pre
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := d.Config(t, s)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	config, _ := v.UnmarkDeep()
	if why := p.ephemeralWaits(t, d, config, pc); why != "" {
		p.in.Observe.Send(event.Event{Kind: event.OpenDeferred, Object: addr.Object{Instance: d.Addr()}, Text: why})
		return unknown, ds
	}
	prov, more := p.configured(t, pc, &d.Resource.Config().At)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	o, out, more := Open(p.shell, d, s, prov, config, p.in.Observe)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	p.mu.Lock()
	p.opened = append(p.opened, &openEphemeral{o})
	p.mu.Unlock()
	ip.post, more = d.Postconditions(t, out)
	return out, append(ds, more...)
}

// ephemeralWaits says why an ephemeral resource cannot be opened yet; "": it can.
func (p *planner) ephemeralWaits(t *demand.Task, d *eval.Desired, config cty.Value, pc *eval.ProviderConfig) string {
	switch {
	case !config.IsWhollyKnown():
		return "unknown configuration"
	case p.pendingBefore(t, d):
		return "pending dependencies"
	case pc.Deferral(t) != nil:
		return "unknown provider configuration"
	}
	return ""
}

// closeEphemeral closes in the reverse order of opening.
func (p *planner) closeEphemeral() {
	for i := len(p.opened) - 1; i >= 0; i-- {
		p.graph.Report(p.opened[i].opened.Close())
	}
}
