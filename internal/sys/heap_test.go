package sys

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// However many expect something before the collector runs, its pace is the usual
// one afterwards, and what any of them expects later is heeded again.
func TestExpectHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const usual = 150
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	pace := func() int {
		now := debug.SetGCPercent(usual)
		debug.SetGCPercent(now)
		return now
	}
	var c collector
	for range 2 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { c.expect(int64(i) << 30) })
		}
		wg.Wait()
		for end := time.Now().Add(10 * time.Second); pace() != usual && time.Now().Before(end); {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if got := pace(); got != usual {
			t.Fatalf("the pace is %d, want %d", got, usual)
		}
	}
	c.expect(1 << 40)
	if pace() <= usual {
		t.Error("what is expected after the collector ran changes nothing")
	}
}

func TestExpectHeapLeavesUser(t *testing.T) {
	t.Setenv("GOGC", "120")
	before := debug.SetGCPercent(120)
	defer debug.SetGCPercent(before)
	new(collector).expect(1 << 40)
	if got := debug.SetGCPercent(120); got != 120 {
		t.Errorf("the pace is %d", got)
	}
}

// The heap is spared from then on, be it said before the heap was expected to grow,
// between that and the collector's run, or after.
func TestSpareHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const usual = 150
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var c collector
	c.expect(1 << 40)
	c.spare()
	for end := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		now := debug.SetGCPercent(sparing)
		if debug.SetGCPercent(now); now == sparing {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the pace is %d, want %d", now, sparing)
		}
		time.Sleep(time.Millisecond)
	}
	debug.SetGCPercent(usual)
	if c.spare(); debug.SetGCPercent(usual) != sparing {
		t.Error("sparing later changes nothing")
	}
	t.Setenv("GOGC", "200")
	debug.SetGCPercent(200)
	if new(collector).spare(); debug.SetGCPercent(usual) != 200 {
		t.Error("what the user said does not stand")
	}
}
