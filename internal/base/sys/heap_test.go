package sys

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// pace is the percentage that holds now; asking for it changes nothing.
func pace() int {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	return int(now[0].Value.Uint64())
}

// awaitPace has the collector run until the percentage holds: what was expected ends
// with a run, some time after it.
func awaitPace(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); pace() != want; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("the pace is %d, want %d", pace(), want)
		}
	}
}

// However many expect something before the collector runs, its pace is the usual
// one afterwards, and what any of them expects later is heeded again.
func TestExpectHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const usual = 150
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var c collector
	for range 2 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { c.expect(int64(i) << 30) })
		}
		wg.Wait()
		awaitPace(t, usual)
	}
	c.expect(1 << 40)
	if pace() <= usual {
		t.Error("what is expected after the collector ran changes nothing")
	}
	awaitPace(t, usual) // nothing of it is left to come
}

// A heap that is to be left alone is so after each run of the collector, until what stays
// of it is so much that the usual pace says later, or memory counts more.
func TestLeaveHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const usual, least = 150, 1 << 30
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var c collector
	c.leave(least)
	for range 3 {
		before := runs()
		runtime.GC()
		for end := time.Now().Add(time.Minute); pace() <= usual || runs() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the pace is %d after a run of the collector", pace())
			}
		}
	}
	c.leave(least / 2)
	if size := max(liveHeap(), smallestHeap) * int64(100+pace()) / 100; size < least/2 {
		t.Errorf("the collector runs at %d bytes", size)
	}
	c.spare()
	awaitPace(t, sparing)
	small := collector{least: 1}
	small.expect(1 << 40)
	awaitPace(t, sparing) // as it was before: what stays is more than the least
}

// runs is how often the collector ran.
func runs() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
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
	awaitPace(t, sparing)
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

// Beside plugins the collector runs less often, but where the heap is to be small.
func TestShareProcessors(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const usual = 150
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var c collector
	c.expect(1 << 40)
	c.share()
	awaitPace(t, beside)
	c.spare()
	c.share()
	if got := debug.SetGCPercent(usual); got != sparing {
		t.Errorf("the pace is %d, want %d", got, sparing)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	if new(collector).share(); debug.SetGCPercent(usual) != usual {
		t.Error("what the user said does not stand")
	}
}
