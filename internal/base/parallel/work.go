package parallel

import "sync"

// Work is a list of items that is processed in parallel and may grow meanwhile. The zero
// Work is empty and ready to use. Add and Break may be called concurrently, also from the
// function that processes an item.
//
// Each worker takes a range of neighboring items: neighbors often wait for each other, so
// one worker should process them. A worker without items takes half of another worker's.
type Work[T any] struct {
	mu    sync.Mutex
	over  sync.Cond
	f     func(T)
	todo  []T
	parts []*part[T] // items that workers took and have not started
	left  int        // items in todo and parts

	places    int // the maximum number of workers; 0 while Do does not run
	free      int // the number of unused slots
	workers   int // the number of goroutines, including those on a break
	breaks    int
	returning []chan struct{} // workers whose break has ended and that wait for a slot
}

// part contains the items that one worker took.
type part[T any] struct {
	items []T
	left  bool // its worker has ended
}

// mostBreaks is the number of calls on a break up to which new items start. Each such
// call keeps a stack. Above it, only calls that return from a break get a slot.
const mostBreaks = 1000

// Add adds items to the list.
func (w *Work[T]) Add(items ...T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, items...)
	w.left += len(items)
	w.hire()
}

// Do calls f once per item, at most workers calls at a time, until the list is empty and
// no call runs. If workers is below 1, the limit is the number of processors. Only one Do
// may run at a time.
func (w *Work[T]) Do(workers int, f func(item T)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.places > 0 {
		panic("par: Work.Do is already running")
	}
	w.places = atLeastOne(workers)
	w.free, w.f, w.over.L = w.places, f, &w.mu
	w.hire()
	for w.workers > 0 {
		w.over.Wait()
	}
	w.places, w.free, w.f, w.parts = 0, 0, nil, nil
}

// Break frees the slot of a call of f that waits for another call that has started. back
// ends the break. back may wait, because no more calls run at a time than Do allows.
func (w *Work[T]) Break() (back func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks++
	w.leave()
	return w.back
}

func (w *Work[T]) back() {
	w.mu.Lock()
	w.breaks--
	if w.free > 0 {
		w.free--
		w.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	w.returning = append(w.returning, turn)
	w.mu.Unlock()
	<-turn
}

// leave frees a slot: for a call that returns from a break, or for a new worker.
func (w *Work[T]) leave() {
	if len(w.returning) > 0 {
		close(w.returning[0])
		w.returning = w.returning[1:]
		return
	}
	w.free++
	w.hire()
}

// hire starts a worker for each free slot, while there are items.
func (w *Work[T]) hire() {
	for n := w.left; n > 0 && w.free > 0 && w.breaks <= mostBreaks; n-- {
		w.free--
		w.workers++
		go w.run() // Do waits for it
	}
}

// run is one worker. It processes items until none is left, or until a call that returns
// from a break needs its slot.
func (w *Work[T]) run() {
	w.mu.Lock() // no deferred unlock: a panic in f happens without the lock and must not be hidden by a second one
	mine := &part[T]{}
	w.parts = append(w.parts, mine)
	for len(w.returning) == 0 && w.take(mine) {
		item := mine.items[0]
		var none T
		mine.items[0] = none // frees the memory of items that are done
		mine.items = mine.items[1:]
		w.left--
		w.mu.Unlock()
		w.f(item)
		w.mu.Lock()
	}
	mine.left = true
	w.drop(mine)
	w.leave()
	if w.workers--; w.workers == 0 {
		w.over.Broadcast()
	}
	w.mu.Unlock()
}

// drop deletes an empty part whose worker has ended.
func (w *Work[T]) drop(p *part[T]) {
	if !p.left || len(p.items) > 0 {
		return
	}
	last := len(w.parts) - 1
	for i := range w.parts {
		if w.parts[i] == p {
			w.parts[i], w.parts[last] = w.parts[last], nil
			w.parts = w.parts[:last]
			return
		}
	}
}

// take refills an empty part. It reports whether the part has an item.
func (w *Work[T]) take(mine *part[T]) bool {
	if len(mine.items) > 0 {
		return true
	}
	if n := len(w.todo); n > 0 {
		n = max(1, n/(2*w.places))
		mine.items, w.todo = w.todo[:n:n], w.todo[n:]
		return true
	}
	if w.left == 0 {
		return false
	}
	rich := mine
	for _, p := range w.parts {
		if len(p.items) > len(rich.items) {
			rich = p
		}
	}
	half := len(rich.items) / 2
	mine.items, rich.items = rich.items[half:], rich.items[:half:half]
	w.drop(rich)
	return true
}
