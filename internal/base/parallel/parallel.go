// Package parallel runs things in parallel: a loop over indexes (Each), a worklist
// that grows while it is worked off (Work), a bounded queue of jobs (Queue), and
// a cache that computes each key once and keeps no failures (Cache), and a limit with fair
// turns (Turns).
//
// The one rule: whoever starts work here waits for it here. Each and Work.Do
// return when everything is done, and the maker of a Queue calls Wait. Results
// are kept by index or key, so that no order of arrival shows in them.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f(0), …, f(n-1) from at most the given number of goroutines and
// returns when all calls have returned. Results go into slots by index, which
// needs no lock. With workers below 1 it takes as many as there are processors.
// The calls begin in order of index; with one worker, or for n < 2, they run one
// after the other on the caller's own goroutine.
func Each(n, workers int, f func(i int)) {
	workers = min(atLeastOne(workers), n)
	if workers < 2 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			f(i)
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// Map is Each with a result for each index.
func Map[T any](n, workers int, f func(i int) T) []T {
	out := make([]T, n)
	Each(n, workers, func(i int) { out[i] = f(i) })
	return out
}

func atLeastOne(workers int) int {
	if workers < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return workers
}
