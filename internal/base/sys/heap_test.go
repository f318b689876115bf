package sys

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// pace returns the current percentage without changing it.
func pace() int {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(now)
	return int(now[0].Value.Uint64())
}

// awaitPace runs garbage collections until the percentage is want. The effect of an
// expectation ends some time after a collection.
func awaitPace(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); pace() != want; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("the pace is %d, want %d", pace(), want)
		}
	}
}

// After a collection the percentage is the usual one, whatever the number of expectations
// before it. Later expectations have an effect again.
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
	awaitPace(t, usual) // no change is pending
}

// The minimum heap size applies again after each collection, until the live heap is so
// large that the usual percentage starts collections later, or memory is more important
// than time.
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
	// The collector may have just run, so that the minimum does not apply for a moment.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		size := max(liveHeap(), smallestHeap) * int64(100+pace()) / 100
		if size >= least/2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the collector runs at %d bytes", size)
		}
	}
	c.spare()
	awaitPace(t, sparing)
	small := collector{least: 1}
	small.expect(1 << 40)
	awaitPace(t, sparing) // as before: the live heap is larger than the minimum
}

// runs returns the number of garbage collections.
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

// LimitHeap has an effect whether it is called before an expectation, between that and the
// collection, or afterwards.
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

// With plugins there are fewer collections, unless the heap must stay small.
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

// A large heap grows by more between collections, also if memory is more important than time.
func TestSpareLargeHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(150))
	var c collector
	c.spare()
	awaitPace(t, sparing)
	before := runs()
	for runtime.GC(); runs() < before+3; runtime.GC() {
	}
	awaitPace(t, sparing) // a small heap, however often it is collected
	live := make([]byte, largeHeap+1<<20)
	awaitPace(t, sparingLarge)
	c.spare()
	awaitPace(t, sparingLarge)
	runtime.KeepAlive(live)
}

// The minimum heap size applies again when the heap is small after it was large.
func TestHoldHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const least = 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var c collector
	c.hold(least)
	kept := make([]byte, 2*least)
	awaitPace(t, 100)
	runtime.KeepAlive(kept)
	kept = nil
	for end := time.Now().Add(time.Minute); pace() <= 200; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("the pace is %d", pace())
		}
	}
}
