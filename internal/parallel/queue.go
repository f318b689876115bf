package parallel

import "sync"

// A Queue runs jobs in the background, at most a fixed number at a time, and
// starts them in the order in which they were added. Make it with NewQueue; its
// methods may be called concurrently, and jobs may add jobs.
type Queue struct {
	max  int
	mu   sync.Mutex
	todo []queueItem
	busy int
	idle chan struct{} // made by the first who waits, closed when nothing is left
}

// queueItem is a job, or a break that is over.
type queueItem struct {
	job  func()
	back *Break
}

// NewQueue makes a queue that runs at most max jobs at a time; below 1, as many
// as there are processors.
func NewQueue(max int) *Queue { return &Queue{max: atLeastOne(max)} }

// Add puts a job on the queue and returns at once.
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

// Wait returns when no job is queued or running. Jobs that take a break do not
// count: who began breaks ends them, and waits again.
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

// next takes what is queued, or gives the place up.
func (q *Queue) next() (job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.todo) > 0 {
		x := q.todo[0]
		q.todo = q.todo[1:]
		if x.back != nil {
			close(x.back.over) // the place goes to the job that took the break
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

// A Break is time that a job waits for something without taking up a place in its
// queue.
type Break struct {
	q    *Queue
	over chan struct{}
}

// Break takes one: it returns when somebody ended it and the job has a place again.
// note is called first, while the job still has its place. Only a job of the queue
// may take a break, on its own goroutine.
func (q *Queue) Break(note func(*Break)) {
	b := &Break{q: q, over: make(chan struct{})}
	note(b)
	if job := q.next(); job != nil {
		go q.run(job) // ended by Wait
	}
	<-b.over
}

// End ends the break, once: the job goes on as soon as there is a place for it.
func (b *Break) End() { b.q.add(queueItem{back: b}) }
