package par

import "sync"

// Work is a list of items that is worked off in parallel and may grow meanwhile.
// The zero Work is empty and ready; Add may be called concurrently and from
// within the running function.
//
// Each worker takes neighbors, and works them off one after the other: what
// stands side by side often waits for one another, and is better done by one.
// Who has none left takes half of what another has before it.
type Work[T any] struct {
	mu      sync.Mutex
	wake    sync.Cond
	todo    []T
	parts   [][]T // what each worker took and has not begun
	busy    int
	running bool
}

// Add puts items on the list.
func (w *Work[T]) Add(items ...T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, items...)
	if !w.running {
		return
	}
	if len(items) == 1 {
		w.wake.Signal()
	} else {
		w.wake.Broadcast()
	}
}

// Do calls f once for each item, from at most the given number of goroutines,
// until the list is empty and no call runs. With workers below 1 it takes as
// many as there are processors. Only one Do may run at a time.
func (w *Work[T]) Do(workers int, f func(item T)) {
	workers = atLeastOne(workers)
	w.mu.Lock()
	if w.running {
		w.mu.Unlock()
		panic("par: Work.Do is already running")
	}
	w.running = true
	w.wake.L = &w.mu
	w.parts = make([][]T, workers)
	w.mu.Unlock()
	Each(workers, workers, func(i int) { w.run(i, f) })
	w.mu.Lock()
	w.running, w.parts = false, nil
	w.mu.Unlock()
}

// run is one worker: it takes items until nothing is left that could add more.
func (w *Work[T]) run(me int, f func(item T)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for !w.take(me) {
			if w.busy == 0 {
				w.wake.Broadcast()
				return
			}
			w.wake.Wait()
		}
		item := w.parts[me][0]
		var none T
		w.parts[me][0] = none // a part may be long, and what is done can be let go
		w.parts[me] = w.parts[me][1:]
		w.busy++
		w.mu.Unlock()
		f(item)
		w.mu.Lock()
		w.busy--
	}
}

// take sees to it that a worker's part has an item, and reports whether it has.
func (w *Work[T]) take(me int) bool {
	if len(w.parts[me]) > 0 {
		return true
	}
	if n := len(w.todo); n > 0 {
		n = max(1, n/(2*len(w.parts)))
		w.parts[me] = w.todo[:n:n]
		w.todo = w.todo[n:]
		return true
	}
	rich := me
	for i, p := range w.parts {
		if len(p) > len(w.parts[rich]) {
			rich = i
		}
	}
	if p := w.parts[rich]; len(p) > 0 {
		half := len(p) / 2
		w.parts[me], w.parts[rich] = p[half:], p[:half:half]
		return true
	}
	return false
}
