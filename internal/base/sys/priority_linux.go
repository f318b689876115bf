package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lowered is the nice value of a process with a lower priority. Such a process gets two fifths of the time of a
// processor if a process with the usual priority wants all of it too.
const lowered = 2

// lowerPriority lowers the priority of this process, unless it is already low. On Linux, each thread has a
// priority of its own, and new threads inherit it.
func lowerPriority() {
	threads, _ := os.ReadDir("/proc/self/task") // without /proc, the priority stays
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if now, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && 20-now < lowered { // the system call returns 20 minus the value
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, lowered)
		}
	}
}
