package schedule

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/internal/parallel"
)

// Local runs tasks in this process.
type Local struct {
	Places int // how many turns there are at once; below 1, as many as processors
}

// Run implements Scheduler.
func (l Local) Run(ctx context.Context, tasks []Task, rules Rules, work Work) {
	r := &local{
		tasks: tasks, rules: rules, work: work, queue: parallel.NewQueue(l.Places), after: neededBy(tasks),
		left: make([]int, len(tasks)), blocked: make(map[int]int), notRun: make(map[int]bool),
	}
	if rules.IgnoreOrder {
		r.after = make([][]int, len(tasks))
	}
	var ready []int
	r.mu.Lock()
	if !rules.IgnoreOrder {
		for i, t := range tasks {
			r.left[i] = len(t.Needs)
		}
	}
	for _, i := range Order(tasks) {
		switch {
		case tasks[i].Skip:
			ready = append(ready, r.release(i)...)
		case rules.IgnoreOrder || len(tasks[i].Needs) == 0:
			ready = append(ready, i)
		}
	}
	r.mu.Unlock()
	r.start(ctx, ready)
	for {
		r.queue.Wait()
		if work.Idle == nil || !work.Idle(ctx) {
			return
		}
	}
}

// local is one call of Local.Run.
type local struct {
	tasks []Task
	rules Rules
	work  Work
	queue *parallel.Queue
	after [][]int // by task, those that need it

	mu      sync.Mutex
	left    []int        // how many of its needs each task still waits for
	blocked map[int]int  // by which of its needs a task is kept from running
	notRun  map[int]bool // tasks that had no turn, or broke it off
	failed  bool
}

func (r *local) start(ctx context.Context, tasks []int) {
	for _, i := range tasks {
		r.queue.Add(func() { r.turn(ctx, i) })
	}
}

// turn gives a task its turn, or says why it has none.
func (r *local) turn(ctx context.Context, i int) {
	r.mu.Lock()
	by, isBlocked := r.blocked[i]
	failing := r.rules.FailFast && r.failed
	r.mu.Unlock()
	out := NotRun
	switch {
	case isBlocked:
		r.work.Refused(i, r.blockedBy(by))
	case r.work.Stopping != nil && r.work.Stopping(ctx):
		r.work.Refused(i, Refusal{Reason: Stopping})
	case failing:
		r.work.Refused(i, Refusal{Reason: Failing})
	default:
		out = r.work.Turn(ctx, i, r.pause)
	}
	r.start(ctx, r.finish(i, out))
}

// blockedBy goes from a task that was not run to the one that is behind that.
func (r *local) blockedBy(by int) Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := by
	for {
		up, ok := r.blocked[first]
		if !ok {
			return Refusal{Reason: Blocked, By: by, First: first, FirstNotRun: r.notRun[first]}
		}
		first = up
	}
}

// finish notes what came of a task and returns those that can start now.
func (r *local) finish(i int, out Outcome) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || out == Failed
	if r.notRun[i] = out == NotRun; out != Done && !r.rules.IgnoreErrors {
		for _, n := range r.after[i] {
			if have, ok := r.blocked[n]; !ok || r.tasks[i].Name < r.tasks[have].Name {
				r.blocked[n] = i
			}
		}
	}
	return r.release(i)
}

// release counts a task as done and returns those that can start now. The caller holds
// the lock.
func (r *local) release(i int) []int {
	var out []int
	for _, n := range r.after[i] {
		if r.left[n]--; r.left[n] == 0 && !r.tasks[n].Skip {
			out = append(out, n)
		}
	}
	byName(r.tasks, out)
	return out
}

// pause implements Pause.
func (r *local) pause(note func(resume func())) {
	r.queue.Break(func(b *parallel.Break) { note(b.End) })
}
