package sys

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// smallestHeap is the heap size, in bytes, of Go's first garbage collection by default.
const smallestHeap = 4 << 20

// sparing is the growth of the heap between two collections, in percent, if memory is
// more important than time.
const sparing = 50

// largeHeap is the size, in bytes, above which a heap grows by sparingLarge percent between two
// collections if memory is more important than time. With sparing, an estate of 20,000 units
// spends 44 % of its processor time on collections of a heap that no processor cache can hold.
const (
	largeHeap    = 64 << 20
	sparingLarge = 100
)

// beside is the growth of the heap between two collections, in percent, while plugins run. Plugins
// need the processor time.
const beside = 250

// collector controls the garbage collector. The zero collector is ready to use. There is
// one per process, and it may be used concurrently.
type collector struct {
	pages sync.Once // requests large pages once
	mu    sync.Mutex
	set   int   // GOGC percentage until the next collection; 0 means none
	usual int   // percentage after that collection
	least int64 // the minimum heap size for a collection, in bytes; 0 means no minimum
	small bool  // memory is more important than time
	large bool  // small is set, and the heap was larger than largeHeap after two collections
	above bool  // the heap was larger than largeHeap after the last collection
	again bool  // the minimum heap size is checked after the next collection
}

// begin doubles the heap size of the first collection. Most commands end before it, and
// the first collection would cost a large part of their time.
func (c *collector) begin() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until(200)
}

// spare lowers the growth between collections to half, as long as the heap is smaller than
// largeHeap. It respects the user's GOGC and GOMEMLIMIT.
func (c *collector) spare() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large {
		return
	}
	c.from(sparing)
	if !c.small {
		c.small = true
		c.watch()
	}
}

// watch calls grown after the next collection. The caller holds c.mu.
func (c *collector) watch() {
	first := new([16]byte) // large enough for an allocation of its own
	runtime.AddCleanup(first, (*collector).grown, c)
}

// grown ends sparing if the heap is large after two collections in a row. After one, it may contain
// the block of inLargePages, which is freed at once.
func (c *collector) grown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.above
	c.above = liveHeap() > largeHeap
	if c.large = c.above && before; c.large {
		c.from(sparingLarge)
	} else {
		c.watch()
	}
}

// share raises the growth between collections, because plugins need the processors. It has
// no effect after spare, or if the user set GOGC or GOMEMLIMIT.
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

// from sets the percentage from now on, or from the next collection on if a temporary
// percentage is set. The caller holds c.mu.
func (c *collector) from(percent int) {
	if c.set != 0 {
		c.usual = percent
		return
	}
	debug.SetGCPercent(percent)
}

// expect delays the next collection until the heap has grown by the given number of bytes.
// A heap that grows from nothing is scanned repeatedly although it contains almost no
// garbage; a caller that knows its final size avoids that. If several callers expect
// growth before the collection, the largest counts. expect respects the user's GOGC and
// GOMEMLIMIT.
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

// leave sets the minimum heap size for every collection, in bytes, for work that creates
// much more garbage than it keeps. It has no effect after spare, or if the user set GOGC
// or GOMEMLIMIT.
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

// hold is leave for a server. It also makes the system provide that much memory at once, and returns when
// the memory is there: otherwise a request waits while the system clears pages, which takes milliseconds
// in a virtual machine.
func (c *collector) hold(bytes int64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	inMemory(bytes + bytes/8) // the heap grows a little further until a collection ends
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = max(c.least, bytes)
	c.atLeast(max(100, c.set))
}

// atLeast sets the percentage that corresponds to the minimum heap size, if it is larger
// than other, now and after each collection. The caller holds c.mu.
func (c *collector) atLeast(other int) {
	if c.least == 0 || c.small {
		return
	}
	live := liveHeap()
	if percent := int(100 * (c.least - live) / max(live, smallestHeap)); percent > other {
		c.until(percent)
		return
	}
	if !c.again { // the heap may become smaller
		c.again = true
		next := new([16]byte) // large enough for an allocation of its own
		runtime.AddCleanup(next, (*collector).check, c)
	}
}

// check sets the percentage of the minimum heap size after a collection in which the heap was too large.
func (c *collector) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = false
	if c.set == 0 {
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		c.atLeast(max(100, int(now[0].Value.Uint64())))
	}
}

// liveHeap returns the heap size after the last collection, in bytes.
func liveHeap() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}

// until sets the percentage until the next collection. The caller holds c.mu.
func (c *collector) until(percent int) {
	usual := debug.SetGCPercent(percent)
	if c.set == 0 {
		c.usual = usual
		first := new([16]byte) // large enough for an allocation of its own
		runtime.AddCleanup(first, (*collector).ran, c)
	}
	c.set = percent
}

// ran is called after a collection.
func (c *collector) ran() {
	c.mu.Lock()
	defer c.mu.Unlock()
	debug.SetGCPercent(c.usual)
	c.set = 0
	c.atLeast(c.usual)
}
