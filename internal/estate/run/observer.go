package run

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// An Observer receives the events of a run. Its methods are called concurrently. Embed Silent to
// implement only some of them.
type Observer interface {
	Started(u *discovery.Unit)
	// Event receives the events of a unit's engine. Event.Unit names the unit.
	Event(e event.Event)
	// Planned is called with each plan, while the engine that made it is open.
	Planned(u *discovery.Unit, e *engine.Engine, p *plan.Plan)
	// Applied is called when an apply has ended without errors, before Ended. The state is the
	// one after the apply; nil means that there is none.
	Applied(res *report.Result, s *state.State)
	Ended(res *report.Result)
	// Hook is called with the name of a hook when it begins, and with "" when it ends.
	Hook(u *discovery.Unit, name string)
	// Again is called when a unit failed and its errors block makes the run retry it.
	Again(u *discovery.Unit, d retry.Decision, failed diag.List)
	// Log receives the output of hooks, line by line while they run. Standard output and standard
	// error are in the order in which they were written.
	Log(u *discovery.Unit, line string)
	// Messages is called with each message of a run with a Command as soon as the message exists.
	// The result contains the messages too.
	Messages(u *discovery.Unit, ds diag.List)
}

// An ErrorObserver receives the standard error of hooks apart. Log then receives only the
// standard output.
type ErrorObserver interface {
	Observer
	LogErr(u *discovery.Unit, line string)
}

// Silent is an Observer that does nothing.
type Silent struct{}

// Started does nothing.
func (Silent) Started(*discovery.Unit) {}

// Event does nothing.
func (Silent) Event(event.Event) {}

// Planned does nothing.
func (Silent) Planned(*discovery.Unit, *engine.Engine, *plan.Plan) {}

// Applied does nothing.
func (Silent) Applied(*report.Result, *state.State) {}

// Ended does nothing.
func (Silent) Ended(*report.Result) {}

// Hook does nothing.
func (Silent) Hook(*discovery.Unit, string) {}

// Again does nothing.
func (Silent) Again(*discovery.Unit, retry.Decision, diag.List) {}

// Log does nothing.
func (Silent) Log(*discovery.Unit, string) {}

// Messages does nothing.
func (Silent) Messages(*discovery.Unit, diag.List) {}

// hookOutput passes the output of a unit's hooks to an Observer.
type hookOutput struct {
	unit *discovery.Unit
	to   Observer
}

func (o hookOutput) Hook(name string) { o.to.Hook(o.unit, name) }

func (o hookOutput) Log(line string) { o.to.Log(o.unit, line) }

// splitOutput passes the two streams of a unit's hooks apart.
type splitOutput struct {
	hookOutput
	errs ErrorObserver
}

func (o splitOutput) LogErr(line string) { o.errs.LogErr(o.unit, line) }
