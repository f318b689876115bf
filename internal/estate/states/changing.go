package states

import (
	"sync"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// Changing is the states that are being changed, and the providers that run, for a program
// that is about to end although units are being applied. The zero value is empty.
type Changing struct {
	mu    sync.Mutex
	all   map[*statemgr.State]bool
	procs *engine.Processes // nil: no run began yet
	over  bool
}

// Add notes a state that is being changed.
func (h *Changing) Add(s *statemgr.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*statemgr.State]bool{}
	}
	h.all[s] = true
	if h.over {
		s.Abandon()
	}
}

// Remove notes that a state is whole again.
func (h *Changing) Remove(s *statemgr.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, s)
}

// Use notes the providers of a run.
func (h *Changing) Use(p *engine.Processes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.procs = p
}

// EndProviders ends the providers of a run that is still going on. What they were doing
// comes to nothing: Abandon comes first.
func (h *Changing) EndProviders() {
	h.mu.Lock()
	procs := h.procs
	h.mu.Unlock()
	if procs != nil {
		procs.Close()
	}
}

// Abandon leaves states and journals as they are.
func (h *Changing) Abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for s := range h.all {
		s.Abandon()
	}
}
