package parallel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gauge measures the maximum number of concurrent callers.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) in() {
	n := g.now.Add(1)
	for {
		m := g.most.Load()
		if n <= m || g.most.CompareAndSwap(m, n) {
			return
		}
	}
}

func (g *gauge) out() { g.now.Add(-1) }

func TestEach(t *testing.T) {
	for _, workers := range []int{-1, 0, 1, 2, 7, 1000} {
		for _, n := range []int{0, 1, 2, 100} {
			t.Run(fmt.Sprintf("%d by %d", n, workers), func(t *testing.T) {
				var g gauge
				got := Map(n, workers, func(i int) int {
					g.in()
					defer g.out()
					return i * i
				})
				if len(got) != n {
					t.Fatalf("%d results, want %d", len(got), n)
				}
				for i, v := range got {
					if v != i*i {
						t.Errorf("result %d is %d", i, v)
					}
				}
				if workers > 0 && g.most.Load() > int64(workers) {
					t.Errorf("%d calls at a time, at most %d allowed", g.most.Load(), workers)
				}
			})
		}
	}
}

func TestEachReallyRunsInParallel(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(3)
	Each(3, 3, func(int) { // returns only if all three calls run at the same time
		meet.Done()
		meet.Wait()
	})
}

func TestEachAloneKeepsOrder(t *testing.T) {
	var got []int
	Each(5, 1, func(i int) { got = append(got, i) })
	if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("order %v", got)
	}
}

func TestWorkGrows(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 8} {
		var w Work[int]
		var mu sync.Mutex
		done := map[int]int{}
		var g gauge
		w.Add(1)
		w.Do(workers, func(i int) {
			g.in()
			defer g.out()
			mu.Lock()
			done[i]++
			mu.Unlock()
			switch { // every number up to 999
			case i < 250:
				w.Add(2*i, 2*i+1)
			case i < 500:
				w.Add(2 * i)
				w.Add(2*i + 1)
			}
		})
		if len(done) != 999 {
			t.Errorf("workers %d: %d items done, want 999", workers, len(done))
		}
		for i, n := range done {
			if n != 1 {
				t.Errorf("workers %d: item %d done %d times", workers, i, n)
			}
		}
		if workers > 0 && g.most.Load() > int64(workers) {
			t.Errorf("workers %d: %d calls at a time", workers, g.most.Load())
		}
	}
}

func TestWorkTwice(t *testing.T) {
	var w Work[string]
	var got []string
	see := func(s string) { got = append(got, s) }
	w.Do(1, see)
	w.Add("a")
	w.Do(1, see)
	w.Add("b", "c")
	w.Do(1, see)
	if !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
}

// Calls on a break do not block others, and the number of running calls is limited. The
// first call in a range of items is the one that the others of the range wait for.
func TestWorkBreaks(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		for _, stretch := range []int{10, 4 * mostBreaks} {
			const n = 6 * mostBreaks
			var w Work[int]
			var g gauge
			var done atomic.Int64
			gates := make([]chan struct{}, n/stretch+1)
			begun := make([]atomic.Bool, len(gates))
			for i := range gates {
				gates[i] = make(chan struct{})
			}
			for i := range n {
				w.Add(i)
			}
			w.Do(workers, func(i int) {
				g.in()
				g.out()
				first := !begun[i/stretch].Swap(true)
				back := w.Break()
				if first {
					runtime.Gosched() // other goroutines take the slot
				} else {
					<-gates[i/stretch]
				}
				back()
				g.in()
				if first {
					close(gates[i/stretch])
				}
				g.out()
				done.Add(1)
			})
			if done.Load() != n {
				t.Errorf("workers %d: %d items done, want %d", workers, done.Load(), n)
			}
			if g.most.Load() > int64(workers) {
				t.Errorf("workers %d: %d calls at a time", workers, g.most.Load())
			}
		}
	}
}

func TestWorkRefusesSecondDo(t *testing.T) {
	var w Work[int]
	w.Add(1)
	var refused bool
	w.Do(1, func(int) {
		defer func() { refused = recover() != nil }()
		w.Do(1, func(int) {})
	})
	if !refused {
		t.Error("a second Do was let in")
	}
}

func TestCacheOnce(t *testing.T) {
	var c Cache[int, string]
	var calls [10]atomic.Int64
	Each(1000, 8, func(i int) {
		k := i % len(calls)
		v, err := c.Do(t.Context(), k, func() (string, bool) {
			calls[k].Add(1)
			return fmt.Sprint("v", k), true
		})
		if v != fmt.Sprint("v", k) || err != nil {
			t.Errorf("key %d has %q, %v", k, v, err)
		}
	})
	for k := range calls {
		if n := calls[k].Load(); n != 1 {
			t.Errorf("key %d computed %d times", k, n)
		}
		if v, ok := c.Get(k); !ok || v != fmt.Sprint("v", k) {
			t.Errorf("Get(%d) = %q, %v", k, v, ok)
		}
	}
	if _, ok := c.Get(99); ok {
		t.Error("Get found a key that nobody computed")
	}
}

func TestCacheGetDoesNotWait(t *testing.T) {
	var c Cache[string, int]
	c.Pure("a", func() int {
		if _, ok := c.Get("a"); ok {
			t.Error("Get returned a value that is still being computed")
		}
		return c.Pure("b", func() int { return 1 }) + 1 // other keys may be requested
	})
	if v, _ := c.Get("a"); v != 2 {
		t.Errorf("got %d", v)
	}
}

func TestCachePanic(t *testing.T) {
	var c Cache[string, int]
	inside, seen := make(chan struct{}), make(chan any)
	go func() {
		defer func() { seen <- recover() }()
		c.Pure("k", func() int {
			close(inside)
			time.Sleep(time.Millisecond)
			panic("first")
		})
	}()
	<-inside
	if v := c.Pure("k", func() int { return 7 }); v != 7 { // waits, and then computes the value again
		t.Errorf("got %d", v)
	}
	if p := <-seen; p != "first" {
		t.Errorf("the first caller saw %v", p)
	}
}

// A value that may not be kept is returned to waiting callers only.
func TestCacheFailureIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache[string, string]
		var calls atomic.Int64
		fail := func() (string, bool) {
			calls.Add(1)
			time.Sleep(time.Second)
			return "failed", false
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if v, err := c.Do(t.Context(), "k", fail); v != "failed" || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls for callers that waited together, want 1", n)
		}
		if _, ok := c.Get("k"); ok {
			t.Error("the failure was kept")
		}
		if v, _ := c.Do(t.Context(), "k", func() (string, bool) { return "fine", true }); v != "fine" {
			t.Errorf("a later caller got %q", v)
		}
	})
}

// A canceled caller leaves no value, and a waiting caller computes it again.
func TestCacheCanceledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache[string, string]
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			v, err := c.Do(ctx, "k", func() (string, bool) {
				<-ctx.Done()
				return "canceled", true // like a function that ignores the cancellation
			})
			if v != "canceled" || err != nil {
				t.Errorf("the canceled caller got %q, %v", v, err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := c.Do(t.Context(), "k", func() (string, bool) { return "anew", true }); v != "anew" || err != nil {
				t.Errorf("the caller that waited got %q, %v", v, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		if v, ok := c.Get("k"); v != "anew" || !ok {
			t.Errorf("kept %q, %v", v, ok)
		}
	})
}

// A caller whose own context ends does not wait for another caller.
func TestCacheInterruptsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache[string, int]
		release := make(chan struct{})
		go c.Pure("k", func() int { <-release; return 1 })
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("stop")
		cancel(cause)
		if _, err := c.Do(ctx, "k", func() (int, bool) { return 2, true }); err != cause {
			t.Errorf("got %v", err)
		}
		close(release)
		synctest.Wait()
		if v, ok := c.Get("k"); v != 1 || !ok {
			t.Errorf("kept %d, %v", v, ok)
		}
	})
}

func TestCacheStale(t *testing.T) {
	now := 0
	c := Cache[string, int]{Stale: func(v int) bool { return now > v }}
	ask := func() int { return c.Pure("k", func() int { return now + 10 }) }
	for _, at := range []struct{ now, want int }{{0, 10}, {10, 10}, {11, 21}, {20, 21}, {30, 40}} {
		if now = at.now; ask() != at.want {
			t.Errorf("at %d: %d, want %d", now, ask(), at.want)
		}
	}
	if now = 41; true {
		if _, ok := c.Get("k"); ok {
			t.Error("Get returned a stale value")
		}
	}
}

func TestQueue(t *testing.T) {
	q := NewQueue(3)
	q.Wait() // returns immediately
	var g gauge
	var done atomic.Int64
	for i := range 100 {
		q.Add(func() {
			g.in()
			defer g.out()
			done.Add(1)
			if i%10 == 0 {
				q.Add(func() { done.Add(1) })
			}
		})
	}
	q.Wait()
	if n := done.Load(); n != 110 {
		t.Errorf("%d jobs done, want 110", n)
	}
	if m := g.most.Load(); m > 3 {
		t.Errorf("%d jobs at a time", m)
	}
	q.Add(func() { done.Add(1) })
	q.Wait()
	if n := done.Load(); n != 111 {
		t.Errorf("after reuse %d jobs done, want 111", n)
	}
}

// Jobs on a break free their slots, and get a slot again when the break ends.
func TestQueueBreak(t *testing.T) {
	q := NewQueue(2)
	var mu sync.Mutex
	var breaks []*Break
	var g gauge
	done := 0
	for range 10 {
		q.Add(func() {
			g.in()
			g.out()
			q.Break(func(b *Break) {
				mu.Lock()
				defer mu.Unlock()
				breaks = append(breaks, b)
			})
			g.in()
			defer g.out()
			mu.Lock()
			defer mu.Unlock()
			done++
		})
	}
	q.Wait()
	if len(breaks) != 10 || done != 0 {
		t.Fatalf("%d breaks, %d done", len(breaks), done)
	}
	for _, b := range breaks {
		b.End()
	}
	q.Wait()
	if done != 10 || g.most.Load() > 2 {
		t.Errorf("%d done, %d at a time", done, g.most.Load())
	}
}

func TestQueueStartsInOrder(t *testing.T) {
	q := NewQueue(1)
	var got []int
	for i := range 50 {
		q.Add(func() { got = append(got, i) })
	}
	q.Wait()
	if !slices.IsSorted(got) || len(got) != 50 {
		t.Errorf("order %v", got)
	}
}

func BenchmarkCacheHit(b *testing.B) {
	var c Cache[string, int]
	c.Pure("k", func() int { return 1 })
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Pure("k", func() int { return 1 })
		}
	})
}

func BenchmarkEach(b *testing.B) {
	out := make([]int, 1000)
	for b.Loop() {
		Each(len(out), 0, func(i int) { out[i] = i })
	}
}
