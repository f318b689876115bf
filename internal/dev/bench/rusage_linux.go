package bench

import "syscall"

// peak converts Linux's kilobytes to bytes.
func peak(u *syscall.Rusage) int64 { return int64(u.Maxrss) * 1024 }
