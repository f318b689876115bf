package sys

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// The minimum and maximum number of bytes for which large pages are requested.
const (
	manyPages = 24 << 20
	mostPages = 1 << 30
)

// inLargePages asks the system to use large pages for the next bytes of the heap. With
// small pages, a short command spends a third of its time in 25,000 page faults. It
// allocates one block, requests large pages for it and frees it, so that the next
// allocations use it. The system may ignore the request.
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

// populated is the number of bytes that inMemory requests at a time. The system does not change the memory
// of the process in another way during a request.
const populated = 2 << 20

// inMemory makes the system provide the memory for the next bytes of the heap, in large pages if possible.
func inMemory(bytes int64) {
	room := make([]byte, min(bytes, mostPages))
	_ = unix.Madvise(room, unix.MADV_HUGEPAGE) // with small pages, it is a little slower
	for rest := room; len(rest) > 0; {
		n := min(len(rest), populated)
		if unix.Madvise(rest[:n], unix.MADV_POPULATE_WRITE) != nil {
			break // Linux before 5.14
		}
		rest = rest[n:]
	}
	runtime.KeepAlive(room)
	runtime.GC()
}
