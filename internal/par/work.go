package par

import "sync"

// Work is a list of items that is worked off in parallel and may grow meanwhile.
// Each item is worked on once however often it is added. The zero Work is empty
// and ready; Add may be called concurrently and from within the running function.
type Work[T comparable] struct {
	mu      sync.Mutex
	wake    sync.Cond
	seen    map[T]bool
	todo    []T
	busy    int
	running bool
}

// Add puts an item on the list, unless it was added before.
func (w *Work[T]) Add(item T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[item] {
		return
	}
	if w.seen == nil {
		w.seen = make(map[T]bool)
	}
	w.seen[item] = true
	w.todo = append(w.todo, item)
	if w.running {
		w.wake.Signal()
	}
}

// Do calls f once for each item, from at most the given number of goroutines,
// until the list is empty and no call runs. With workers below 1 it takes as
// many as there are processors. Only one Do may run at a time.
func (w *Work[T]) Do(workers int, f func(item T)) {
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		panic("par: Work.Do is already running")
	}
	w.running = true
	w.wake.L = &w.mu
	w.mu.Unlock()
	Each(atLeastOne(workers), workers, func(int) { w.run(f) })
	w.mu.Lock()
	w.running = false
	w.mu.Unlock()
}

// run is one worker: it takes items until nothing is left that could add more.
func (w *Work[T]) run(f func(item T)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.todo) == 0 {
			if w.busy == 0 {
				w.wake.Broadcast()
				return
			}
			w.wake.Wait()
		}
		item := w.todo[0]
		w.todo = w.todo[1:]
		w.busy++
		w.mu.Unlock()
		f(item)
		w.mu.Lock()
		w.busy--
	}
}
