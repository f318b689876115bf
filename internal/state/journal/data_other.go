//go:build !linux

package journal

import "os"

// syncData writes the contents of a file to disk.
func syncData(f *os.File) error { return f.Sync() }
