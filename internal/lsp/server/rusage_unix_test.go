//go:build unix

package server

import (
	"os"
	"runtime"
	"syscall"
)

// rusage returns the most memory that a process had, in bytes.
func rusage(p *os.ProcessState) (int64, bool) {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, false
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss), true
	}
	return int64(u.Maxrss) * 1024, true
}
