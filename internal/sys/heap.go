package sys

import (
	"os"
	"runtime"
	"runtime/debug"
)

// smallestHeap is where the collector first runs at its ordinary pace.
const smallestHeap = 4 << 20

// expectHeap has the garbage collector run for the first time when the heap has
// grown to the given number of bytes, and at its ordinary pace from then on. A
// heap that grows from nothing is walked again and again though hardly anything
// in it is garbage; who knows how large it will be spares that. What the user
// said about the collector (GOGC, GOMEMLIMIT) stands.
func expectHeap(bytes int64) {
	if bytes <= smallestHeap || os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	pace := debug.SetGCPercent(int(bytes / (smallestHeap / 100)))
	first := new([16]byte) // large enough to be an object of its own
	runtime.AddCleanup(first, func(pace int) { debug.SetGCPercent(pace) }, pace)
}
