package apply

import (
	"container/heap"
	"sync"

	"github.com/terrace-iac/terrace/internal/plan"
)

// schedule runs the actions: each when all that it needs are done, lowest index
// first among those that are ready. What needs a failed action is not run.
func (a *applier) schedule() {
	list := a.in.Plan.Actions
	s := &scheduler{waiting: make([]int, len(list)), users: make([][]int, len(list)), bad: make([]bool, len(list)), left: len(list)}
	s.wake.L = &s.mu
	for i, act := range list {
		s.waiting[i] = len(act.Needs)
		for _, n := range act.Needs {
			s.users[n] = append(s.users[n], i)
		}
		if len(act.Needs) == 0 {
			s.ready = append(s.ready, i)
		}
	}
	heap.Init(&s.ready)
	var wg sync.WaitGroup
	for range min(a.in.Providers.Parallelism, max(len(list), 1)) {
		wg.Add(1)
		go func() { // owned by schedule, which waits for it
			defer wg.Done()
			s.work(a, list)
		}()
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
	wg.Wait()
	s.mu.Lock()
	a.result.Stopped = s.stopped && s.left > 0
	a.left = s.left
	s.mu.Unlock()
}

// scheduler is the state of one run over the list.
type scheduler struct {
	mu      sync.Mutex
	wake    sync.Cond
	ready   intHeap
	waiting []int // unfinished needs
	users   [][]int
	bad     []bool // the action failed, or needs one that did
	left    int
	busy    int
	stopped bool
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
			s.busy--
		} else if !ok && list[i].Kind != plan.StepJoin {
			a.skip(list[i])
		}
		s.done(i, ok)
	}
}

func (s *scheduler) done(i int, ok bool) {
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
	if s.busy == 0 && len(s.ready) == 0 {
		s.wake.Broadcast() // it is over
		return
	}
	for range min(woken, len(s.ready)-1) { // who calls this takes one itself
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
