// Package schedule decides when each of many tasks runs: after its dependencies, and not if one
// of them failed.
//
// Main types: Task, Rules, Work and Scheduler, with Local as the scheduler of one process. The
// one rule: a scheduler only knows the name and the dependencies of a task, so that a scheduler
// can run tasks on other machines.
package schedule

import (
	"cmp"
	"context"
	"slices"
)

// A Task is a unit of work. Tasks are identified by their index.
type Task struct {
	Name  string
	Needs []int // indexes of dependencies
	// Skip is set for excluded tasks: they count as done from the start.
	Skip bool
}

// Rules configures which tasks run. The zero value means those whose dependencies all succeeded.
type Rules struct {
	FailFast     bool // no task begins after a task has failed
	IgnoreErrors bool // tasks run even if a dependency failed
	IgnoreOrder  bool // tasks do not wait for dependencies
}

// An Outcome is the result of a turn.
type Outcome int

// The outcomes. Failed and NotRun prevent dependent tasks from running.
const (
	Done Outcome = iota
	Failed
	NotRun
)

// A Refusal is the reason why a task does not run.
type Refusal struct {
	Reason Reason
	// By is the dependency that failed or was not run. First is the task that caused this,
	// directly or indirectly; FirstNotRun means that First was not run, otherwise it failed. They
	// are only set for Blocked.
	By, First   int
	FirstNotRun bool
	// Text is the reason for Stopping. "" means an interrupt.
	Text string `json:",omitempty"`
}

// Reason is the kind of a Refusal.
type Reason int

// The reasons.
const (
	Blocked  Reason = iota // by a dependency
	Stopping               // the run is being stopped
	Failing                // another task failed, with Rules.FailFast
)

// Work contains the functions that a scheduler calls. They are called concurrently, except Idle.
// For each task that is not skipped, either Turn or Refused is called, exactly once.
type Work struct {
	Turn    func(ctx context.Context, task int, pause Pause) Outcome
	Refused func(task int, why Refusal)
	// Stopping reports whether no more tasks may begin. It may be nil.
	Stopping func(ctx context.Context) bool
	// Idle is called when only paused turns are left. It resumes these and reports whether there
	// were any. It may be nil if no turn pauses.
	Idle func(ctx context.Context) bool
}

// Pause suspends a turn that waits for an answer, so that another task can run. It calls note
// with a function that ends the pause. It returns after that function was called and the task may
// run again.
type Pause func(note func(resume func()))

// A Scheduler runs all tasks and returns when all are done.
type Scheduler interface {
	Run(ctx context.Context, tasks []Task, rules Rules, work Work)
}

// Order returns the tasks so that each comes after its dependencies: first tasks without
// dependencies, then tasks that only depend on these, and so on, each group sorted by name. Tasks
// in a cycle, or depending on one, come last.
func Order(tasks []Task) []int {
	after := neededBy(tasks)
	left := make([]int, len(tasks))
	var wave, out []int
	for i, t := range tasks {
		if left[i] = len(t.Needs); left[i] == 0 {
			wave = append(wave, i)
		}
	}
	for len(wave) > 0 {
		byName(tasks, wave)
		out = append(out, wave...)
		var next []int
		for _, i := range wave {
			for _, n := range after[i] {
				if left[n]--; left[n] == 0 {
					next = append(next, n)
				}
			}
		}
		wave = next
	}
	if len(out) < len(tasks) {
		for i := range tasks {
			if left[i] > 0 {
				out = append(out, i)
			}
		}
	}
	return out
}

// neededBy returns the dependent tasks of each task.
func neededBy(tasks []Task) [][]int {
	out := make([][]int, len(tasks))
	for i, t := range tasks {
		for _, n := range t.Needs {
			out[n] = append(out[n], i)
		}
	}
	return out
}

func byName(tasks []Task, list []int) {
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(tasks[a].Name, tasks[b].Name) })
}
