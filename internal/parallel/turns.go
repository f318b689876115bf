package parallel

import (
	"context"
	"slices"
	"sync"
)

// Turns lets a fixed number of callers in at a time. Who waits stands in the line
// of a name, and the lines take turns: however many callers wait in one line, the
// first of every other line waits for one of them at most before its own turn.
// Make it with NewTurns; its methods may be called concurrently. A nil Turns
// lets everybody in.
type Turns struct {
	mu    sync.Mutex
	free  int
	lines map[string]*line
	ring  []*line // lines in which somebody waits, the next one first
}

// A line is who waits under one name, in the order of arrival.
type line struct {
	name    string
	waiters []chan struct{} // closed when it is its turn
}

// NewTurns makes turns for n callers at a time; below 1 it returns nil, which is
// no limit.
func NewTurns(n int) *Turns {
	if n < 1 {
		return nil
	}
	return &Turns{free: n, lines: map[string]*line{}}
}

// Take waits for a turn in the line of a name, or for the end of the context,
// whose error it then returns. Without an error the caller must call Give.
func (t *Turns) Take(ctx context.Context, name string) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if t.free > 0 { // then nobody waits
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

// leave takes a waiter out of its line. One whose turn came meanwhile gives it on.
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

// Give ends a turn.
func (t *Turns) Give() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a turn to the first of the next line, which then stands last.
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
