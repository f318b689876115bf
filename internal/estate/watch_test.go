package estate

import (
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// A Watch is an observer for tests. Its functions may be nil.
type Watch struct {
	Silent
	OnStarted func(*Unit)
	OnPlanned func(*Unit, *engine.Engine, *plan.Plan)
	OnApplied func(*Result, *state.State)
	OnEnded   func(*Result)
	OnHook    func(u *Unit, name string)
	OnLog     func(u *Unit, line string)
}

func (w Watch) Started(u *Unit) {
	if w.OnStarted != nil {
		w.OnStarted(u)
	}
}

func (w Watch) Planned(u *Unit, e *engine.Engine, p *plan.Plan) {
	if w.OnPlanned != nil {
		w.OnPlanned(u, e, p)
	}
}

func (w Watch) Applied(r *Result, s *state.State) {
	if w.OnApplied != nil {
		w.OnApplied(r, s)
	}
}

func (w Watch) Ended(r *Result) {
	if w.OnEnded != nil {
		w.OnEnded(r)
	}
}

func (w Watch) Hook(u *Unit, name string) {
	if w.OnHook != nil {
		w.OnHook(u, name)
	}
}

func (w Watch) Log(u *Unit, line string) {
	if w.OnLog != nil {
		w.OnLog(u, line)
	}
}
