package schedule

import (
	"context"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/parallel"
)

// Local is the Scheduler that runs tasks in this process.
type Local struct {
	Places int // maximum number of concurrent turns; below 1 means the number of processors
}

// Run implements Scheduler.
func (l Local) Run(ctx context.Context, tasks []Task, rules Rules, work Work) {
	r := &local{work: work, queue: parallel.NewQueue(l.Places)}
	var ready []int
	r.progress, ready = NewProgress(tasks, rules)
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
	work  Work
	queue *parallel.Queue

	mu       sync.Mutex
	progress *Progress
}

func (r *local) start(ctx context.Context, tasks []int) {
	for _, i := range tasks {
		r.queue.Add(func() { r.turn(ctx, i) })
	}
}

// turn runs a task, or reports why it is refused.
func (r *local) turn(ctx context.Context, i int) {
	stopping := r.work.Stopping != nil && r.work.Stopping(ctx)
	r.mu.Lock()
	why, ok := r.progress.Begin(i, stopping)
	r.mu.Unlock()
	out := NotRun
	if ok {
		out = r.work.Turn(ctx, i, r.pause)
	} else {
		r.work.Refused(i, why)
	}
	r.mu.Lock()
	ready := r.progress.End(i, out)
	r.mu.Unlock()
	r.start(ctx, ready)
}

// pause implements Pause.
func (r *local) pause(note func(resume func())) {
	r.queue.Break(func(b *parallel.Break) { note(b.End) })
}
