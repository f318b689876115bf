package parallel

import "sync"

// A Memo keeps values that are cheap to compute again: callers with the same key do not wait for each other,
// and may compute a value twice. It needs less memory for each value than a Cache. The zero Memo is empty and
// ready to use. Its methods may be called concurrently.
type Memo[K comparable, V any] struct {
	mu  sync.RWMutex
	all map[K]V
}

// Of returns the value of a key. compute reports whether the value may be kept.
func (m *Memo[K, V]) Of(key K, compute func() (v V, keep bool)) V {
	if v, ok := m.Get(key); ok {
		return v
	}
	v, keep := compute()
	if keep {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.all == nil {
			m.all = map[K]V{}
		}
		m.all[key] = v
	}
	return v
}

// Get returns the value of a key if it is known.
func (m *Memo[K, V]) Get(key K) (v V, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok = m.all[key]
	return v, ok
}
