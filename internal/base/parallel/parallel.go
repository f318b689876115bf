// Package parallel contains a parallel loop over indexes (Each), a worklist that may grow
// meanwhile (Work), a bounded queue of jobs (Queue), a cache that computes each key once
// and keeps no failures (Cache), and a fair semaphore (Turns).
//
// The one rule: a caller that starts work waits for it. Each and Work.Do return when all
// work is done, and the creator of a Queue calls Wait. Results are stored by index or key,
// so that they do not depend on the order of completion.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f(0), …, f(n-1) from at most workers goroutines, and returns when all calls
// have returned. Results can be stored by index without a lock. If workers is below 1, it
// uses the number of processors. The calls begin in the order of the indexes. With one
// worker, or for n < 2, all of them run on the caller's goroutine.
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

// Map is like Each and returns the results in the order of the indexes.
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
