// Package flow is the workflow of a run. The engine's history contains the graph of the units,
// the results of finished units, and references to their outputs.
//
// Main types: Input and Scheduler. The one rule: all decisions depend on the history alone, so
// this package never uses the time, the machine or the order of a map.
package flow

import (
	"slices"

	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"go.temporal.io/sdk/workflow"
)

// A Scheduler runs tasks in a workflow, by the rules of schedule.Progress.
type Scheduler struct {
	// Places is the maximum number of concurrent turns.
	Places int
	// Turn starts the turn of a task. The returned future becomes ready with the result.
	Turn func(task int) workflow.Future
	// Ended reads the result of a turn from its future, which is ready. asks means that the turn
	// stopped until the user answers, and then starts again.
	Ended func(task int, f workflow.Future) (out schedule.Outcome, asks bool)
	// Refused is called for tasks that do not run.
	Refused func(task int, why schedule.Refusal)
	// Room reports whether a task may start now, in addition to Places. It must return true for
	// some task if none is running. It may be nil.
	Room func(task int) bool
	// Filled is called when all tasks that can start have started. It may be nil.
	Filled func()
	// Idle is called when only turns that ask are left. asking contains their tasks, in the order
	// in which they asked. Idle reports whether they continue.
	Idle func(ctx workflow.Context, asking []int) bool
	// Pausing reports whether no task may start for now. Run then returns false as soon as the
	// running tasks have ended. It may be nil.
	Pausing func() bool
}

// A Run is the progress of a Scheduler.
type Run struct {
	s       *Scheduler
	p       *schedule.Progress
	ready   []int
	running map[int]workflow.Future
	order   []int // running tasks, in the order in which they started
	asking  []int
}

// Begin starts a run of tasks. Some of them may have ended in earlier executions: before contains
// their results, in the order in which they ended.
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

// A TaskResult is the result of a task.
type TaskResult struct {
	Task    int              `json:"t"`
	Outcome schedule.Outcome `json:"o"`
}

// Run runs tasks until all are done, when it returns true, or until Pausing. stopping reports
// whether no more tasks may start.
func (r *Run) Run(ctx workflow.Context, stopping func() bool) (over bool) {
	for {
		r.fill(stopping)
		switch {
		case len(r.running) > 0:
		case len(r.ready) > 0: // Pausing returned true
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

// fill starts the tasks that can start.
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

// end records the result of a turn.
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

// answer asks the user about the turns that asked, and starts them again or ends them.
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
