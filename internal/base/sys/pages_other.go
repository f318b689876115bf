//go:build !linux

package sys

// inLargePages does nothing: only Linux has this request.
func inLargePages(int64) {}

// inMemory does nothing: only Linux has this request.
func inMemory(int64) {}
