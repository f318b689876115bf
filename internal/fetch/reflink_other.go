//go:build !linux

package fetch

import "os"

// Reflink makes dst share the blocks of src, which is not known here.
func Reflink(_, _ *os.File) bool { return false }
