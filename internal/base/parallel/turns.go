package parallel

import (
	"context"
	"slices"
	"sync"
)

// Turns is a fair semaphore. Callers wait in one queue per name, and the queues are served
// in rotation: however many callers wait under one name, the first caller of every other
// name waits for at most one of them. Create it with NewTurns. Its methods may be called
// concurrently. A nil Turns has no limit.
type Turns struct {
	mu    sync.Mutex
	free  int
	lines map[string]*line
	ring  []*line // queues with waiting callers, the next one first
}

// line is the queue of one name, in the order of arrival.
type line struct {
	name    string
	waiters []chan struct{} // closed when the caller may continue
}

// NewTurns returns a semaphore for n callers at a time. If n is below 1, it returns nil,
// which has no limit.
func NewTurns(n int) *Turns {
	if n < 1 {
		return nil
	}
	return &Turns{free: n, lines: map[string]*line{}}
}

// Take waits until the caller may continue. If ctx ends first, it returns the error of
// ctx. After a nil error, the caller must call Give.
func (t *Turns) Take(ctx context.Context, name string) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if t.free > 0 { // then no caller waits
		t.free--
		t.mu.Unlock()
		return nil
	}
	l := t.lines[name]
	if l == nil {
		l = &line{name: name}
		t.lines[name] = l
		t.ring = append(t.ring, l)
	}
	mine := make(chan struct{})
	l.waiters = append(l.waiters, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		t.leave(l, mine)
		return ctx.Err()
	}
}

// leave removes a caller from its queue. If it was admitted meanwhile, the next caller is admitted.
func (t *Turns) leave(l *line, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(l.waiters, mine)
	if i < 0 {
		t.next()
		return
	}
	l.waiters = slices.Delete(l.waiters, i, i+1)
	if len(l.waiters) == 0 {
		delete(t.lines, l.name)
		t.ring = slices.DeleteFunc(t.ring, func(x *line) bool { return x == l })
	}
}

// Give releases what Take acquired.
func (t *Turns) Give() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next admits the first caller of the next queue and moves that queue to the end.
func (t *Turns) next() {
	if len(t.ring) == 0 {
		t.free++
		return
	}
	l := t.ring[0]
	close(l.waiters[0])
	l.waiters = l.waiters[1:]
	t.ring = t.ring[1:]
	if len(l.waiters) == 0 {
		delete(t.lines, l.name)
		return
	}
	t.ring = append(t.ring, l)
}
