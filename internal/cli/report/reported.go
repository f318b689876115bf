package report

import (
	"sync"

	"github.com/terrace-iac/terrace/diag"
)

// Reported remembers reported messages, so that several runs report the same warning once. Its
// methods may be called concurrently.
type Reported struct {
	mu   sync.Mutex
	keys map[reportedKey]bool
}

// A reportedKey identifies a message. It is the same in every unit.
type reportedKey struct {
	severity            diag.Severity
	at, summary, detail string
}

func reportedAs(m *diag.Message) reportedKey {
	key := reportedKey{severity: m.Severity, summary: m.Summary, detail: m.Detail}
	if m.At != nil {
		key.at = m.At.String()
	}
	return key
}

// Fresh returns the errors, and the warnings that it has not seen before. It remembers all of
// them. If h is nil, it returns ds.
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

// Has reports whether Fresh has seen the message.
func (h *Reported) Has(m *diag.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[reportedAs(m)]
}
