package report

import (
	"sync"

	"github.com/terrace-iac/terrace/diag"
)

// Heard remembers what was reported, for several runs that would report the same. A nil
// one remembers nothing. Its methods may be called concurrently.
type Heard struct {
	mu   sync.Mutex
	keys map[heardKey]bool
}

// A heardKey is the same for a message about one unit and about several.
type heardKey struct {
	severity      diag.Severity
	summary, rest string // the place, or without one the detail
}

func heardAs(m *diag.Message) heardKey {
	if m.At == nil {
		return heardKey{m.Severity, m.Summary, m.Detail}
	}
	return heardKey{m.Severity, m.Summary, m.At.String()}
}

// Fresh remembers messages, and leaves out warnings that it remembered before.
func (h *Heard) Fresh(ds diag.List) diag.List {
	if h == nil || len(ds) == 0 {
		return ds
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[heardKey]bool{}
	}
	var out diag.List
	for _, m := range ds {
		key := heardAs(m)
		if !h.keys[key] || m.Severity == diag.Error {
			out = append(out, m)
		}
		h.keys[key] = true
	}
	return out
}

// Has reports whether a message was reported.
func (h *Heard) Has(m *diag.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[heardAs(m)]
}
