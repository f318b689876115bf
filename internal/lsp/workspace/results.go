package workspace

import (
	"context"
	"slices"
	"sync"
)

// maxResults is the number of modules, and of units, whose results are kept.
const maxResults = 64

// A gate lets one goroutine at a time use a result. Unlike a sync.Mutex, a goroutine stops waiting when its
// request is canceled.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits for the gate. It returns false if ctx ended; otherwise the caller must leave.
func (g gate) enter(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case g <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits for the gate to the end. The caller must leave.
func (g gate) wait() { g <- struct{}{} }

func (g gate) leave() { <-g }

// A result was computed from the files that it has read.
type result interface {
	comparable
	read() *reading
	close() // releases what the result keeps open
}

// results keeps the results of the keys that were requested last.
type results[T result] struct {
	mu    sync.Mutex
	slots map[string]*slot[T]
	order []string // keys, least recently requested first
}

// A slot contains the last result for a key.
type slot[T result] struct {
	used  chan struct{} // has a value while a goroutine uses the other fields, and computes the result
	value T
	gone  bool // the slot is no longer in results
}

// get returns the result for a key with the files as they are now. It returns the zero value if ctx
// ended. compute receives the last result for the key, whose files have changed, or the zero value.
func (r *results[T]) get(ctx context.Context, s *Session, key string, compute func(ctx context.Context, key string, before T) T) T {
	var none T
	at, old := r.slot(key)
	if old != nil {
		go old.drop() // ends when the computation for the key has ended
	}
	select {
	case at.used <- struct{}{}:
	case <-ctx.Done():
		return none
	}
	defer func() { <-at.used }()
	if at.value != none && at.value.read().current() {
		return at.value
	}
	release, ok := s.take(ctx)
	defer release()
	if !ok {
		return none
	}
	value := compute(ctx, key, at.value)
	if ctx.Err() != nil {
		return none
	}
	if !at.gone {
		at.set(value)
	}
	return value
}

// slot returns the slot of a key, and the slot that it replaces if there are too many, or nil.
func (r *results[T]) slot(key string) (at, old *slot[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.order, key); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	r.order = append(r.order, key)
	if len(r.order) > maxResults {
		old = r.slots[r.order[0]]
		delete(r.slots, r.order[0])
		r.order = r.order[1:]
	}
	if r.slots == nil {
		r.slots = map[string]*slot[T]{}
	}
	if r.slots[key] == nil {
		r.slots[key] = &slot[T]{used: make(chan struct{}, 1)}
	}
	return r.slots[key], old
}

// drop removes the result of a slot that is no longer in results.
func (s *slot[T]) drop() {
	s.used <- struct{}{}
	defer func() { <-s.used }()
	var none T
	s.gone = true
	s.set(none)
}

// set replaces the result and closes the previous one.
func (s *slot[T]) set(value T) {
	var none T
	if s.value != none {
		go s.value.close() // ends when requests no longer use the result
	}
	s.value = value
}
