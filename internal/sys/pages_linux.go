package sys

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// From which size memory gets large pages, and for how much of it at most.
const (
	manyPages = 24 << 20
	mostPages = 1 << 30
)

// inLargePages asks the system to back the heap with large pages where it is about to
// grow by so many bytes: with small ones, a third of the time of a short command goes
// into 25,000 faults, one for each that is touched first. The room is taken as a block
// that nobody writes to and given back at once, so that what is allocated next stands in
// it. Whether there are large pages, the system decides; without, nothing changes.
func inLargePages(bytes int64) {
	if bytes < manyPages {
		return
	}
	room := make([]byte, min(bytes, mostPages))
	err := unix.Madvise(room, unix.MADV_HUGEPAGE)
	runtime.KeepAlive(room)
	if err == nil {
		runtime.GC()
	}
}
