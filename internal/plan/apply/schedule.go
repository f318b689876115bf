package apply

import (
	"container/heap"
	"sync"

	"github.com/terrace-iac/terrace/plan"
)

// schedule runs the actions. An action runs when all actions that it needs are done; ready
// actions run in the order of their index. Actions that need a failed action are skipped.
//
// An action that changed something counts as done only when its journal record is on disk.
// Workers do not wait for that: one goroutine syncs for all actions that completed since the
// last sync, while workers continue with ready actions.
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
	waiting  []int // per action: the number of its unfinished needs
	users    [][]int
	needed   []bool // per action: an action other than a join needs it, directly or through joins
	bad      []bool // per action: it failed, or needs one that did
	unsynced []int  // carried out, but perhaps not on disk; they count as busy
	left     int
	busy     int
	stopped  bool
	answered chan struct{} // signals that unsynced is not empty; nil without a journal
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

// markNeeded marks the actions that an action needs.
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
		s.call(min(s.done(i, ok), len(s.ready)-1)) // this worker takes one of them
	}
}

// changes reports whether a kind of action changes something that cannot be found by reading
// again.
func changes(k plan.Kind) bool {
	return k != plan.StepJoin && k != plan.StepRead && k != plan.StepNoOp && k != plan.StepCheck
}

// later passes a completed action to the syncer, which will report it as done.
func (s *scheduler) later(i int) {
	s.unsynced = append(s.unsynced, i)
	select {
	case s.answered <- struct{}{}:
	default: // the syncer has been signalled already
	}
}

// sync writes completed actions to disk, before any action that needs them starts.
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

// done records the end of an action. It returns the number of actions that became ready.
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

// call wakes n workers, or all of them at the end of the run.
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
