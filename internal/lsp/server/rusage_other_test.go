//go:build !unix

package server

import "os"

// rusage reports false: the memory of a process that ended is not known.
func rusage(*os.ProcessState) (int64, bool) { return 0, false }
