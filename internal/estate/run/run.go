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
	"github.com/terrace-iac/terrace/unit"
)

// defaultPlaces is the default number of units that run concurrently. Units mostly wait for
// providers and disks.
const defaultPlaces = 16

// A Runner contains the data that the turns of all units of an estate share.
type Runner struct {
	Command     string       // name of the command, such as "plan"
	Machine     unit.Machine // Now is required
	Root        string       // root directory of the estate
	Loader      *unit.Loader // evaluates units with the outputs in Computed, as far as they exist
	Static      *unit.Loader // evaluates units with all outputs unknown
	Computed    *outputs.Computed
	Dirs        *workcopy.Maker
	Credentials *credentials.Credentials
	States      *states.Keeper
	Changing    *states.Changing
	Host        Host
	Inputs      Inputs
	NoHooks     bool
	NoRetries   bool
	// ShareProviders lists providers whose processes units always share, and OwnProviders lists
	// those whose processes they never share. For other providers, see directoryUse.
	ShareProviders, OwnProviders []addr.Provider
	Moves                        *moves.Between
	// Name returns the name of the unit with an ID.
	Name func(id string) string
	// Redactor removes secrets from results. It may be nil.
	Redactor *diag.Redactor
	// First drops warnings that were already reported for the same source range. Runs may share
	// it.
	First *GivenWarnings
}

// Inputs configures the checks of inputs. The zero value allows inputs that the module does not
// declare.
type Inputs struct {
	Strict bool // inputs that a module does not declare are errors
	Debug  bool // the inputs of each unit are written to a file next to its unit file
	Mocks  bool // mock outputs take precedence over planned ones
}

// Op is the operation of a run.
type Op string

// The operations. Apply plans each unit immediately before it applies it.
const (
	Plan     Op = "plan"
	Apply    Op = "apply"
	Validate Op = "validate"
	Init     Op = "init" // only installs modules and providers
)

// Options configures a run.
type Options struct {
	Op      Op
	Command *Command     // replaces Op; nil means Op
	Plan    plan.Options // GenerateTo is a path in the working directory of each unit
	Rounds  Rounds
	Reads   Reads
	Queue   schedule.Rules
	Limits  Limits
	Lock    arguments.Lock
	Tests   string        // directory of test files that Validate checks too; "" means none
	Every   time.Duration // interval at which apply writes the whole state
	// ShowSensitive shows the output of provisioners whose configuration contains secrets.
	ShowSensitive bool
	// Approved contains the approved plan of each unit, by unit name. A unit whose plan differs
	// now is not applied. nil means that no approval is required.
	Approved map[string]*saved.Approval
	// Approver approves actions that were deferred when the approved plans were made. nil
	// approves all.
	Approver Approver
	// Saving receives the plans to be saved; the results then contain none. nil means that no
	// plans are saved.
	Saving *saved.Saving
	// DropPlans removes the plans from the results after they were passed to the observer.
	DropPlans bool
	// Stop, when closed, lets running units end and prevents others from starting.
	Stop    <-chan struct{}
	Observe Observer // nil means Silent
	// Scheduler decides when units run. nil means schedule.Local, which runs them in this
	// process.
	Scheduler schedule.Scheduler
	// Elsewhere runs a unit in another process and fills in its result. ask returns the user's
	// answer about deferred actions, as Approver does. nil means that all units run in this process.
	Elsewhere func(ctx context.Context, res *report.Result, ask func() bool)
	// Computed contains the outputs that are known before the run, and receives those of the run.
	// It may be nil.
	Computed *outputs.Computed
}

// Rounds configures how an apply of a unit continues if objects are deferred.
type Rounds struct {
	Most  int      // maximum number of plans and applies of a unit; 0 means 1
	Allow []string // the actions that rounds after the first may do if Approver is nil; see rounds.Check
}

// An Approver asks the user whether to carry out actions that were deferred when the plans of a
// run were approved.
type Approver interface {
	// Deferred is called for each plan with such actions, while the plan's engine is open.
	Deferred(u *discovery.Unit, e *engine.Engine, p *plan.Plan)
	// Approve asks about these plans. The results are sorted by unit name and contain the plans.
	// Approve is called when no other work is left, and again if more such plans follow.
	Approve([]*report.Result) bool
}

// Limits contains the limits of concurrency.
type Limits struct {
	Units int // concurrent units; 0 means 16
	Calls int // concurrent provider calls of a unit; 0 means 10
	All   int // concurrent provider calls of all units; 0 means no limit
	Most  int // upper bound of Calls and of the unit's own setting; 0 means no limit
	// Of is the number of concurrent calls to each provider with one configuration, in all units.
	// With CountPerEngine, calls are counted in each unit separately, and Of is the limit of one
	// unit.
	Of             map[addr.Provider]int
	CountPerEngine bool
}

// GivenWarnings drops warnings that were already reported for the same source range, as happens
// if many units include the same file. The zero value is ready to use. It may be used
// concurrently.
type GivenWarnings struct{ given sync.Map }

// Of returns the messages of ds without the warnings that an earlier call returned.
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

// execution is the state of one call of Runner.Run.
type execution struct {
	*Runner
	o      Options
	procs  *engine.Processes
	needs  *needs
	claims states.Claims

	digests parallel.Cache[*workcopy.Parsed, string] // digests of configurations

	mu     sync.Mutex
	asking []*question // questions of paused turns
}

// Run runs the units in dependency order and returns a result for each, in the order of units.
// Dependencies run first, or last if the run destroys. If a unit fails, only units that depend on
// it are not run.
func (r *Runner) Run(ctx context.Context, units []*discovery.Unit, o Options) []*report.Result {
	places := o.Limits.Units
	if places <= 0 {
		places = defaultPlaces
	}
	if o.Observe == nil {
		o.Observe = Silent{}
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
		runs = nil // commands and other processes have their own provider processes
	}
	x.procs = x.newProcesses(ctx, runs)
	r.Changing.Use(x.procs)
	scheduler := o.Scheduler
	if scheduler == nil {
		scheduler = schedule.Local{Places: places}
	}
	tasks := discovery.Tasks(units, o.Plan.Mode == plan.Destroy)
	ended := func(i int, res *report.Result) {
		if o.Elsewhere == nil || res.Ended.IsZero() { // Elsewhere may have set the time
			res.Ended = r.Machine.Now()
		}
		res.Diags, res.Cause, res.Message = r.Redactor.List(res.Diags), r.Redactor.Text(res.Cause), r.Redactor.Text(res.Message)
		results[i] = res
		o.Observe.Ended(res)
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
			res.Interrupted = res.Status == report.Failed && x.stopping(ctx)
			ended(i, res)
			return outcome(res)
		},
		Refused: func(i int, why schedule.Refusal) {
			res := refused(units, i, why, r.Machine.Now())
			res.Interrupted = x.stopping(ctx)
			ended(i, res)
		},
		Stopping: x.stopping,
		Idle:     x.askAll,
	})
	x.procs.Close()
	return results
}

// Look prepares a unit in the same way as Run does for a Command with Look, and returns its Site.
// The text of the module's files is added to set.
func (r *Runner) Look(ctx context.Context, u *discovery.Unit, set *source.Set) (*Site, diag.List) {
	x := &execution{Runner: r, o: Options{Command: &Command{Look: true, Set: func(*discovery.Unit) *source.Set { return set }}}}
	t := x.newTurn(ctx, &report.Result{Unit: u}, false, nil)
	if _, ds := t.prepare(ctx); ds.HasErrors() {
		return nil, r.Redactor.List(ds)
	}
	return t.at, nil
}

// Each calls do for one unit after the other, in the order and with the rules of a run. do fills
// in the result of a unit. without is called for units that the rules prevent from running.
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

// outcome converts a result to the outcome that the scheduler uses for dependent units.
func outcome(res *report.Result) schedule.Outcome {
	switch res.Status {
	case report.Failed:
		return schedule.Failed
	case report.EarlyExit:
		return schedule.NotRun
	}
	return schedule.Done
}

// refused returns the result of a unit that the scheduler did not run.
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

// turn runs one unit, and retries it as its errors block requires.
func (x *execution) turn(ctx context.Context, res *report.Result, pause schedule.Pause) {
	u := res.Unit
	x.o.Observe.Started(u)
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
		if x.o.Command != nil && x.o.Command.Look { // errors blocks do not apply to commands that only read
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
			x.o.Observe.Again(u, decision, ds.Errors())
			if retry.Pause(ctx, x.o.Stop, decision.Sleep) {
				continue
			}
		}
		res.Diags = append(res.Diags, ds...)
		res.Fail(ds)
		return
	}
}

// Refuse returns the results of a run that did not begin, in the order of units. Units with
// errors in invalid failed. Units that depend on them are blocked. All other units were not run,
// with cause as the reason.
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
			tasks[i].Needs = nil // a unit with errors fails whatever its dependencies do; every cycle has such a unit
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
