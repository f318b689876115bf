package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ran runs tasks written "name:need,need" with a trailing ! for those that fail, ? for
// those that break off and - for those that are skipped, and tells what came of each.
func ran(t *testing.T, text string, places int, rules Rules) string {
	t.Helper()
	var tasks []Task
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
		task := Task{Name: bare, Skip: strings.HasSuffix(name, "-")}
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
	Local{places}.Run(t.Context(), tasks, rules, Work{
		Turn: func(_ context.Context, i int, _ Pause) Outcome {
			note("%s", tasks[i].Name)
			switch ends[i] {
			case '!':
				return Failed
			case '?':
				return NotRun
			}
			return Done
		},
		Refused: func(i int, why Refusal) {
			switch why.Reason {
			case Blocked:
				note("%s<%s<%s,%t", tasks[i].Name, tasks[why.By].Name, tasks[why.First].Name, why.FirstNotRun)
			case Failing:
				note("%s<failing", tasks[i].Name)
			default:
				note("%s<%v", tasks[i].Name, why.Reason)
			}
		},
	})
	return strings.Join(out, " ")
}

func TestLocal(t *testing.T) {
	for _, test := range []struct {
		name, tasks, want string
		rules             Rules
	}{
		{"in order, by name", "c:a b a d:b,c", "a b c d", Rules{}},
		{"skipped ones are done", "c:b b-:a a", "a c", Rules{}},
		{"needs that fail", "a! b:a c:b d", "a d b<a<a,false c<b<a,false", Rules{}},
		{"the first by name is told", "b! a! c:b,a", "a b c<a<a,false", Rules{}},
		{"broken off", "a? b:a", "a b<a<a,true", Rules{}},
		{"errors ignored", "a! b:a", "a b", Rules{IgnoreErrors: true}},
		{"nothing after a failure", "a! b", "a b<failing", Rules{FailFast: true}},
		{"no order", "a:b b! c:b", "b a c", Rules{IgnoreOrder: true, IgnoreErrors: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ran(t, test.tasks, 1, test.rules); got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.tasks, got, test.want)
			}
		})
	}
}

// A turn that pauses leaves its place to others, and goes on once everything else is
// done and somebody resumed it.
func TestPause(t *testing.T) {
	var out []string
	var resume []func()
	tasks := []Task{{Name: "a"}, {Name: "b"}, {Name: "c", Needs: []int{0}}}
	Local{1}.Run(t.Context(), tasks, Rules{}, Work{
		Turn: func(_ context.Context, i int, pause Pause) Outcome {
			if i == 0 {
				pause(func(end func()) { resume = append(resume, end) })
			}
			out = append(out, tasks[i].Name)
			return Done
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

func TestStopping(t *testing.T) {
	stop := false
	var out []string
	tasks := []Task{{Name: "a"}, {Name: "b"}}
	Local{1}.Run(t.Context(), tasks, Rules{}, Work{
		Turn:     func(_ context.Context, i int, _ Pause) Outcome { stop = true; return Done },
		Refused:  func(i int, why Refusal) { out = append(out, fmt.Sprint(tasks[i].Name, why.Reason == Stopping)) },
		Stopping: func(context.Context) bool { return stop },
	})
	if !slices.Equal(out, []string{"btrue"}) {
		t.Errorf("got %v", out)
	}
}

func TestOrderOfCycles(t *testing.T) {
	tasks := []Task{{Name: "x", Needs: []int{1}}, {Name: "y", Needs: []int{0}}, {Name: "z"}, {Name: "w", Needs: []int{2}}}
	if got := Order(tasks); !slices.Equal(got, []int{2, 3, 0, 1}) {
		t.Errorf("got %v", got)
	}
}
