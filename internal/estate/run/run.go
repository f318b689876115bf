package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/credentials"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/moves"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/unit"
)

// defaultPlaces is how many units are worked on at once. Most of a unit's time is spent
// on waiting for providers and disks.
const defaultPlaces = 16

// A Runner is what the turns of all units of an estate share.
type Runner struct {
	Command     string       // that runs on the units
	Machine     unit.Machine // of which Now is required
	Root        string       // the folder of the estate
	Loader      *unit.Loader // whose outputs are those of Computed, where it has some
	Static      *unit.Loader // to which all outputs are unknown
	Computed    *outputs.Computed
	Dirs        *workcopy.Maker
	Credentials *credentials.Credentials
	States      *states.Keeper
	Changing    *states.Changing
	Host        Host
	Inputs      Inputs
	NoHooks     bool
	NoRetries   bool
	// ShareProviders are providers whose processes units share though their working
	// folders differ, beside those that are known not to look at theirs.
	ShareProviders []addr.Provider
	Moves          *moves.Between
	// Name is how a unit of an ID is called.
	Name func(id string) string
	// Redactor takes out of results what messages must not show. It may be nil.
	Redactor *diag.Redactor
	// First leaves out warnings that were given before for the same place. It may be shared
	// by runs.
	First *GivenWarnings
}

// Inputs say what is made of the inputs of units. The zero value takes them as they
// are and lets modules leave some undeclared.
type Inputs struct {
	Strict bool // inputs that a module does not declare are errors
	Debug  bool // those of each unit are written to a file beside it
	Mocks  bool // mock outputs come before planned ones
}

// Op is what a run does with each unit.
type Op string

// The operations. Apply plans each unit just before it applies it.
const (
	Plan     Op = "plan"
	Apply    Op = "apply"
	Validate Op = "validate"
	Init     Op = "init" // install what the units need, and nothing else
)

// Options are the knobs of a run.
type Options struct {
	Op      Op
	Command *Command     // in place of Op
	Plan    plan.Options // GenerateTo is a path in the working directory of each unit
	Reads   Reads
	Queue   schedule.Rules
	Limits  Limits
	Lock    arguments.Lock
	Tests   string        // the directory of test files that Validate reads too; "" for none
	Every   time.Duration // how often the whole state is written in an apply
	// Approved says what was approved, by unit; a unit whose plan does something else
	// now is not applied. nil: whatever the plans say.
	Approved map[string]*saved.Approval
	// Ask is asked whether to do work that was deferred when the approved plans were
	// made: the results, by name, hold the plans. It is called when nothing else is
	// left to do, and again when more comes up. nil: all of it is done.
	Ask func([]*report.Result) bool
	// Asks is called before, for each of these plans, while its engine is open.
	Asks func(u *discovery.Unit, e *engine.Engine, p *plan.Plan)
	// Saving takes the plans, which are to be saved: the results hold none. nil: nothing
	// is saved.
	Saving *saved.Saving
	// DropPlans lets go of the plans once they were observed: the results hold none.
	DropPlans bool
	// Stop, when closed, lets what runs end and starts nothing more.
	Stop    <-chan struct{}
	Observe Observer
	// Scheduler gives units their turns. nil: this process does.
	Scheduler schedule.Scheduler
	// Elsewhere fills in the result of a unit that has its turn in another process; ask waits
	// for the answer whether to do what was deferred before, as Ask gives it. nil: all have
	// theirs here.
	Elsewhere func(ctx context.Context, res *report.Result, ask func() bool)
	// Computed are the outputs that the run begins with, and those that it makes. nil: none.
	Computed *outputs.Computed
}

// Limits say how much goes on at once.
type Limits struct {
	Units int // 0 means 16
	Calls int // of providers, in a unit; 0 means 10
	All   int // calls of providers, in all units; 0 means any number
	Most  int // of providers, in a unit, whatever it says itself; 0 means any number
	// Of is how many calls of a provider with one configuration there are, in all units;
	// CountPerEngine counts them in each unit by itself, whose share Of is then.
	Of             map[addr.Provider]int
	CountPerEngine bool
}

// Observer is called as a run goes on. Its functions are called concurrently, and may be
// nil.
type Observer struct {
	Started func(*discovery.Unit)
	Event   event.Sink
	// Planned is called while the engine that made the plan is open.
	Planned func(u *discovery.Unit, e *engine.Engine, p *plan.Plan)
	// Applied is called when an apply has ended without errors, before Ended, with the
	// state that there is now, nil if there is none.
	Applied func(*report.Result, *state.State)
	Ended   func(*report.Result)
	// Hook is called when a hook of the unit begins, and with "" when it has ended.
	Hook func(u *discovery.Unit, name string)
	// Again is called when a unit failed and its errors block has it tried again.
	Again func(u *discovery.Unit, d retry.Decision, failed diag.List)
	// Log gets the lines of hooks while they run, and LogErr those on their standard
	// error; if LogErr is nil, Log gets all of them in the order they were written in.
	Log, LogErr func(u *discovery.Unit, line string)
	// Messages is called with what comes up around a Command, at once: what it returns is
	// reported already. The messages are among those of the result too.
	Messages func(u *discovery.Unit, ds diag.List)
}

// GivenWarnings leaves out warnings that were given before for the same place, as where
// many units share a file. The zero value is ready; it may be used concurrently.
type GivenWarnings struct{ given sync.Map }

// Of are the messages that were not given before.
func (f *GivenWarnings) Of(ds diag.List) diag.List {
	var out diag.List
	for _, m := range ds {
		if m.Severity == diag.Warning && m.At != nil {
			type warning struct {
				summary string
				at      source.Range
			}
			if _, again := f.given.LoadOrStore(warning{m.Summary, *m.At}, true); again {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// execution is one call of Run.
type execution struct {
	*Runner
	o      Options
	procs  *engine.Processes
	needs  *needs
	claims states.Claims

	digests parallel.Cache[*workcopy.Parsed, string] // of configurations

	mu     sync.Mutex
	asking []*question // turns that wait for an answer
}

// Run works on units in their order and returns a result for each, in the order of units.
// Units that others need come first, or last if things are destroyed. A unit that
// fails keeps those that need it from running, and no others.
func (r *Runner) Run(ctx context.Context, units []*discovery.Unit, o Options) []*report.Result {
	places := o.Limits.Units
	if places <= 0 {
		places = defaultPlaces
	}
	x := &execution{Runner: r, o: o}
	results := make([]*report.Result, len(units))
	ctx, end := x.traceRun(ctx, places, results)
	defer end()
	var runs []*discovery.Unit
	for i, u := range units {
		if u.Excluded != "" {
			now := r.Machine.Now()
			results[i] = &report.Result{Unit: u, Started: now, Ended: now}
			results[i].LeaveOut()
		} else {
			runs = append(runs, u)
		}
	}
	if o.Command != nil || o.Elsewhere != nil {
		runs = nil // which have their own
	}
	x.procs = x.newProcesses(ctx, runs)
	r.Changing.Use(x.procs)
	scheduler := o.Scheduler
	if scheduler == nil {
		scheduler = schedule.Local{Places: places}
	}
	tasks := discovery.Tasks(units, o.Plan.Mode == plan.Destroy)
	ended := func(i int, res *report.Result) {
		if o.Elsewhere == nil || res.Ended.IsZero() { // else it is known when
			res.Ended = r.Machine.Now()
		}
		res.Diags, res.Cause, res.Message = r.Redactor.List(res.Diags), r.Redactor.Text(res.Cause), r.Redactor.Text(res.Message)
		results[i] = res
		if o.Observe.Ended != nil {
			o.Observe.Ended(res)
		}
		x.over(units[i])
	}
	scheduler.Run(ctx, tasks, o.Queue, schedule.Work{
		Turn: func(ctx context.Context, i int, pause schedule.Pause) schedule.Outcome {
			res := &report.Result{Unit: units[i], Status: report.Succeeded, Started: r.Machine.Now()}
			if o.Elsewhere != nil {
				o.Elsewhere(ctx, res, func() bool { return x.ask(&question{res: res}, pause) })
			} else {
				x.turn(ctx, res, pause)
			}
			ended(i, res)
			return outcome(res)
		},
		Refused: func(i int, why schedule.Refusal) {
			ended(i, refused(units, i, why, r.Machine.Now()))
		},
		Stopping: x.stopping,
		Idle:     x.askAll,
	})
	x.procs.Close()
	return results
}

// Each works on units one at a time, in the order and by the rules of a run, by a function
// that fills in the result of a unit. without is called for units that have no turn.
func Each(ctx context.Context, units []*discovery.Unit, rules schedule.Rules, now func() time.Time, do, without func(*report.Result)) []*report.Result {
	results := make([]*report.Result, len(units))
	tasks := discovery.Tasks(units, false)
	for i, u := range units {
		results[i] = &report.Result{Unit: u, Status: report.Succeeded, Started: now()}
		if tasks[i].Skip {
			results[i].LeaveOut()
			results[i].Ended = now()
		}
	}
	schedule.Local{Places: 1}.Run(ctx, tasks, rules, schedule.Work{
		Turn: func(_ context.Context, i int, _ schedule.Pause) schedule.Outcome {
			results[i].Started = now()
			do(results[i])
			results[i].Ended = now()
			return outcome(results[i])
		},
		Refused: func(i int, why schedule.Refusal) {
			results[i] = refused(units, i, why, now())
			without(results[i])
		},
		Stopping: func(ctx context.Context) bool { return ctx.Err() != nil },
	})
	return results
}

// outcome is what a result means to those that need the unit.
func outcome(res *report.Result) schedule.Outcome {
	switch res.Status {
	case report.Failed:
		return schedule.Failed
	case report.EarlyExit:
		return schedule.NotRun
	}
	return schedule.Done
}

// refused is the result of a unit that has no turn.
func refused(units []*discovery.Unit, i int, why schedule.Refusal, now time.Time) *report.Result {
	res := &report.Result{Unit: units[i], Started: now, Ended: now}
	switch why.Reason {
	case schedule.Blocked:
		res.Break("ancestor error", units[why.By].Name)
		res.Blocker = report.Blocker{Name: units[why.First].Name, Kept: why.FirstNotRun}
	case schedule.Stopping:
		res.Break("run error", cmp.Or(why.Text, "the run was interrupted"))
	case schedule.Failing:
		res.Break("ancestor error", "")
	}
	return res
}

func (x *execution) stopping(ctx context.Context) bool {
	select {
	case <-x.o.Stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// turn gives one unit its turn, again as its errors block says.
func (x *execution) turn(ctx context.Context, res *report.Result, pause schedule.Pause) {
	u := res.Unit
	if x.o.Observe.Started != nil {
		x.o.Observe.Started(u)
	}
	ctx, s := x.trace(ctx, u)
	defer traced(s, res)
	if !x.begin(ctx, res) {
		return
	}
	label := ""
	for try := 1; ; try++ {
		res.Code = 0
		t := x.newTurn(ctx, res, try > 1, pause)
		ds := t.run(ctx)
		if !ds.HasErrors() {
			res.Diags = append(res.Diags, ds...)
			if try > 1 {
				res.Reason, res.Cause = "retry succeeded", label
			}
			return
		}
		if x.o.Command != nil && x.o.Command.Look { // errors blocks are about what runs
			res.Diags = append(res.Diags, ds...)
			res.Fail(ds)
			return
		}
		decision, more := t.decide(ds, try)
		x.tell(u, more)
		switch {
		case more.HasErrors():
			ds = append(ds, more...)
		case decision.Ignore != nil:
			res.Reason, res.Cause, res.Code = "error ignored", decision.Ignore.Name, 0
			res.Message = decision.Ignore.Message
			res.Diags = append(append(res.Diags, ds.AsWarnings()...), more...)
			return
		case decision.Again && !x.stopping(ctx):
			label = decision.Retry
			if x.o.Observe.Again != nil {
				x.o.Observe.Again(u, decision, ds.Errors())
			}
			if retry.Pause(ctx, x.o.Stop, decision.Sleep) {
				continue
			}
		}
		res.Diags = append(res.Diags, ds...)
		res.Fail(ds)
		return
	}
}

// Refuse are the results of a run that did not begin, in the order of units: those with
// errors failed, those that come after them were kept from running by them, and all others
// were not run for a cause. invalid is what is wrong with units.
func Refuse(units []*discovery.Unit, destroy bool, invalid map[*discovery.Unit]diag.List, cause string, now time.Time) []*report.Result {
	results := make([]*report.Result, len(units))
	for i, u := range units {
		if u.Excluded != "" {
			results[i] = &report.Result{Unit: u, Started: now, Ended: now}
			results[i].LeaveOut()
		}
	}
	tasks := discovery.Tasks(units, destroy)
	for i, u := range units {
		if invalid[u].HasErrors() {
			tasks[i].Needs = nil // it failed by itself, whatever comes before it; every cycle has such units
		}
	}
	schedule.Local{Places: 1}.Run(context.Background(), tasks, schedule.Rules{}, schedule.Work{
		Turn: func(_ context.Context, i int, _ schedule.Pause) schedule.Outcome {
			res := &report.Result{Unit: units[i], Started: now, Ended: now}
			results[i] = res
			if ds := invalid[units[i]].Errors(); len(ds) > 0 {
				res.Fail(ds)
				res.Diags = ds.Once()
				return schedule.Failed
			}
			res.Break("run error", cause)
			return schedule.Done
		},
		Refused: func(i int, why schedule.Refusal) {
			results[i] = refused(units, i, why, now)
		},
	})
	return slices.Clip(results)
}
