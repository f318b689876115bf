package resourceclient

import (
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/event"
)

// Operations is the set of running calls that change objects. It may be used concurrently.
type Operations struct {
	observe event.Sink
	now     func() time.Time

	mu      sync.Mutex
	running map[*Operation]bool
}

// An Operation is a running call that changes an object.
type Operation struct {
	all   *Operations
	event event.Event
	start time.Time
	beats int // number of reported heartbeats
}

// Operations returns an empty set. It uses now as its clock.
func (x *Client) Operations(now func() time.Time) *Operations {
	return &Operations{observe: x.o.Observe, now: now, running: map[*Operation]bool{}}
}

// Begin reports the start of a change of an object. prior identifies the object before the
// change.
func (o *Operations) Begin(obj addr.Object, op event.Op, prior Called) *Operation {
	run := &Operation{all: o, event: event.Event{Kind: event.ApplyStart, Object: obj, Op: op}, start: o.now()}
	run.event.IDKey, run.event.IDValue = prior.Key, prior.Value
	o.observe.Send(run.event)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running[run] = true
	return run
}

// End reports the end of the change. now identifies the object after it, and is nil if
// there is no object.
func (run *Operation) End(ok bool, now *Called) {
	o := run.all
	o.mu.Lock()
	delete(o.running, run)
	o.mu.Unlock()
	run.event.Kind = event.ApplyDone
	if !ok {
		run.event.Kind = event.ApplyError
	}
	run.event.Elapsed = o.now().Sub(run.start)
	if ok && now != nil {
		run.event.IDKey, run.event.IDValue = now.Key, now.Value
	}
	o.observe.Send(run.event)
}

// Beat reports each running operation every ten seconds. It must be called more often than
// that.
func (o *Operations) Beat() {
	var tell []event.Event
	o.mu.Lock()
	for run := range o.running {
		if since := o.now().Sub(run.start); int(since/(10*time.Second)) > run.beats {
			run.beats++
			e := run.event
			e.Kind, e.Elapsed = event.ApplyProgress, since
			tell = append(tell, e)
		}
	}
	o.mu.Unlock()
	for _, e := range tell {
		o.observe.Send(e)
	}
}
