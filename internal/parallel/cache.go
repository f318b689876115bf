package parallel

import "sync"

// A Cache computes a value once for each key. The zero Cache is empty and
// ready; its methods may be called concurrently.
type Cache[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	done chan struct{} // closed when value is set
	v    V
	ok   bool // false if computing it panicked
}

// Do returns the value of a key. The first caller computes it, the others wait
// for that one; different keys do not wait for each other. A computation must
// not ask for its own key. One that panics does so in its own caller; the others
// then compute it anew.
func (c *Cache[K, V]) Do(key K, compute func() V) V {
	for {
		e, mine := c.claim(key)
		if mine {
			return c.run(key, e, compute)
		}
		<-e.done
		if e.ok {
			return e.v
		}
	}
}

// Get returns the value of a key if it was computed already. It does not wait.
func (c *Cache[K, V]) Get(key K) (v V, ok bool) {
	c.mu.RLock()
	e := c.entries[key]
	c.mu.RUnlock()
	if e == nil {
		return v, false
	}
	select {
	case <-e.done:
		return e.v, e.ok
	default:
		return v, false
	}
}

func (c *Cache[K, V]) claim(key K) (e *entry[V], mine bool) {
	c.mu.RLock()
	e = c.entries[key]
	c.mu.RUnlock()
	if e != nil {
		return e, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil {
		return e, false
	}
	if c.entries == nil {
		c.entries = make(map[K]*entry[V])
	}
	e = &entry[V]{done: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

func (c *Cache[K, V]) run(key K, e *entry[V], compute func() V) V {
	defer func() {
		if !e.ok {
			c.mu.Lock()
			delete(c.entries, key)
			c.mu.Unlock()
		}
		close(e.done)
	}()
	e.v = compute()
	e.ok = true
	return e.v
}
