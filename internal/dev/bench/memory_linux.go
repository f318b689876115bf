package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchMemory returns the most memory that a process and all processes that it started had
// together, in bytes. It looks ten times a second until ended is closed. Pages that several
// processes share count once.
func watchMemory(pid int, ended <-chan struct{}) int64 {
	var most int64
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return most
		case <-tick.C:
		}
		most = max(most, memoryOf(pid))
	}
}

// memoryOf returns the memory, in bytes, of a process and all processes that it started.
func memoryOf(pid int) (sum int64) {
	for _, p := range withChildren(pid) {
		sum += proportional(p)
	}
	return sum
}

// withChildren returns a process and everything that it started and that still runs below
// it.
func withChildren(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", out[i]))
		if err != nil {
			continue // it has ended
		}
		for _, t := range tasks {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", out[i], t.Name()))
			for _, c := range bytes.Fields(children) {
				if n, err := strconv.Atoi(string(c)); err == nil {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// proportional returns the memory of a process in bytes, with its share of the pages that it
// shares. It returns 0 if the process has ended.
func proportional(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				n, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return n * 1024
			}
		}
	}
	return 0
}

// processorTime returns the processor time that a process and all processes that it started have used, in steps
// of 10 ms. Processes that have ended do not count.
func processorTime(pid int) (sum time.Duration) {
	for _, p := range withChildren(pid) {
		sum += processorTimeOf(p)
	}
	return sum
}

func processorTimeOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte(") ")) // behind the name of the program
	f := bytes.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(f[11]))
	system, _ := strconv.Atoi(string(f[12]))
	return time.Duration(user+system) * 10 * time.Millisecond
}
