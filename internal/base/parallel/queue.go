package parallel

import "sync"

// Queue runs jobs in the background, a limited number at a time. It starts them in the
// order of Add. Create it with NewQueue. Its methods may be called concurrently, and jobs
// may add jobs.
type Queue struct {
	max  int
	mu   sync.Mutex
	todo []queueItem
	busy int
	idle chan struct{} // created by the first call of Wait, closed when no job is left
}

// queueItem is a job, or a break that has ended.
type queueItem struct {
	job  func()
	back *Break
}

// NewQueue returns a queue that runs at most max jobs at a time. If max is below 1, the
// limit is the number of processors.
func NewQueue(max int) *Queue { return &Queue{max: atLeastOne(max)} }

// Add adds a job and returns immediately.
func (q *Queue) Add(job func()) { q.add(queueItem{job: job}) }

func (q *Queue) add(x queueItem) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy == q.max {
		q.todo = append(q.todo, x)
		return
	}
	q.busy++
	if x.back != nil {
		close(x.back.over)
		return
	}
	go q.run(x.job) // ended by Wait
}

// Wait returns when no job is queued or running. It ignores jobs on a break: the caller
// that allowed breaks ends them and calls Wait again.
func (q *Queue) Wait() {
	q.mu.Lock()
	if q.busy == 0 {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	<-idle
}

// run runs a job and then queued jobs until the queue is empty.
func (q *Queue) run(job func()) {
	for job != nil {
		job()
		job = q.next()
	}
}

// next returns the next queued job. Without one, it frees the slot and returns nil.
func (q *Queue) next() (job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) > 0 {
		x := q.todo[0]
		q.todo = q.todo[1:]
		if x.back != nil {
			close(x.back.over) // the slot goes to the job that was on a break
		}
		return x.job
	}
	q.busy--
	if q.busy == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return nil
}

// Break is a wait of a job, during which it occupies no slot of the queue.
type Break struct {
	q    *Queue
	over chan struct{}
}

// Break frees the caller's slot. It returns after End, when the job has a slot again.
// note is called first, while the job still has its slot. Only a job of the queue may
// call Break, on its own goroutine.
func (q *Queue) Break(note func(*Break)) {
	b := &Break{q: q, over: make(chan struct{})}
	note(b)
	if job := q.next(); job != nil {
		go q.run(job) // ended by Wait
	}
	<-b.over
}

// End ends the break. The job continues when a slot is free. Call End once.
func (b *Break) End() { b.q.add(queueItem{back: b}) }
