package par

import "sync"

// A Queue runs jobs in the background, at most a fixed number at a time, and
// starts them in the order in which they were added. Make it with NewQueue; its
// methods may be called concurrently, and jobs may add jobs.
type Queue struct {
	max  int
	mu   sync.Mutex
	todo []func()
	busy int
	idle chan struct{} // made by the first who waits, closed when nothing is left
}

// NewQueue makes a queue that runs at most max jobs at a time; below 1, as many
// as there are processors.
func NewQueue(max int) *Queue { return &Queue{max: atLeastOne(max)} }

// Add puts a job on the queue and returns at once.
func (q *Queue) Add(job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy == q.max {
		q.todo = append(q.todo, job)
		return
	}
	q.busy++
	go q.run(job) // ended by Wait
}

// Wait returns when no job is queued or running.
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

// run does a job and then queued ones until there are none.
func (q *Queue) run(job func()) {
	for job != nil {
		job()
		job = q.next()
	}
}

func (q *Queue) next() (job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) > 0 {
		job, q.todo = q.todo[0], q.todo[1:]
		return job
	}
	q.busy--
	if q.busy == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return nil
}
