package statemgr

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/state"
)

// Replace writes a state as it is, with its own lineage and serial, over whatever the
// store has: for a state that a person brings. It is not for use during an apply.
func (h *State) Replace(ctx context.Context, s *state.State) diag.List {
	h.mu.Lock()
	defer h.mu.Unlock()
	ds := h.own(ctx)
	if ds.HasErrors() {
		return ds
	}
	ds = append(ds, h.o.Store.Write(h.fenced(ctx), s)...)
	if !ds.HasErrors() {
		h.current = s
	}
	return ds
}
