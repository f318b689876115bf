//go:build unix && !linux

package bench

import "syscall"

func peak(u *syscall.Rusage) int64 { return int64(u.Maxrss) }
