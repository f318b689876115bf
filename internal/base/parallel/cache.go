package parallel

import (
	"context"
	"sync"
)

// A Cache computes a value once for each key. The zero Cache is empty and ready to use. Its
// methods may be called concurrently.
//
// The function that computes a value reports whether the value may be kept. A failure that
// depends on the time or the environment, such as a network error, must not be kept, so
// that the next caller tries again. Callers that are already waiting for the value get it
// too, so that an unresponsive server is not called for each of them in turn.
//
// If a caller's context ends, its value is not kept, whatever its function returns. Callers
// that waited for it compute the value again.
type Cache[K comparable, V any] struct {
	// Stale reports whether a kept value must be computed again. nil means that values are
	// kept as long as the Cache.
	Stale func(V) bool

	mu      sync.RWMutex
	entries map[K]*entry[V]
}

// An entry is a value that is being computed or is kept.
type entry[V any] struct {
	done chan struct{} // closed when the fields below are set
	v    V
	kept bool // v stays in the cache
	lost bool // there is no v: its caller was canceled or panicked
}

// Do returns the value of a key. The first caller computes it, and the others wait. Callers
// with different keys do not wait for each other. err is the cause of the end of ctx if
// that ended while Do waited for another caller, and otherwise nil. compute must not
// request its own key. If compute panics, the panic is in its own caller.
func (c *Cache[K, V]) Do(ctx context.Context, key K, compute func() (v V, keep bool)) (v V, err error) {
	for {
		e, mine := c.claim(key)
		if mine {
			return c.run(key, e, compute, func() bool { return ctx.Err() != nil }), nil
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
		if !e.lost {
			return e.v, nil
		}
	}
}

// Local is like Do for values that are computed from memory and local files. Such a
// computation is short, so it cannot be interrupted.
func (c *Cache[K, V]) Local(key K, compute func() (v V, keep bool)) V {
	for {
		e, mine := c.claim(key)
		if mine {
			return c.run(key, e, compute, func() bool { return false })
		}
		if <-e.done; !e.lost {
			return e.v
		}
	}
}

// Pure is like Local for values that depend only on the key, so that they are always kept.
func (c *Cache[K, V]) Pure(key K, compute func() V) V {
	return c.Local(key, func() (V, bool) { return compute(), true })
}

// Get returns the value of a key if it is in the cache. It does not wait.
func (c *Cache[K, V]) Get(key K) (v V, ok bool) {
	c.mu.RLock()
	e := c.entries[key]
	c.mu.RUnlock()
	if e == nil {
		return v, false
	}
	select {
	case <-e.done:
		if e.kept && !c.stale(e) {
			return e.v, true
		}
	default:
	}
	return v, false
}

// Forget removes the value of a key, so that the next caller computes it again. A value that is being
// computed stays.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		select {
		case <-e.done:
			delete(c.entries, key)
		default:
		}
	}
}

// stale reports whether a completed entry must be replaced.
func (c *Cache[K, V]) stale(e *entry[V]) bool {
	return e.kept && c.Stale != nil && c.Stale(e.v)
}

// usable reports whether a caller may wait for an entry, or use its value.
func (c *Cache[K, V]) usable(e *entry[V]) bool {
	if e == nil {
		return false
	}
	if c.Stale == nil {
		return true
	}
	select {
	case <-e.done:
		return !c.stale(e)
	default:
		return true
	}
}

// claim returns the entry of a key. mine means that the caller must compute its value.
func (c *Cache[K, V]) claim(key K) (e *entry[V], mine bool) {
	c.mu.RLock()
	e = c.entries[key]
	c.mu.RUnlock()
	if c.usable(e) {
		return e, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; c.usable(e) {
		return e, false
	}
	if c.entries == nil {
		c.entries = make(map[K]*entry[V])
	}
	e = &entry[V]{done: make(chan struct{}), lost: true}
	c.entries[key] = e
	return e, true
}

// run computes the value of an entry. The value of a canceled caller is not kept, and
// waiting callers do not get it.
func (c *Cache[K, V]) run(key K, e *entry[V], compute func() (V, bool), canceled func() bool) V {
	defer func() {
		if !e.kept {
			c.mu.Lock()
			delete(c.entries, key)
			c.mu.Unlock()
		}
		close(e.done)
	}()
	v, keep := compute()
	e.lost = canceled()
	e.v, e.kept = v, keep && !e.lost
	return v
}
