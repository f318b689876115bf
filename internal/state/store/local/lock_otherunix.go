//go:build unix && !linux

package local

import "golang.org/x/sys/unix"

var lockCommands = []int{unix.F_SETLK}

// reserve does nothing, because this system cannot allocate disk space in advance.
func reserve(uintptr, int64) error { return nil }
