package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is how many bytes a process holds that no file has, as the system counts
// them; 0 if that is not known.
func Memory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b)) // in pages: its size, what is there, what of that is files
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
