package resourceclient

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// opened is an open ephemeral resource instance. A goroutine renews it when the provider
// asks, until close.
type opened struct {
	sub *Subject
	at  *source.Range

	mu      sync.Mutex
	private []byte
	ds      diag.List
	stop    chan struct{}
	done    chan struct{}
}

// Waits records that an ephemeral resource instance cannot be opened yet, and why.
func (x *Client) Waits(a addr.Instance, why string) {
	x.o.Observe.Send(event.Event{Kind: event.OpenDeferred, Object: addr.Object{Instance: a}, Text: why})
}

// An Opening contains the steps of opening an ephemeral resource instance that differ
// between plan and apply.
type Opening struct {
	Before func([]eval.Outcome) // receives the results of preconditions
	After  func([]eval.Outcome) // receives the results of postconditions
	// Wait reports whether opening must wait, because the configuration (without marks) is
	// not known yet.
	Wait func(config cty.Value, pc *eval.ProviderConfig) bool
}

// Open opens an ephemeral resource instance, which stays open until Close. Its value has
// the ephemeral mark. The value is unknown if opening has to wait.
func (x *Client) Open(t *demand.Task, ev *eval.Evaluator, d *eval.Desired, how Opening) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType()).Mark(value.Ephemeral)
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	pre, more := d.Preconditions(t)
	how.Before(pre)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := d.Config(t, s)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	config, _ := v.UnmarkDeep()
	if how.Wait(config, pc) {
		return unknown, ds
	}
	at := &d.Resource.Config().At
	prov, more := x.Configured(t, pc, at)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	o, out, more := x.Subject(ev, d.Addr(), pc.Addr, s, prov).open(config, at)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() || o == nil {
		return out, ds
	}
	x.mu.Lock()
	x.opened = append(x.opened, o)
	x.mu.Unlock()
	post, more := d.Postconditions(t, out)
	how.After(post)
	return out, append(ds, more...)
}

// Close closes the open instances, in reverse order. Open must not be called afterwards.
func (x *Client) Close() (ds diag.List) {
	for _, o := range slices.Backward(x.opened) {
		ds = append(ds, o.close()...)
	}
	x.opened = nil
	return ds
}

// open opens the instance with a configuration without marks. Messages about closing it
// refer to at. Renewing and closing do not wait for a slot. If the provider defers the call, the
// instance is nil and its value unknown.
func (sub *Subject) open(config cty.Value, at *source.Range) (*opened, cty.Value, diag.List) {
	x, a, block := sub.x, sub.Addr, sub.Schema.Block
	unknown := cty.UnknownVal(block.ImpliedType()).Mark(value.Ephemeral)
	e := event.Event{Kind: event.OpenStart, Object: addr.Object{Instance: a}}
	x.o.Observe.Send(e)
	ds := sub.prov.ValidateResource(sub.ctx(), addr.Ephemeral, a.Resource.Type, config)
	if ds.HasErrors() {
		return nil, unknown, ds
	}
	ctx, off := sub.deferrable()
	resp, more := sub.prov.OpenEphemeral(ctx, a.Resource.Type, config)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, unknown, ds
	}
	if off.Reason != "" {
		x.Waits(a, "its provider defers it")
		return nil, unknown, ds
	}
	if resp.Result == cty.NilVal || resp.Result.IsNull() {
		return nil, unknown, append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced null object", "The provider returned nothing for %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a)...)
	}
	if err := schema.AssertUsable(block, resp.Result, true); err != nil {
		return nil, unknown, append(ds, diag.Errorf(diag.CodeProviderInconsistent, nil, "Provider produced invalid object", "The provider returned an invalid value for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a, err)...)
	}
	o := &opened{sub: sub, at: at, private: resp.Private, stop: make(chan struct{}), done: make(chan struct{})}
	go o.keep(resp.Renew) // o owns the goroutine: close waits for it
	e.Kind = event.OpenDone
	x.o.Observe.Send(e)
	return o, WithSensitive(resp.Result, nil, sub.Schema).Mark(value.Ephemeral), ds
}

// tell sends an event about the instance.
func (o *opened) tell(k event.Kind) {
	o.sub.x.o.Observe.Send(event.Event{Kind: k, Object: addr.Object{Instance: o.sub.Addr}})
}

// keep renews the instance until close.
func (o *opened) keep(at time.Time) {
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
		resp, ds := o.sub.prov.RenewEphemeral(o.sub.ctx(), o.sub.Addr.Resource.Type, private)
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

// close stops renewing and closes the instance. It returns the messages of both.
func (o *opened) close() diag.List {
	close(o.stop)
	<-o.done
	o.tell(event.CloseStart)
	ds := append(o.ds, o.sub.prov.CloseEphemeral(context.WithoutCancel(o.sub.ctx()), o.sub.Addr.Resource.Type, o.private)...)
	o.tell(event.CloseDone)
	return ds.Under(o.at).About(o.sub.Addr.String())
}
