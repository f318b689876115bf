// Package flow is the workflow of a run: the engine's history holds the graph of the
// units, what is done, and references to what the units have made.
//
// Main types: Input and Scheduler. The one rule: what is decided here depends on the
// history alone, so nothing in this package asks for the time, the machine or a map's
// order.
package flow

import (
	"slices"

	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"go.temporal.io/sdk/workflow"
)

// A Scheduler gives tasks their turns in a workflow, by the rules of schedule.Progress.
type Scheduler struct {
	// Places is how many turns there are at once.
	Places int
	// Turn begins the turn of a task. What it gives becomes ready with what came of it.
	Turn func(task int) workflow.Future
	// Ended reads that, once it is ready. asks says that the turn was broken off until
	// somebody answers, when it begins again.
	Ended func(task int, f workflow.Future) (out schedule.Outcome, asks bool)
	// Refused is called for tasks that have no turn.
	Refused func(task int, why schedule.Refusal)
	// Room reports whether a task may begin now, besides Places. May be nil: it may. If nothing
	// is under way, something may.
	Room func(task int) bool
	// Filled is called when all that can begin has begun. May be nil.
	Filled func()
	// Idle is called when nothing is left to do but turns that ask, in their order by name. It
	// reports whether they are to go on.
	Idle func(ctx workflow.Context, asking []int) bool
	// Pausing reports whether nothing is to begin for now: Run returns false when what is
	// under way has ended. May be nil.
	Pausing func() bool
}

// A Run is how far a Scheduler is.
type Run struct {
	s       *Scheduler
	p       *schedule.Progress
	ready   []int
	running map[int]workflow.Future
	order   []int // of running, as they began
	asking  []int
}

// Begin begins with tasks of which some have ended before: out tells, in the order that
// they ended in.
func (s *Scheduler) Begin(tasks []schedule.Task, rules schedule.Rules, before []TaskResult) *Run {
	r := &Run{s: s, running: map[int]workflow.Future{}}
	r.p, r.ready = schedule.NewProgress(tasks, rules)
	done := map[int]bool{}
	for _, e := range before {
		done[e.Task] = true
		r.ready = append(r.ready, r.p.End(e.Task, e.Outcome)...)
	}
	kept := r.ready[:0]
	for _, i := range r.ready {
		if !done[i] {
			kept = append(kept, i)
		}
	}
	r.ready = kept
	return r
}

// A TaskResult is what came of a task.
type TaskResult struct {
	Task    int              `json:"t"`
	Outcome schedule.Outcome `json:"o"`
}

// Run goes on until everything is done, which it reports, or Pausing. stopping reports
// whether nothing more is to begin.
func (r *Run) Run(ctx workflow.Context, stopping func() bool) (over bool) {
	for {
		r.fill(stopping)
		switch {
		case len(r.running) > 0:
		case len(r.ready) > 0: // pausing
			return false
		case len(r.asking) > 0:
			r.answer(ctx, stopping)
			continue
		default:
			return true
		}
		sel := workflow.NewSelector(ctx)
		for _, i := range r.order {
			sel.AddFuture(r.running[i], func(f workflow.Future) { r.end(i, f) })
		}
		sel.Select(ctx)
	}
}

// fill begins what can begin.
func (r *Run) fill(stopping func() bool) {
	for k := 0; k < len(r.ready) && len(r.running) < r.s.Places; {
		if r.s.Pausing != nil && r.s.Pausing() {
			break
		}
		i := r.ready[k]
		if r.s.Room != nil && !r.s.Room(i) {
			k++
			continue
		}
		r.ready = slices.Delete(r.ready, k, k+1)
		if why, ok := r.p.Begin(i, stopping()); !ok {
			r.s.Refused(i, why)
			r.ready = append(r.ready, r.p.End(i, schedule.NotRun)...)
			continue
		}
		r.running[i] = r.s.Turn(i)
		r.order = append(r.order, i)
	}
	if r.s.Filled != nil {
		r.s.Filled()
	}
}

// end takes what came of a turn.
func (r *Run) end(i int, f workflow.Future) {
	delete(r.running, i)
	for k, n := range r.order {
		if n == i {
			r.order = append(r.order[:k:k], r.order[k+1:]...)
			break
		}
	}
	out, asks := r.s.Ended(i, f)
	if asks {
		r.asking = append(r.asking, i)
		return
	}
	r.ready = append(r.ready, r.p.End(i, out)...)
}

// answer lets the turns that asked begin again, or ends them.
func (r *Run) answer(ctx workflow.Context, stopping func() bool) {
	asking := r.asking
	r.asking = nil
	if !stopping() && r.s.Idle(ctx, asking) {
		for _, i := range asking {
			r.running[i] = r.s.Turn(i)
			r.order = append(r.order, i)
		}
		return
	}
	for _, i := range asking {
		r.ready = append(r.ready, r.p.End(i, schedule.NotRun)...)
	}
}
