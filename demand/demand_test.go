package demand

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// name is a Subject in line n of a file.
type name struct {
	text string
	line int
}

func (n name) Describe() (string, *source.Range) { return n.text, line(n.line) }

func line(n int) *source.Range {
	if n == 0 {
		return nil
	}
	return &source.Range{Filename: "main.tf", Start: hcl.Pos{Line: n, Column: 1, Byte: n * 100}, End: hcl.Pos{Line: n, Column: 2, Byte: n*100 + 1}}
}

// together runs the functions concurrently, each in its own task.
func together(g *Graph, fs ...func(*Task)) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(func() { f(g.Task(context.Background())) })
	}
	wg.Wait()
}

// within fails the test instead of letting it hang.
func within(t *testing.T, f func()) {
	t.Helper()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		f()
	}()
	select {
	case <-finished:
	case <-time.After(2 * time.Minute):
		buf := make([]byte, 1<<16)
		t.Fatalf("deadlock\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// report returns the graph's messages as text.
func report(g *Graph) string {
	var b strings.Builder
	for _, m := range g.Diags() {
		at := 0
		if m.At != nil {
			at = m.At.Start.Line
		}
		fmt.Fprintf(&b, "%d %s %s: %s\n", at, m.Severity, m.Summary, m.Detail)
		for _, n := range m.Notes {
			at := 0
			if n.At != nil {
				at = n.At.Start.Line
			}
			fmt.Fprintf(&b, "   %d %s\n", at, n.Text)
		}
	}
	return b.String()
}

func TestComputedOnce(t *testing.T) {
	var g Graph
	var calls atomic.Int64
	c := NewCell(name{"c", 1}, 0, func(*Task) (int, diag.List) {
		calls.Add(1)
		time.Sleep(time.Millisecond)
		return 42, diag.Warnf("", line(1), "Reported once", "D.")
	})
	ask := func(task *Task) {
		for range 10 {
			if v, ok := c.Get(task, nil); v != 42 || !ok {
				t.Errorf("got %d, %v", v, ok)
			}
		}
	}
	within(t, func() { together(&g, ask, ask, ask, ask, ask, ask) })
	if n := calls.Load(); n != 1 {
		t.Errorf("computed %d times", n)
	}
	if got, want := report(&g), "1 warning Reported once: D.\n"; got != want {
		t.Errorf("report %q, want %q", got, want)
	}
}

func TestLife(t *testing.T) {
	var g Graph
	c := NewCell(name{"c", 1}, -1, func(task *Task) (int, diag.List) {
		if Current(task) == nil || Current(task).What != (name{"c", 1}) {
			t.Errorf("computing %v", Current(task))
		}
		return 5, nil
	})
	if v, ok := c.Peek(); v != -1 || ok || c.Done() || c.OK() {
		t.Errorf("before: %d, %v, done %v, ok %v", v, ok, c.Done(), c.OK())
	}
	ctx := context.WithValue(t.Context(), name{}, 1)
	task := g.Task(ctx)
	if task.Context().Value(name{}) != 1 || Current(task) != nil {
		t.Error("the task does not know what it was made with")
	}
	c.Get(task, nil)
	if v, ok := c.Peek(); v != 5 || !ok || !c.Done() || !c.OK() {
		t.Errorf("after: %d, %v, done %v, ok %v", v, ok, c.Done(), c.OK())
	}
	var r Cell[string]
	r.Ready(name{"r", 2}, "v")
	if v, ok := r.Get(task, nil); v != "v" || !ok || !r.OK() || len(r.Reads()) != 0 {
		t.Errorf("ready cell: %q, %v", v, ok)
	}
}

func TestFailure(t *testing.T) {
	var g Graph
	bad := NewCell(name{"bad", 1}, -1, func(*Task) (int, diag.List) {
		return 7, diag.Errorf("", line(1), "Bad", "Reported by the cell.")
	})
	reader := NewCell(name{"reader", 2}, -2, func(task *Task) (int, diag.List) {
		v, ok := bad.Get(task, line(2))
		if v != 7 || ok {
			t.Errorf("the reader got %d, %v", v, ok)
		}
		return 8, append(diag.Warnf("", line(2), "Also", "D."), Fail()...)
	})
	silent := NewCell(name{"silent", 3}, -3, func(task *Task) (int, diag.List) {
		reader.Get(task, line(3))
		return 9, Fail()
	})
	tolerant := NewCell(name{"tolerant", 4}, -4, func(task *Task) (int, diag.List) {
		v, _ := silent.Get(task, line(4))
		return v + 1, nil
	})
	task := g.Task(t.Context())
	if v, ok := tolerant.Get(task, nil); v != 10 || !ok {
		t.Errorf("tolerant gave %d, %v", v, ok)
	}
	g.Report(diag.Errorf("", nil, "Elsewhere", "D."))
	g.Report(Fail())
	want := "1 error Bad: Reported by the cell.\n2 warning Also: D.\n0 error Elsewhere: D.\n"
	if diff := cmp.Diff(want, report(&g)); diff != "" {
		t.Error(diff)
	}
}

// The caller may modify the result of Fail without an effect on other results.
func TestFailIsFresh(t *testing.T) {
	Fail().Under(line(1)).About("x").Note(nil, "n")
	if m := Fail()[0]; m.At != nil || m.Address != "" || m.Notes != nil {
		t.Errorf("got %+v", m)
	}
}

func TestReads(t *testing.T) {
	var g Graph
	var cells []*Cell[int]
	for i := range 20 {
		cells = append(cells, NewCell(name{fmt.Sprint("c", i), i + 1}, 0, func(*Task) (int, diag.List) { return i, nil }))
	}
	for _, order := range [][]int{{}, {3}, {1, 2, 1, 1, 2}, {19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 19, 18, 9, 0}} {
		c := NewCell(name{"reader", 99}, 0, func(task *Task) (int, diag.List) {
			for place, i := range order {
				cells[i].Get(task, line(place+1))
			}
			return 0, nil
		})
		if c.Reads() != nil {
			t.Error("reads before it is done")
		}
		c.Get(g.Task(t.Context()), nil)
		var got, want []string
		for _, r := range c.Reads() {
			n, _ := r.Node.What.Describe()
			got = append(got, fmt.Sprint(n, "@", r.At.Start.Line))
		}
		for place, i := range order {
			if slices.Index(order, i) == place {
				want = append(want, fmt.Sprint("c", i, "@", place+1))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order %v: %s", order, diff)
		}
	}
}

func TestCycles(t *testing.T) {
	tests := []struct {
		name  string
		edges string // one letter per cell, in source order; "ab" means that a reads b
		want  string
	}{
		{"itself", "aa", `
1 error Cycle: a refers to itself, so its value can never be known. Remove the reference or replace it with the value that it should have.
   1 a refers to itself here
`},
		{"two", "ba ab", `
1 error Cycle: These values depend on one another in a cycle, so none of them can be known: a → b → a. Remove one of the references.
   1 a refers to b
   2 b refers to a
`},
		{"reached from elsewhere", "ab bc cd dc", `
3 error Cycle: These values depend on one another in a cycle, so none of them can be known: c → d → c. Remove one of the references.
   3 c refers to d
   4 d refers to c
`},
		{"shortest circle of a tangle", "ab bc cd da bd db ca ba", `
1 error Cycle: These values depend on one another in a cycle, so none of them can be known: a → b → a. Remove one of the references.
   1 a refers to b
   2 b refers to a
`},
		{"two apart", "ab ba cd dc ec ea", `
1 error Cycle: These values depend on one another in a cycle, so none of them can be known: a → b → a. Remove one of the references.
   1 a refers to b
   2 b refers to a
3 error Cycle: These values depend on one another in a cycle, so none of them can be known: c → d → c. Remove one of the references.
   3 c refers to d
   4 d refers to c
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, tasks := range []int{1, 2, 5} {
				w := newWorld(26)
				for _, e := range strings.Fields(tt.edges) {
					w.reads[e[0]-'a'] = append(w.reads[e[0]-'a'], int(e[1]-'a'))
				}
				within(t, func() { w.run(tasks, func(i int) int { return i }) })
				if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), report(&w.g)); diff != "" {
					t.Errorf("%d tasks: %s", tasks, diff)
				}
			}
		})
	}
}

// Two tasks wait for each other at the same time.
func TestDeadlockAcrossTasks(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		var g Graph
		cells := make([]*Cell[int], n)
		var all sync.WaitGroup
		all.Add(n)
		for i := range n {
			cells[i] = NewCell(name{fmt.Sprint("c", i), i + 1}, -1, func(task *Task) (int, diag.List) {
				all.Done()
				all.Wait() // every cell is now being computed, each by its own task
				v, ok := cells[(i+1)%n].Get(task, line(i+1))
				if v != -1 || ok {
					t.Errorf("cell %d got %d, %v", i, v, ok)
				}
				return i, nil // as if nothing had happened
			})
		}
		var fs []func(*Task)
		for i := range n {
			fs = append(fs, func(task *Task) {
				if v, ok := cells[i].Get(task, nil); v != -1 || ok {
					t.Errorf("task %d got %d, %v", i, v, ok)
				}
			})
		}
		within(t, func() { together(&g, fs...) })
		if got := report(&g); strings.Count(got, "Cycle") != 1 || strings.Count(got, " refers to ") != n {
			t.Errorf("%d tasks: %s", n, got)
		}
	}
}

// Messages of the members of a cycle are dropped, because they are consequences. Those of readers and of
// other cells are not.
func TestMessagesBesideACycle(t *testing.T) {
	var g Graph
	var a, b *Cell[int]
	a = NewCell(name{"a", 1}, -1, func(task *Task) (int, diag.List) {
		v, _ := b.Get(task, line(1))
		return 1, diag.Errorf("", line(1), "Consequence", "Got %d.", v)
	})
	b = NewCell(name{"b", 2}, -1, func(task *Task) (int, diag.List) {
		a.Get(task, line(2))
		return 2, nil
	})
	c := NewCell(name{"c", 3}, -3, func(task *Task) (int, diag.List) {
		v, ok := b.Get(task, line(3))
		return 3, diag.Warnf("", line(3), "Kept", "Got %d, %v.", v, ok)
	})
	if v, ok := c.Get(g.Task(t.Context()), nil); v != -3 || ok {
		t.Errorf("got %d, %v", v, ok)
	}
	want := `1 error Cycle: These values depend on one another in a cycle, so none of them can be known: a → b → a. Remove one of the references.
   1 a refers to b
   2 b refers to a
3 warning Kept: Got -1, false.
`
	if diff := cmp.Diff(want, report(&g)); diff != "" {
		t.Error(diff)
	}
}

// chain returns n cells. Each cell reads the next one, and end computes the last one.
func chain(n int, end func(task *Task, first *Cell[int]) (int, diag.List)) []*Cell[int] {
	cells := make([]*Cell[int], n)
	for i := range cells {
		cells[i] = NewCell(name{fmt.Sprint("c", i), i + 1}, -1, func(task *Task) (int, diag.List) {
			if i == n-1 {
				return end(task, cells[0])
			}
			v, ok := cells[i+1].Get(task, line(i+1))
			if !ok {
				return -1, Fail()
			}
			return v + 1, nil
		})
	}
	return cells
}

func TestLongChain(t *testing.T) {
	const n = 100_000
	t.Run("value", func(t *testing.T) {
		var g Graph
		cells := chain(n, func(*Task, *Cell[int]) (int, diag.List) { return 1, nil })
		if v, ok := cells[0].Get(g.Task(t.Context()), nil); v != n || !ok {
			t.Errorf("got %d, %v", v, ok)
		}
	})
	t.Run("error", func(t *testing.T) {
		var g Graph
		cells := chain(n, func(*Task, *Cell[int]) (int, diag.List) { return 0, diag.Errorf("", line(n), "Bad", "D.") })
		if _, ok := cells[0].Get(g.Task(t.Context()), nil); ok {
			t.Error("no failure")
		}
		if got, want := report(&g), "100000 error Bad: D.\n"; got != want {
			t.Errorf("report %q", got)
		}
	})
	t.Run("cycle", func(t *testing.T) {
		var g Graph
		cells := chain(n, func(task *Task, first *Cell[int]) (int, diag.List) {
			_, ok := first.Get(task, line(n))
			if ok {
				t.Error("no failure")
			}
			return 0, Fail()
		})
		cells[n/2].Get(g.Task(t.Context()), nil)
		ds := g.Diags()
		if len(ds) != 1 || len(ds[0].Notes) != n {
			t.Errorf("%d messages", len(ds))
		}
	})
	t.Run("two tasks from both ends", func(t *testing.T) {
		var g Graph
		cells := chain(n, func(*Task, *Cell[int]) (int, diag.List) { return 1, nil })
		within(t, func() {
			together(&g,
				func(task *Task) { cells[0].Get(task, nil) },
				func(task *Task) {
					for i := n - 1; i >= 0; i -= 997 {
						cells[i].Get(task, nil)
					}
				})
		})
		if v, ok := cells[0].Peek(); v != n || !ok {
			t.Errorf("got %d, %v", v, ok)
		}
	})
}
