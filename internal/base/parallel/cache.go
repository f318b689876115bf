package parallel

import (
	"context"
	"sync"
)

// A Cache computes a value once for each key. The zero Cache is empty and ready. Its
// methods may be called concurrently.
//
// The function that computes a value reports whether the value may be kept. A failure that
// depends on the time or the place, such as one of the network, must not be kept: the next
// caller tries again. Callers that were waiting for that value already get it too, so that
// a server that does not answer is not asked by each of them in turn.
//
// A caller whose context ends leaves nothing in the cache, whatever its function returns. A
// caller that waited for it computes the value again.
type Cache[K comparable, V any] struct {
	// Stale reports whether a value that was kept has to be computed again; nil means that
	// values are kept for as long as the Cache.
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

// Do returns the value of a key. The first caller computes it, and the others wait;
// callers with different keys do not wait for each other. err is the cause for which ctx
// ended while Do waited for another caller, otherwise nil. compute must not ask for its own
// key. If it panics, it does so in its own caller.
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

// Local is Do for values that are computed from memory and local files, for which nobody
// has to be asked: such a computation is short, so nothing interrupts it.
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

// Pure is Local for values that depend on nothing but the key, so that they are always kept.
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

// stale reports whether an entry that is done has to be replaced.
func (c *Cache[K, V]) stale(e *entry[V]) bool {
	return e.kept && c.Stale != nil && c.Stale(e.v)
}

// usable reports whether a caller may wait for an entry, or take its value.
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

// claim returns the entry of a key. mine means that the caller has to compute its value.
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

// run computes the value of an entry. What was computed by a caller that is canceled then
// is not kept, and is no value for those who wait.
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
