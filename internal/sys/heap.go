package sys

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// smallestHeap is where the collector runs first, left alone.
const smallestHeap = 4 << 20

// sparing is by how many percent the heap grows between two collections where
// memory counts more than time.
const sparing = 50

// beside is by how many percent the heap grows between two collections where plugins run:
// what it takes then of the processors is taken from them.
const beside = 250

// collector is the pace of the garbage collector. The zero collector is ready;
// there is one in a process, and it may be used concurrently.
type collector struct {
	pages sync.Once // for asking for large ones
	mu    sync.Mutex
	set   int   // the percentage that holds until the collector runs; 0: none
	usual int   // the one that it had before
	least int64 // the heap at which it runs at the earliest, in bytes; 0: any
	small bool  // whether memory counts more than time
}

// begin has the garbage collector run first when the heap has twice the size at which it
// would: most commands end before, and to start it takes a good part of their time.
func (c *collector) begin() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until(200)
}

// spare has the garbage collector run from now on when the heap has grown by half,
// not when it has doubled. What the user said about the collector stands.
func (c *collector) spare() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.small = true
	c.from(sparing)
}

// share has the garbage collector run less often, since other processes work for this one.
// Where memory counts more than time, and where the user said something about the collector,
// that stands.
func (c *collector) share() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.small {
		c.from(beside)
	}
}

// from sets the percentage that holds from now on, or from when the collector has run. The
// caller holds c.mu.
func (c *collector) from(percent int) {
	if c.set != 0 {
		c.usual = percent
		return
	}
	debug.SetGCPercent(percent)
}

// expect has the garbage collector run when the heap has grown by the given
// number of bytes, and at its ordinary pace from then on. A heap that grows from
// nothing is walked again and again though hardly anything in it is garbage; who
// knows how large it will be spares that. Of several that expect something before
// it runs, who expects most is heeded. What the user said about the collector
// (GOGC, GOMEMLIMIT) stands.
func (c *collector) expect(bytes int64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.pages.Do(func() { inLargePages(4 * bytes) })
	percent := int(100 * bytes / max(liveHeap(), smallestHeap))
	c.mu.Lock()
	defer c.mu.Unlock()
	if percent <= max(100, c.set) {
		return
	}
	c.until(percent)
}

// leave has the garbage collector run at the earliest when the heap has the given number
// of bytes, each time until its ordinary pace says later: for work that makes much more
// garbage than it keeps. Where memory counts more than time, and where the user said
// something about the collector, that stands.
func (c *collector) leave(bytes int64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.pages.Do(func() { inLargePages(4 * bytes) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = max(c.least, bytes)
	c.atLeast(max(100, c.set))
}

// atLeast sets the percentage by which the collector runs at the least heap, if that is
// larger than another one. The caller holds c.mu.
func (c *collector) atLeast(other int) {
	live := liveHeap()
	if percent := int(100 * (c.least - live) / max(live, smallestHeap)); percent > other && !c.small {
		c.until(percent)
	}
}

// liveHeap is what the collector left when it ran last, in bytes.
func liveHeap() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}

// until sets the percentage that holds until the collector runs. The caller holds c.mu.
func (c *collector) until(percent int) {
	usual := debug.SetGCPercent(percent)
	if c.set == 0 {
		c.usual = usual
		first := new([16]byte) // large enough to be an object of its own
		runtime.AddCleanup(first, (*collector).ran, c)
	}
	c.set = percent
}

// ran is called when the collector has run.
func (c *collector) ran() {
	c.mu.Lock()
	defer c.mu.Unlock()
	debug.SetGCPercent(c.usual)
	c.set = 0
	c.atLeast(c.usual)
}
