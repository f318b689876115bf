package bench

import "syscall"

// peak is in kilobytes on Linux.
func peak(u *syscall.Rusage) int64 { return int64(u.Maxrss) * 1024 }
