package parallel

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// waiting returns the number of waiting callers.
func (t *Turns) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, l := range t.ring {
		n += len(l.waiters)
	}
	return n
}

// queued starts a caller and returns when it is waiting in its queue.
func queued(t *testing.T, turns *Turns, name string, then func()) {
	t.Helper()
	before := turns.waiting()
	go func() {
		if turns.Take(t.Context(), name) == nil {
			then()
		}
	}()
	for turns.waiting() == before {
		runtime.Gosched()
	}
}

func TestTurnsAreFair(t *testing.T) {
	turns := NewTurns(1)
	if err := turns.Take(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	var all sync.WaitGroup
	for _, name := range []string{"big", "big", "big", "big", "small", "big", "tiny", "small"} {
		all.Add(1)
		queued(t, turns, name, func() {
			mu.Lock()
			got = append(got, name)
			mu.Unlock()
			turns.Give()
			all.Done()
		})
	}
	turns.Give()
	all.Wait()
	if want := []string{"big", "small", "tiny", "big", "small", "big", "big", "big"}; !slices.Equal(got, want) {
		t.Errorf("turns went to %v, want %v", got, want)
	}
	if turns.free != 1 || len(turns.lines) > 0 || len(turns.ring) > 0 {
		t.Errorf("%d free, %d lines, %d in the ring when all is done", turns.free, len(turns.lines), len(turns.ring))
	}
}

func TestTurnsBound(t *testing.T) {
	turns := NewTurns(3)
	var g gauge
	var calls atomic.Int64
	Each(200, 20, func(i int) {
		if err := turns.Take(t.Context(), string(rune('a'+i%7))); err != nil {
			t.Error(err)
			return
		}
		g.in()
		calls.Add(1)
		runtime.Gosched()
		g.out()
		turns.Give()
	})
	if g.most.Load() > 3 || calls.Load() != 200 || turns.free != 3 {
		t.Errorf("%d at a time, %d calls, %d free", g.most.Load(), calls.Load(), turns.free)
	}
}

func TestTurnsGiveUp(t *testing.T) {
	turns := NewTurns(1)
	if err := turns.Take(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- turns.Take(ctx, "b") }()
	for turns.waiting() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	turns.Give()
	if err := turns.Take(t.Context(), "c"); err != nil || turns.waiting() != 0 {
		t.Errorf("after one gave up: %v, %d wait", err, turns.waiting())
	}
}

func TestNoTurns(t *testing.T) {
	turns := NewTurns(0)
	for range 100 {
		if err := turns.Take(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	turns.Give()
}
