//go:build !linux

package bench

import "time"

// watchMemory waits until ended is closed. It returns 0, because only Linux reports the
// memory of other processes in files.
func watchMemory(_ int, ended <-chan struct{}) int64 {
	<-ended
	return 0
}

// memoryOf returns 0, as watchMemory does.
func memoryOf(int) int64 { return 0 }

// processorTime returns 0, as watchMemory does.
func processorTime(int) time.Duration { return 0 }
