// Package scheduletest is the test suite that every schedule.Scheduler must pass.
//
// Main function: Run. The one rule: the suite runs one task at a time, so that the rules
// determine the order of turns.
package scheduletest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate/schedule"
)

// Run tests a scheduler. fresh returns a new scheduler that runs one task at a time.
func Run(t *testing.T, fresh func(t *testing.T) schedule.Scheduler) {
	t.Run("rules", func(t *testing.T) { rules(t, fresh) })
	t.Run("pause", func(t *testing.T) { pause(t, fresh(t)) })
	t.Run("stopping", func(t *testing.T) { stopping(t, fresh(t)) })
}

// ran runs tasks that are written as "name:dependency,dependency" and returns a description of
// their outcomes. The suffix ! marks tasks that fail, ? those that stop early, and - those that
// are skipped.
func ran(t *testing.T, s schedule.Scheduler, text string, rules schedule.Rules) string {
	t.Helper()
	var tasks []schedule.Task
	var ends []byte
	index := map[string]int{}
	fields := strings.Fields(text)
	for i, f := range fields {
		name, _, _ := strings.Cut(f, ":")
		index[strings.TrimRight(name, "!?-")] = i
	}
	for _, f := range fields {
		name, needs, _ := strings.Cut(f, ":")
		bare := strings.TrimRight(name, "!?-")
		task := schedule.Task{Name: bare, Skip: strings.HasSuffix(name, "-")}
		for n := range strings.SplitSeq(needs, ",") {
			if n != "" {
				task.Needs = append(task.Needs, index[n])
			}
		}
		tasks = append(tasks, task)
		ends = append(ends, name[len(name)-1])
	}
	var mu sync.Mutex
	var out []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, fmt.Sprintf(format, args...))
	}
	s.Run(t.Context(), tasks, rules, schedule.Work{
		Turn: func(_ context.Context, i int, _ schedule.Pause) schedule.Outcome {
			note("%s", tasks[i].Name)
			switch ends[i] {
			case '!':
				return schedule.Failed
			case '?':
				return schedule.NotRun
			}
			return schedule.Done
		},
		Refused: func(i int, why schedule.Refusal) {
			switch why.Reason {
			case schedule.Blocked:
				note("%s<%s<%s,%t", tasks[i].Name, tasks[why.By].Name, tasks[why.First].Name, why.FirstNotRun)
			case schedule.Failing:
				note("%s<failing", tasks[i].Name)
			default:
				note("%s<%v", tasks[i].Name, why.Reason)
			}
		},
	})
	return strings.Join(out, " ")
}

func rules(t *testing.T, fresh func(t *testing.T) schedule.Scheduler) {
	for _, test := range []struct {
		name, tasks, want string
		rules             schedule.Rules
	}{
		{"in order, by name", "c:a b a d:b,c", "a b c d", schedule.Rules{}},
		{"skipped ones are done", "c:b b-:a a", "a c", schedule.Rules{}},
		{"needs that fail", "a! b:a c:b d", "a d b<a<a,false c<b<a,false", schedule.Rules{}},
		{"the first by name is told", "b! a! c:b,a", "a b c<a<a,false", schedule.Rules{}},
		{"broken off", "a? b:a", "a b<a<a,true", schedule.Rules{}},
		{"errors ignored", "a! b:a", "a b", schedule.Rules{IgnoreErrors: true}},
		{"nothing after a failure", "a! b", "a b<failing", schedule.Rules{FailFast: true}},
		{"no order", "a:b b! c:b", "b a c", schedule.Rules{IgnoreOrder: true, IgnoreErrors: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ran(t, fresh(t), test.tasks, test.rules); got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.tasks, got, test.want)
			}
		})
	}
}

// pause checks that a paused turn lets other tasks run, and continues after they are done and it
// was resumed.
func pause(t *testing.T, s schedule.Scheduler) {
	var out []string
	var resume []func()
	tasks := []schedule.Task{{Name: "a"}, {Name: "b"}, {Name: "c", Needs: []int{0}}}
	s.Run(t.Context(), tasks, schedule.Rules{}, schedule.Work{
		Turn: func(_ context.Context, i int, pause schedule.Pause) schedule.Outcome {
			if i == 0 {
				pause(func(end func()) { resume = append(resume, end) })
			}
			out = append(out, tasks[i].Name)
			return schedule.Done
		},
		Idle: func(context.Context) bool {
			waiting := resume
			resume = nil
			for _, end := range waiting {
				out = append(out, "idle")
				end()
			}
			return len(waiting) > 0
		},
	})
	if got := strings.Join(out, " "); got != "b idle a c" {
		t.Errorf("got %s", got)
	}
}

func stopping(t *testing.T, s schedule.Scheduler) {
	stop := false
	var out []string
	tasks := []schedule.Task{{Name: "a"}, {Name: "b"}}
	s.Run(t.Context(), tasks, schedule.Rules{}, schedule.Work{
		Turn: func(_ context.Context, i int, _ schedule.Pause) schedule.Outcome { stop = true; return schedule.Done },
		Refused: func(i int, why schedule.Refusal) {
			out = append(out, fmt.Sprint(tasks[i].Name, why.Reason == schedule.Stopping))
		},
		Stopping: func(context.Context) bool { return stop },
	})
	if !slices.Equal(out, []string{"btrue"}) {
		t.Errorf("got %v", out)
	}
}
