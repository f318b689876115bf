package bench

import "syscall"

// peak is not told there.
func peak(*syscall.Rusage) int64 { return 0 }
