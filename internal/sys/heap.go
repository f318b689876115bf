package sys

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallestHeap is where the collector runs first, left alone.
const smallestHeap = 4 << 20

// expectHeap has the garbage collector run when the heap has grown by the given
// number of bytes, and at its ordinary pace from then on. A heap that grows from
// nothing is walked again and again though hardly anything in it is garbage; who
// knows how large it will be spares that. What the user said about the collector
// (GOGC, GOMEMLIMIT) stands.
func expectHeap(bytes int64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := 100 * bytes / max(int64(live[0].Value.Uint64()), smallestHeap)
	if percent <= 100 {
		return
	}
	pace := debug.SetGCPercent(int(percent))
	first := new([16]byte) // large enough to be an object of its own
	runtime.AddCleanup(first, func(pace int) { debug.SetGCPercent(pace) }, pace)
}
