package states

import (
	"sync"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// Changing contains the states that are being changed and the provider processes that run. A
// program that has to end during an apply uses it to stop. The zero value is empty and ready to
// use. Its methods may be called concurrently.
type Changing struct {
	mu    sync.Mutex
	all   map[*statemgr.State]bool
	procs *engine.Processes // nil until a run begins
	over  bool
}

// Add adds a state that is being changed. After Abandon, it abandons the state at once.
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

// Remove removes a state whose changes are complete.
func (h *Changing) Remove(s *statemgr.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, s)
}

// Use sets the provider processes of the current run.
func (h *Changing) Use(p *engine.Processes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.procs = p
}

// EndProviders ends the provider processes of a run that has not ended. Their operations are
// lost, so the caller calls Abandon first.
func (h *Changing) EndProviders() {
	h.mu.Lock()
	procs := h.procs
	h.mu.Unlock()
	if procs != nil {
		procs.Close()
	}
}

// Abandon stops all writing to states and journals and leaves them as they are.
func (h *Changing) Abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for s := range h.all {
		s.Abandon()
	}
}
