package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns the anonymous resident memory of a process in bytes, or 0 if it is unknown.
func Memory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b)) // in pages: total size, resident, shared with files
	if len(fields) < 3 {
		return 0
	}
	there, err1 := strconv.ParseInt(fields[1], 10, 64)
	files, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (there - files) * int64(os.Getpagesize())
}
