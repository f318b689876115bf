package exchange

import (
	"context"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// An Opened keeps an ephemeral resource instance open: it is renewed in the
// background as the provider asks, until Close.
type Opened struct {
	sub *Subject
	at  *source.Range

	mu      sync.Mutex
	private []byte
	ds      diag.List
	stop    chan struct{}
	done    chan struct{}
}

// NotOpen is the value of an ephemeral resource instance that is not open.
func NotOpen(s *schema.Resource) cty.Value {
	return cty.UnknownVal(s.Block.ImpliedType()).Mark(value.Ephemeral)
}

// Waits tells that an ephemeral resource instance cannot be opened yet, and why.
func (x *Exchange) Waits(a addr.Instance, why string) {
	x.o.Observe.Send(event.Event{Kind: event.OpenDeferred, Object: addr.Object{Instance: a}, Text: why})
}

// Open opens an ephemeral resource instance with a configuration without marks;
// the value carries the ephemeral mark. What closing it has to say is said at the
// given place. Calls about it wait for no slot.
func (sub *Subject) Open(config cty.Value, at *source.Range) (*Opened, cty.Value, diag.List) {
	x, a, block := sub.x, sub.Addr, sub.Schema.Block
	e := event.Event{Kind: event.OpenStart, Object: addr.Object{Instance: a}}
	x.o.Observe.Send(e)
	ds := sub.prov.ValidateResource(x.ctx, addr.Ephemeral, a.Resource.Type, config)
	if ds.HasErrors() {
		return nil, NotOpen(sub.Schema), ds
	}
	resp, more := sub.prov.OpenEphemeral(x.ctx, a.Resource.Type, config)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, NotOpen(sub.Schema), ds
	}
	if resp.Result == cty.NilVal || resp.Result.IsNull() {
		return nil, NotOpen(sub.Schema), append(ds, diag.Errorf(nil, "Provider produced null object", "The provider returned nothing for %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a)...)
	}
	if err := schema.AssertUsable(block, resp.Result, true); err != nil {
		return nil, NotOpen(sub.Schema), append(ds, diag.Errorf(nil, "Provider produced invalid object", "The provider returned an invalid value for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	o := &Opened{sub: sub, at: at, private: resp.Private, stop: make(chan struct{}), done: make(chan struct{})}
	go o.keep(resp.Renew) // owned by Opened: Close waits for it
	e.Kind = event.OpenDone
	x.o.Observe.Send(e)
	return o, WithSensitive(resp.Result, nil, sub.Schema).Mark(value.Ephemeral), ds
}

// tell sends an event about the instance.
func (o *Opened) tell(k event.Kind) {
	o.sub.x.o.Observe.Send(event.Event{Kind: k, Object: addr.Object{Instance: o.sub.Addr}})
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
		o.tell(event.RenewStart)
		o.mu.Lock()
		private := o.private
		o.mu.Unlock()
		resp, ds := o.sub.prov.RenewEphemeral(o.sub.x.ctx, o.sub.Addr.Resource.Type, private)
		o.mu.Lock()
		o.ds = append(o.ds, ds...)
		if !ds.HasErrors() {
			o.private = resp.Private
		}
		o.mu.Unlock()
		if ds.HasErrors() {
			return
		}
		o.tell(event.RenewDone)
		at = resp.Renew
	}
}

// Close ends the renewing and closes the instance. It returns what renewing and closing had to say.
func (o *Opened) Close() diag.List {
	close(o.stop)
	<-o.done
	o.tell(event.CloseStart)
	ds := append(o.ds, o.sub.prov.CloseEphemeral(context.WithoutCancel(o.sub.x.ctx), o.sub.Addr.Resource.Type, o.private)...)
	o.tell(event.CloseDone)
	return ds.Under(o.at).About(o.sub.Addr.String())
}
