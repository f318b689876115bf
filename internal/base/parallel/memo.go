package parallel

import "sync"

// A Memo keeps values that are cheap to compute again: callers with the same key do not wait for each other,
// and may compute a value twice. It needs less memory for each value than a Cache. The zero Memo is empty and
// ready to use. Its method may be called concurrently.
type Memo[K comparable, V any] struct {
	mu  sync.RWMutex
	all map[K]V
}

// Of returns the value of a key. compute reports whether the value may be kept.
func (m *Memo[K, V]) Of(key K, compute func() (v V, keep bool)) V {
	m.mu.RLock()
	v, ok := m.all[key]
	m.mu.RUnlock()
	if ok {
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
