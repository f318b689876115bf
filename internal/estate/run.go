package estate

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/zclconf/go-cty/cty"
)

// defaultParallelism is how many units are worked on at once. Most of a unit's
// time is spent on waiting for providers and disks.
const defaultParallelism = 16

// A Run is one operation over the units of an estate.
type Run struct {
	e     *Estate
	o     RunOptions
	queue *parallel.Queue
	procs *engine.Processes
	needs *needs

	mu      sync.Mutex
	left    map[*Unit]int
	results map[*Unit]*Result
	outputs map[*Unit]cty.Value
	blocked map[*Unit]*Unit // by which of those before it, that failed or did not run itself
	failed  bool
	where   map[string]claim // who has a state file
	asking  []*question      // turns that wait for an answer
}

// Run works on all units in their order and returns a result for each, by name.
// Units that others need come first, or last if things are destroyed. A unit that
// fails keeps those that need it from running, and no others.
func (e *Estate) Run(ctx context.Context, o RunOptions) []*Result {
	workers := o.Limits.Units
	if workers <= 0 {
		workers = defaultParallelism
	}
	r := &Run{
		e: e, o: o, queue: parallel.NewQueue(workers), left: map[*Unit]int{}, results: map[*Unit]*Result{},
		outputs: map[*Unit]cty.Value{}, blocked: map[*Unit]*Unit{}, where: map[string]claim{},
	}
	e.renewUnits()
	e.run = r
	ctx, end := r.traceRun(ctx, workers)
	defer end()
	order := e.Order(o.Plans.Destroy)
	for _, u := range order {
		r.left[u] = len(r.before(u))
	}
	for _, u := range order { // those that are excluded count as done
		if u.Excluded != "" {
			now := e.o.Machine.Now()
			r.results[u] = &Result{Unit: u, Started: now, Ended: now}
			r.results[u].LeaveOut()
		}
	}
	var ready []*Unit
	r.mu.Lock()
	for _, u := range order {
		if u.Excluded != "" {
			ready = append(ready, r.release(u)...)
		} else if len(r.before(u)) == 0 {
			ready = append(ready, u)
		}
	}
	r.mu.Unlock()
	r.procs = r.newProcesses(ctx, slices.DeleteFunc(slices.Clone(order), func(u *Unit) bool { return u.Excluded != "" }))
	e.holding.run(r.procs)
	r.start(ctx, ready)
	r.waves(ctx)
	r.procs.Close()
	out := make([]*Result, 0, len(e.Units))
	for _, u := range e.Units {
		out = append(out, r.results[u])
	}
	return out
}

// renewUnits has the outputs of dependencies asked for anew, as every run wants it:
// what they were before it, they are not in it.
func (e *Estate) renewUnits() {
	e.run = nil
	e.loader = e.loader.Anew(e.outputs)
	for _, u := range e.Units {
		if u.Broken == nil {
			u.Unit, u.place = u.Unit.In(e.loader), nil
		}
	}
}

// before are the units that one waits for in this run, and after those that wait
// for it.
func (r *Run) before(u *Unit) []*Unit { return r.o.Queue.before(u, r.o.Plans.Destroy) }

func (r *Run) after(u *Unit) []*Unit { return r.o.Queue.before(u, !r.o.Plans.Destroy) }

// release counts a unit as done and returns those that can start now. The caller
// holds the lock.
func (r *Run) release(u *Unit) []*Unit {
	var out []*Unit
	for _, n := range r.after(u) {
		if r.left[n]--; r.left[n] == 0 && n.Excluded == "" {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

func (r *Run) start(ctx context.Context, units []*Unit) {
	for _, u := range units {
		r.queue.Add(func() { r.turn(ctx, u) })
	}
}

func (r *Run) stopping(ctx context.Context) bool {
	select {
	case <-r.o.Stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// turn works on one unit.
func (r *Run) turn(ctx context.Context, u *Unit) {
	defer r.over(u)
	res := &Result{Unit: u, Status: Succeeded, Started: r.e.o.Machine.Now()}
	r.mu.Lock()
	by, failFast := r.blocked[u], r.o.Queue.FailFast && r.failed
	r.mu.Unlock()
	switch {
	case by != nil:
		res.Status, res.Reason, res.Cause, res.Code = EarlyExit, "ancestor error", by.Name, 1
		res.Blocker = r.blocker(by)
	case r.stopping(ctx):
		res.Status, res.Reason, res.Cause, res.Code = EarlyExit, "run error", "the run was interrupted", 1
	case failFast:
		res.Status, res.Reason, res.Cause, res.Code = EarlyExit, "ancestor error", "", 1
	default:
		if r.o.Observe.Started != nil {
			r.o.Observe.Started(u)
		}
		ctx, s := r.trace(ctx, u)
		r.work(ctx, u, res)
		traced(s, res)
	}
	r.finish(ctx, res)
}

// blocker is the unit whose failure kept another from running, or which did not run
// itself.
func (r *Run) blocker(u *Unit) Blocker {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.blocked[u] != nil {
		u = r.blocked[u]
	}
	res := r.results[u]
	return Blocker{u.Name, res != nil && res.Status == EarlyExit}
}

// finish notes what came of a unit and lets those that waited for it go on.
func (r *Run) finish(ctx context.Context, res *Result) {
	u := res.Unit
	res.Ended = r.e.o.Machine.Now()
	if r.o.Observe.Ended != nil {
		r.o.Observe.Ended(res)
	}
	r.mu.Lock()
	r.results[u] = res
	if res.Status == Failed || res.Status == EarlyExit {
		r.failed = r.failed || res.Status == Failed
		if !r.o.Queue.IgnoreErrors {
			for _, n := range r.after(u) {
				if have := r.blocked[n]; have == nil || u.Name < have.Name {
					r.blocked[n] = u
				}
			}
		}
	}
	next := r.release(u)
	r.mu.Unlock()
	r.start(ctx, next)
}

// outputsOf are the outputs of a unit as this run has them; ok is false where
// those in its state count.
func (r *Run) outputsOf(u *Unit) (v cty.Value, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok = r.outputs[u]
	return v, ok
}

func (r *Run) setOutputs(u *Unit, v cty.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs[u] = v
}

// claim notes whose state a file is; two units with one are an error.
func (r *Run) claim(u *Unit, path string) diag.List {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := claim{unit: u}
	if rs := u.place.remote; rs != nil {
		mine.at = rs.At
	}
	if other, ok := r.where[path]; ok && other.unit != u {
		return mine.and(other, path)
	}
	r.where[path] = mine
	return nil
}

// work does the operation on one unit, again as its errors block says.
func (r *Run) work(ctx context.Context, u *Unit, res *Result) {
	retry := ""
	for try := 1; ; try++ {
		res.Code = 0
		ds := r.once(ctx, u, res, try > 1)
		if !ds.HasErrors() {
			res.Diags = append(res.Diags, ds...)
			if try > 1 {
				res.Reason, res.Cause = "retry succeeded", retry
			}
			return
		}
		verdict, more := r.e.Judge(ctx, u, ds, try)
		switch {
		case more.HasErrors():
			ds = append(ds, more...)
		case verdict.Ignored != "":
			res.Reason, res.Cause, res.Code = "error ignored", verdict.Ignored, 0
			res.Message = verdict.Message
			for _, m := range ds.Errors() {
				m.Severity = diag.Warning
			}
			res.Diags = append(append(res.Diags, ds...), more...)
			return
		case verdict.Again && !r.stopping(ctx):
			retry = verdict.Retry
			if r.o.Observe.Again != nil {
				r.o.Observe.Again(u, verdict, ds.Errors())
			}
			if r.e.Pause(ctx, r.o.Stop, verdict.Sleep) {
				continue
			}
		}
		res.Diags = append(res.Diags, ds...)
		res.Status, res.Reason, res.Code = Failed, "run error", max(res.Code, 1)
		res.Cause = ds.Errors()[0].Summary
		return
	}
}

// once does the operation on one unit, again if it was begun before in this run and
// failed.
func (r *Run) once(ctx context.Context, u *Unit, res *Result, again bool) diag.List {
	reading, s := telemetry.Start(ctx, "unit_read_config")
	u.about(s).Text("terragrunt_config_path", u.Path)
	w, ds := r.prepare(reading, u, res)
	over(s, ds)
	if ds.HasErrors() || w == nil {
		return ds
	}
	defer w.close()
	ctx, s = telemetry.Start(ctx, "unit_run")
	u.about(s).Text("terraform_command", r.e.o.Request.Command)
	more := r.run(ctx, w, again)
	ended(s, more)
	return append(ds, more...)
}

// run runs the hooks of a unit and the operation between them.
func (r *Run) run(ctx context.Context, w *work, again bool) diag.List {
	w.again = again
	more := w.early(ctx)
	if !more.HasErrors() {
		more = append(more, w.hooks(ctx, false, nil)...)
	}
	if !more.HasErrors() {
		idle, told := w.settle(ctx)
		if more = append(more, told...); !more.HasErrors() && !idle {
			more = append(more, w.do(ctx)...)
		}
	}
	return append(more, w.hooks(ctx, true, more)...)
}

func (w *work) do(ctx context.Context) diag.List {
	switch w.r.o.Op {
	case Init:
		return nil
	case Validate:
		ctx, s := w.phase(ctx, "validate")
		ds := w.engine.Validate(ctx)
		ended(s, ds)
		return ds
	}
	return w.planAndApply(ctx)
}

func (r *Run) observe(u *Unit) event.Sink {
	if r.o.Observe.Event == nil {
		return nil
	}
	return func(ev event.Event) {
		ev.Unit = u.Name
		r.o.Observe.Event(ev)
	}
}

// engineOptions are those of the engine of a unit; calls is how many of providers
// there are at once, if the unit does not say.
func (e *Estate) engineOptions(u *Unit, calls int, observe event.Sink) engine.Options {
	p := u.place
	x := u.extra(e.o.Request.Command)
	at := e.folder(u)
	if x.calls > 0 {
		calls = x.calls
	}
	out := engine.Options{
		Dir: p.dir, Workspace: e.workspace(p), Environ: at.Env, Set: &p.shared.set, Now: e.o.Machine.Now,
		Parallelism: calls, Observe: observe, Sources: &p.shared.sources,
	}
	if e.o.Host.Provisioners != nil {
		out.Provisioners = e.o.Host.Provisioners(at)
	}
	if e.o.Host.ReadState != nil {
		out.ReadState = e.o.Host.ReadState(p.dir)
	}
	return out
}
