package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
)

// room limits a resource that turns use. Waiting turns are served in their order. Its methods may
// be called concurrently.
type room struct {
	all int // total amount; 0 means no limit

	mu      sync.Mutex
	free    int
	waiting []*asked
}

type asked struct {
	need int
	here chan struct{} // closed when the amount is granted
}

func newRoom(all int) *room { return &room{all: all, free: all} }

// cut limits a request to the total amount, so that a larger request can be granted.
func (r *room) cut(need int) int { return min(need, r.all) }

// take requests an amount. The channel here of the result is closed when it is granted.
func (r *room) take(need int) *asked {
	a := &asked{need: r.cut(need), here: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, a)
	r.serve()
	return a
}

// give returns an amount that was granted.
func (r *room) give(need int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += r.cut(need)
	r.serve()
}

// leave cancels a request. had means that it was already granted.
func (r *room) leave(a *asked) (had bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, a)
	if i < 0 {
		return true
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.serve() // the request may have blocked others
	return false
}

func (r *room) serve() {
	for len(r.waiting) > 0 && r.waiting[0].need <= r.free {
		r.free -= r.waiting[0].need
		close(r.waiting[0].here)
		r.waiting = r.waiting[1:]
	}
}

// wait waits until a turn has room, and renews its lease meanwhile.
func (w *activities) wait(ctx context.Context, l *lease, of *room, need int) error {
	a := of.take(need)
	tick := time.NewTicker(max(l.timeout/6, 100*time.Millisecond))
	defer tick.Stop()
	for {
		var err error
		select {
		case <-a.here:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-tick.C:
			switch err = l.renew(ctx); {
			case errors.Is(err, errStop):
				err = temporal.NewCanceledError()
			default:
				err = l.held()
			}
		}
		if err != nil {
			if of.leave(a) {
				of.give(need)
			}
			return err
		}
	}
}
