package report

import (
	"sync"

	"github.com/terrace-iac/terrace/diag"
)

// Reported remembers what was reported, for several runs that would report the same. A nil
// one remembers nothing. Its methods may be called concurrently.
type Reported struct {
	mu   sync.Mutex
	keys map[reportedKey]bool
}

// A reportedKey is the same for a message about one unit and about several.
type reportedKey struct {
	severity      diag.Severity
	summary, rest string // the place, or without one the detail
}

func reportedAs(m *diag.Message) reportedKey {
	if m.At == nil {
		return reportedKey{m.Severity, m.Summary, m.Detail}
	}
	return reportedKey{m.Severity, m.Summary, m.At.String()}
}

// Fresh remembers messages, and leaves out warnings that it remembered before.
func (h *Reported) Fresh(ds diag.List) diag.List {
	if h == nil || len(ds) == 0 {
		return ds
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[reportedKey]bool{}
	}
	var out diag.List
	for _, m := range ds {
		key := reportedAs(m)
		if !h.keys[key] || m.Severity == diag.Error {
			out = append(out, m)
		}
		h.keys[key] = true
	}
	return out
}

// Has reports whether a message was reported.
func (h *Reported) Has(m *diag.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[reportedAs(m)]
}
