package parallel

import "sync"

// Work is a list of items that is worked off in parallel and may grow meanwhile.
// The zero Work is empty and ready; Add and Break may be called concurrently and
// from within the running function.
//
// Each worker takes neighbors, and works them off one after the other: what
// stands side by side often waits for one another, and is better done by one.
// Who has none left takes half of what another has before it.
type Work[T any] struct {
	mu    sync.Mutex
	over  sync.Cond
	f     func(T)
	todo  []T
	parts []*part[T] // what workers took and have not begun
	left  int        // items in todo and parts

	places    int // how many workers there may be; 0 while no Do runs
	free      int // places that nobody holds
	workers   int // goroutines, those that take a break among them
	breaks    int
	returning []chan struct{} // those whose break is over and who wait for a place
}

// A part is what one worker took.
type part[T any] struct {
	items []T
	left  bool // its worker is gone
}

// mostBreaks is how many breaks let another item begin at the same time: each
// call on a break holds a stack. Past it only those who return get a place.
const mostBreaks = 1000

// Add puts items on the list.
func (w *Work[T]) Add(items ...T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, items...)
	w.left += len(items)
	w.hire()
}

// Do calls f once for each item, at most the given number of calls at a time,
// until the list is empty and no call runs. With workers below 1 it takes as
// many as there are processors. Only one Do may run at a time.
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

// Break lets another item be worked on while a call of f waits for another call
// that has begun. back ends the break; it may have to wait for its
// turn, as no more calls run at a time than the limit given to Do.
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

// leave gives a place up: to who returns, or to a new worker if there is work.
func (w *Work[T]) leave() {
	if len(w.returning) > 0 {
		close(w.returning[0])
		w.returning = w.returning[1:]
		return
	}
	w.free++
	w.hire()
}

// hire starts a worker for each free place, if there is work for it.
func (w *Work[T]) hire() {
	for n := w.left; n > 0 && w.free > 0 && w.breaks <= mostBreaks; n-- {
		w.free--
		w.workers++
		go w.run() // Do waits for it
	}
}

// run is one worker: it takes items until there are none, or until somebody
// returns who needs its place.
func (w *Work[T]) run() {
	w.mu.Lock() // no deferred unlock: a panic in f comes without the lock, and is to be seen by itself
	mine := &part[T]{}
	w.parts = append(w.parts, mine)
	for len(w.returning) == 0 && w.take(mine) {
		item := mine.items[0]
		var none T
		mine.items[0] = none // a part may be long, and what is done can be let go
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

// drop forgets a part that nobody works on and in which nothing is left.
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

// take sees to it that a worker's part has an item, and reports whether it has.
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
