package estate

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/plan"
)

// Op is what a run does with each unit.
type Op string

// The operations. Apply plans each unit just before it applies it.
const (
	Plan     Op = "plan"
	Apply    Op = "apply"
	Validate Op = "validate"
	Init     Op = "init" // install what the units need, and nothing else
)

// RunOptions are the knobs of a run.
type RunOptions struct {
	Op     Op
	Plans  Plans
	Queue  Queue
	Limits Limits
	Lock   LockOptions
	Every  time.Duration // how often the whole state is written in an apply
	// Approved says what was approved, by unit; a unit whose plan does something else
	// now is not applied. nil: whatever the plans say.
	Approved map[string]*Approval
	// Ask is asked whether to do work that was put off when the approved plans were
	// made: the results, by name, hold the plans. It is called when nothing else is
	// left to do, and again when more comes up. nil: all of it is done.
	Ask func([]*Result) bool
	// Asks is called before, for each of these plans, while its engine is open.
	Asks func(u *Unit, e *engine.Engine, p *engine.Plan)
	// Saving takes the plans, which are to be saved: the results hold none. nil: nothing
	// is saved.
	Saving *Saving
	// DropPlans lets go of the plans once they were observed: the results hold none.
	DropPlans bool
	// Stop, when closed, lets what runs end and starts nothing more.
	Stop    <-chan struct{}
	Observe Observer
}

// Plans say what the plans of a run are about. Zero means to create, change and
// destroy what differs from the configuration, of everything.
type Plans struct {
	Destroy     bool // destroy everything, dependents first
	RefreshOnly bool
	SkipRefresh bool
	Targets     []addr.Target
	Excludes    []addr.Target
	Replace     []addr.Instance
}

// mode is the engine's mode for these plans.
func (p *Plans) mode() plan.Mode {
	switch {
	case p.Destroy:
		return plan.Destroy
	case p.RefreshOnly:
		return plan.RefreshOnly
	}
	return plan.Normal
}

// A Queue says when the turn of a unit comes. Zero means after those that it needs,
// if none of these failed.
type Queue struct {
	FailFast     bool // nothing begins once a unit has failed
	IgnoreErrors bool // a unit runs though one that it needs failed
	IgnoreOrder  bool // a unit waits for no other
}

// before are the units that a unit waits for; destroy says that what needs it goes
// first.
func (q Queue) before(u *Unit, destroy bool) []*Unit {
	switch {
	case q.IgnoreOrder:
		return nil
	case destroy:
		return u.NeededBy
	}
	return u.Needs
}

// Limits say how much goes on at once.
type Limits struct {
	Units int // 0 means 16
	Calls int // of providers, in a unit; 0 means 10
	All   int // calls of providers, in all units; 0 means any number
}
