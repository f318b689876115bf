package bench

import "syscall"

// peak is not known there.
func peak(*syscall.Rusage) int64 { return 0 }
