//go:build !linux

package sys

// lowerPriority does nothing: it is only implemented for Linux.
func lowerPriority() {}
