package cli

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate"
)

// # The check before a run
//
// Whatever runs over an estate, the estate is checked as a whole first. What would
// change something is refused where there are errors. What only reads is not: in an
// incident the outputs are needed, whatever is wrong elsewhere. There the errors are
// told as warnings, behind the command, but for those that units told themselves.

// onlyRead are the commands that change nothing that units manage.
var onlyRead = []string{
	"output", "show", "workspace list", "workspace show", "state list", "state show", "state pull",
	"providers", "graph", "get", "explain", "config files", "config show",
}

// checked checks an estate for a command that runs on one unit after the other. ds is
// what was said when it was opened. With found it goes on, and that is told behind it.
func (r *estateRun) checked(ctx context.Context, command string, ds diag.List) (found diag.List, ok bool) {
	ds = append(ds, r.estate.Check(ctx, r.f.strict)...).Once()
	if slices.Contains(onlyRead, command) && r.estate.Chosen {
		return ds.Errors(), true
	}
	if ds.HasErrors() {
		return ds, false
	}
	return nil, true
}

// afterwards tells the errors of the check that nobody told yet, as warnings.
func (s *session) afterwards(e *estate.Estate, found diag.List, told *heard) {
	var ds diag.List
	for _, m := range found.Once() {
		if !told.has(m) {
			ds = append(ds, m)
		}
	}
	s.beside(e, asWarnings(ds))
}

// asWarnings is the same messages, none of them an error.
func asWarnings(ds diag.List) diag.List {
	var out diag.List
	for _, m := range ds {
		w := *m
		w.Severity = diag.Warning
		out = append(out, &w)
	}
	return out
}

// heard remembers what was told. A nil heard remembers nothing.
type heard struct {
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

// fresh remembers messages, and leaves out warnings that it remembered before.
func (h *heard) fresh(ds diag.List) diag.List {
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

func (h *heard) has(m *diag.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[heardAs(m)]
}
