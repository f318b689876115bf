package rpc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTimes is the processor time that this process has taken so far, and that of
// its children. Where there is no /proc it is 0.
func cpuTimes() (own, children time.Duration) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		pids, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		for _, pid := range strings.Fields(string(pids)) {
			children += cpuTime(pid)
		}
	}
	return cpuTime("self"), children
}

// cpuTime is the processor time of a process, user and system. Source: proc_pid_stat(5);
// a tick is a hundredth of a second on every system that has the file.
func cpuTime(pid string) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program stands before
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
