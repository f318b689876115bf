package statemgr

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/state"
)

// Replace overwrites the state in the store with s, including its lineage and serial. It is for
// a state that the user provides, and must not be called during an apply.
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
