// Package schedule says when each of many tasks has its turn: after those that it
// needs, and not at all if one of these failed.
//
// Main types: Task, Rules, Work and Scheduler, with Local as the scheduler of one
// process. The one rule: a scheduler knows no more of a task than its name and what
// it needs, so that another one can run the tasks on other machines.
package schedule

import (
	"cmp"
	"context"
	"slices"
)

// A Task is one thing that has a turn. Tasks are named by their index.
type Task struct {
	Name  string
	Needs []int // the tasks that it waits for
	// Skip is set for tasks that take no part: they count as done from the start.
	Skip bool
}

// Rules say which tasks have a turn. The zero value: those whose needs are all done.
type Rules struct {
	FailFast     bool // nothing begins once a task has failed
	IgnoreErrors bool // a task runs though one that it needs failed
	IgnoreOrder  bool // a task waits for no other
}

// An Outcome is what came of a turn.
type Outcome int

// Failed and NotRun keep those that need the task from running.
const (
	Done Outcome = iota
	Failed
	NotRun
)

// A Refusal says why a task has no turn.
type Refusal struct {
	Reason Reason
	// By is the needed task that failed or was not run, and First the one that is behind
	// that: with FirstNotRun, it did not fail but was not run. Both are set for
	// Blocked alone.
	By, First   int
	FirstNotRun bool
	// Text says why everything is about to end, for Stopping; "" for an interrupt.
	Text string `json:",omitempty"`
}

// Reason is why a task has no turn.
type Reason int

// The reasons.
const (
	Blocked  Reason = iota // by one that it needs
	Stopping               // everything is about to end
	Failing                // another failed, with Rules.FailFast
)

// Work is what a scheduler calls, concurrently but for Idle. Turn and Refused are
// called for one task at most once, and one of them for each task that is not skipped.
type Work struct {
	Turn    func(ctx context.Context, task int, pause Pause) Outcome
	Refused func(task int, why Refusal)
	// Stopping reports whether nothing more is to begin. May be nil.
	Stopping func(ctx context.Context) bool
	// Idle is called when nothing is left to do but turns that pause. It resumes these
	// and reports whether there were any. May be nil if no turn pauses.
	Idle func(ctx context.Context) bool
}

// Pause lets another task have the place of a turn that waits for somebody. It calls
// note with a function that ends the pause, and returns when that was called and there
// is a place again.
type Pause func(note func(resume func()))

// A Scheduler gives all tasks their turns and returns when everything is done.
type Scheduler interface {
	Run(ctx context.Context, tasks []Task, rules Rules, work Work)
}

// Order lists tasks so that each comes after those that it needs: first those that need
// none, then those that need these alone, and so on, each wave by name. Tasks that are
// part of a cycle, or need one, come last.
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

// neededBy turns needs round.
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
