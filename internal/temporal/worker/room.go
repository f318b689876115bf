package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
)

// room is how much of something there is for turns. Those that wait are served in their
// order. Its methods may be called concurrently.
type room struct {
	all int // 0: nobody counts

	mu      sync.Mutex
	free    int
	waiting []*asked
}

type asked struct {
	need int
	here chan struct{} // closed when it has it
}

func newRoom(all int) *room { return &room{all: all, free: all} }

// cut is what is counted of a need: one that is larger than everything takes everything.
func (r *room) cut(need int) int { return min(need, r.all) }

// take asks for some. What it returns is closed when it is there.
func (r *room) take(need int) *asked {
	a := &asked{need: r.cut(need), here: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, a)
	r.serve()
	return a
}

// give gives back what was asked for and had.
func (r *room) give(need int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += r.cut(need)
	r.serve()
}

// leave takes a request back; had reports that it has been granted already.
func (r *room) leave(a *asked) (had bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, a)
	if i < 0 {
		return true
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.serve() // it may have been in the way
	return false
}

func (r *room) serve() {
	for len(r.waiting) > 0 && r.waiting[0].need <= r.free {
		r.free -= r.waiting[0].need
		close(r.waiting[0].here)
		r.waiting = r.waiting[1:]
	}
}

// wait waits until a turn has room, and keeps its lease meanwhile.
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
