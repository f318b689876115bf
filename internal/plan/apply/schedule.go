package apply

import (
	"container/heap"
	"sync"

	"github.com/terrace-iac/terrace/plan"
)

// schedule runs the actions: each when all that it needs are done, lowest index
// first among those that are ready. What needs a failed action is not run.
//
// What changed something is done for those that need it only once the journal's
// record of it is on disk. No worker waits for that: one goroutine syncs for all
// that were answered since its last sync, and the workers go on with what is ready.
func (a *applier) schedule() {
	list := a.in.Plan.Actions
	s := newScheduler(list)
	var workers, syncer sync.WaitGroup
	if a.in.State != nil {
		s.answered = make(chan struct{}, 1)
		syncer.Go(func() { s.sync(a) })
	}
	for range min(a.in.Providers.Parallelism, max(len(list), 1)) {
		workers.Go(func() { s.work(a, list) })
	}
	if a.in.Stop != nil {
		ended := make(chan struct{})
		defer close(ended)
		go func() { // ends with schedule
			select {
			case <-a.in.Stop:
				s.mu.Lock()
				s.stopped = true
				s.wake.Broadcast()
				s.mu.Unlock()
			case <-ended:
			}
		}()
	}
	workers.Wait()
	if s.answered != nil {
		close(s.answered)
	}
	syncer.Wait()
	s.mu.Lock()
	a.result.Stopped = s.stopped && s.left > 0
	a.left = s.left
	s.mu.Unlock()
}

// scheduler is the state of one run over the list.
type scheduler struct {
	mu       sync.Mutex
	wake     sync.Cond
	ready    intHeap
	waiting  []int // unfinished needs
	users    [][]int
	needed   []bool // an action that is not a join needs it, be it through joins
	bad      []bool // the action failed, or needs one that did
	unsynced []int  // carried out, and not known to be on disk; they count as busy
	left     int
	busy     int
	stopped  bool
	answered chan struct{} // there is something in unsynced; nil without a journal
}

func newScheduler(list []plan.Action) *scheduler {
	n := len(list)
	s := &scheduler{waiting: make([]int, n), users: make([][]int, n), needed: make([]bool, n), bad: make([]bool, n), left: n}
	s.wake.L = &s.mu
	for i, act := range list {
		s.waiting[i] = len(act.Needs)
		for _, n := range act.Needs {
			s.users[n] = append(s.users[n], i)
		}
		if len(act.Needs) == 0 {
			s.ready = append(s.ready, i)
		}
		if act.Kind != plan.StepJoin {
			s.markNeeded(list, i)
		}
	}
	heap.Init(&s.ready)
	return s
}

// markNeeded marks what an action needs.
func (s *scheduler) markNeeded(list []plan.Action, i int) {
	todo := []int{i}
	for len(todo) > 0 {
		last := len(todo) - 1
		i, todo = todo[last], todo[:last]
		for _, n := range list[i].Needs {
			if list[n].Kind == plan.StepJoin && !s.needed[n] {
				todo = append(todo, n)
			}
			s.needed[n] = true
		}
	}
}

func (s *scheduler) work(a *applier, list []plan.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.ready) == 0 && s.busy > 0 && !s.stopped {
			s.wake.Wait()
		}
		if s.stopped || len(s.ready) == 0 {
			return
		}
		i := heap.Pop(&s.ready).(int)
		ok := !s.bad[i]
		if ok && list[i].Kind != plan.StepJoin {
			s.busy++
			s.mu.Unlock()
			ok = a.perform(i, list[i])
			s.mu.Lock()
			if ok && s.answered != nil && s.needed[i] && changes(list[i].Kind) {
				s.later(i)
				continue
			}
			s.busy--
		} else if !ok && list[i].Kind != plan.StepJoin {
			a.skip(list[i])
		}
		s.call(min(s.done(i, ok), len(s.ready)-1)) // one of them is for this worker
	}
}

// changes reports whether a step changes something that no second look would show.
func changes(k plan.Kind) bool {
	return k != plan.StepJoin && k != plan.StepRead && k != plan.StepNoOp && k != plan.StepCheck
}

// later leaves it to the syncer to say that an action is done.
func (s *scheduler) later(i int) {
	s.unsynced = append(s.unsynced, i)
	select {
	case s.answered <- struct{}{}:
	default: // it knows
	}
}

// sync sees to it that what was answered is on disk before anything that needs it
// starts.
func (s *scheduler) sync(a *applier) {
	for range s.answered {
		s.mu.Lock()
		list := s.unsynced
		s.unsynced = nil
		s.mu.Unlock()
		if err := a.in.State.Sync(); err != nil {
			a.die(err)
		}
		s.mu.Lock()
		woken := 0
		for _, i := range list {
			s.busy--
			woken += s.done(i, true)
		}
		s.call(woken)
		s.mu.Unlock()
	}
}

// done notes the end of an action, and returns how many are ready by it.
func (s *scheduler) done(i int, ok bool) int {
	s.left--
	woken := 0
	for _, u := range s.users[i] {
		if !ok {
			s.bad[u] = true
		}
		if s.waiting[u]--; s.waiting[u] == 0 {
			heap.Push(&s.ready, u)
			woken++
		}
	}
	return woken
}

// call wakes so many workers, or all if it is over.
func (s *scheduler) call(n int) {
	if s.busy == 0 && len(s.ready) == 0 {
		s.wake.Broadcast()
		return
	}
	for range n {
		s.wake.Signal()
	}
}

// intHeap is a heap of action indexes.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
