//go:build !linux

package sys

// inLargePages is for systems that have to be asked.
func inLargePages(int64) {}
