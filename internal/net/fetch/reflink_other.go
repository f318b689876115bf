//go:build !linux

package fetch

import "os"

// Reflink returns false: reflinks are only supported on Linux.
func Reflink(_, _ *os.File) bool { return false }
