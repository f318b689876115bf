package demand

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"pgregory.net/rapid"
)

// A cell that starts a task which reads the same cell does not block forever: the wait ends with the
// fallback, and an error is reported.
func TestNestedTask(t *testing.T) {
	var g Graph
	var c *Cell[int]
	c = NewCell(name{"c", 1}, -1, func(task *Task) (int, diag.List) {
		v, ok := c.Get(g.Task(task.Context()), nil)
		if v != -1 || ok {
			t.Errorf("the nested task got %d, %v", v, ok)
		}
		return v, Fail()
	})
	within(t, func() { c.Get(g.Task(t.Context()), nil) })
	if got := report(&g); !strings.HasPrefix(got, "1 error Evaluation waits for itself: Computing c started a second evaluation that needs c") {
		t.Errorf("reported %q", got)
	}
}

// The wait is also detected if it leads through a third task that waits for the first one.
func TestNestedTaskAcross(t *testing.T) {
	var g Graph
	var a, b *Cell[int]
	both := make(chan struct{})
	var begun sync.WaitGroup
	begun.Add(2)
	a = NewCell(name{"a", 1}, -1, func(task *Task) (int, diag.List) {
		begun.Done()
		<-both
		b.Get(g.Task(task.Context()), nil)
		return 1, nil
	})
	b = NewCell(name{"b", 2}, -1, func(task *Task) (int, diag.List) {
		begun.Done()
		<-both
		a.Get(task, nil)
		return 1, nil
	})
	within(t, func() {
		go func() {
			begun.Wait()
			close(both)
		}()
		together(&g, func(t *Task) { a.Get(t, nil) }, func(t *Task) { b.Get(t, nil) })
	})
	if got := report(&g); !strings.Contains(got, "Evaluation waits for itself") {
		t.Errorf("reported %q", got)
	}
}

// Tasks that cells start are no error if they read no cell that waits for them.
func TestNestedTaskHarmless(t *testing.T) {
	var g Graph
	low := NewCell(name{"low", 1}, -1, func(*Task) (int, diag.List) { return 1, nil })
	cells := make([]*Cell[int], 20)
	for i := range cells {
		cells[i] = NewCell(name{fmt.Sprint("c", i), i + 2}, -1, func(task *Task) (int, diag.List) {
			v, _ := low.Get(g.Task(task.Context()), nil)
			return v, nil
		})
	}
	ask := func(t *Task) {
		for _, i := range rand.Perm(len(cells)) {
			cells[i].Get(t, nil)
		}
	}
	within(t, func() { together(&g, ask, ask, ask, ask) })
	for _, c := range cells {
		if v, ok := c.Peek(); v != 1 || !ok {
			t.Errorf("%s is %d, %v", c.What.(name).text, v, ok)
		}
	}
	if got := report(&g); got != "" {
		t.Errorf("reported %q", got)
	}
}

// Random graphs in which cells start tasks: nothing blocks forever, and every graph in which a cell can
// reach itself has an error.
func TestRandomNestedTasks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(rt, "n")
		reads, nests := make([][]int, n), make([]bool, n)
		for i := range n {
			reads[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(rt, fmt.Sprint("reads of ", i))
			nests[i] = rapid.IntRange(0, 3).Draw(rt, "nests") == 0
		}
		w := &world{reads: reads}
		w.tolerant, w.noisy = make([]bool, n), make([]bool, n)
		_, cycles, _, _ := w.expected()
		for round := range 8 {
			var g Graph
			cells := make([]*Cell[int], n)
			for i := range cells {
				cells[i] = NewCell(name{string(rune('a' + i)), i + 1}, -1000, func(t *Task) (int, diag.List) {
					if nests[i] {
						t = g.Task(t.Context())
					}
					for _, j := range reads[i] {
						cells[j].Get(t, line(i+1))
					}
					return i, nil
				})
			}
			tasks := 1 + round%4
			asks := make([]func(*Task), tasks)
			for k := range asks {
				asks[k] = func(t *Task) {
					for _, i := range rand.Perm(n) {
						cells[i].Get(t, nil)
					}
				}
			}
			within(t, func() { together(&g, asks...) })
			if ds := g.Diags(); cycles > 0 && !ds.HasErrors() {
				rt.Fatalf("%d cycles and no message", cycles)
			} else if cycles == 0 && len(ds) > 0 {
				rt.Fatalf("no cycle, but %s", report(&g))
			}
		}
	})
}

// Closing Stop ends the waits of all tasks, even if the computation that they wait for never ends.
func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := Graph{Stop: ctx.Done()}
	begun, end := make(chan struct{}), make(chan struct{})
	slow := NewCell(name{"slow", 1}, -1, func(*Task) (int, diag.List) {
		close(begun)
		<-end
		return 1, nil
	})
	reader := NewCell(name{"reader", 2}, -2, func(task *Task) (int, diag.List) {
		v, ok := slow.Get(task, line(2))
		if v != -1 || ok {
			t.Errorf("the reader got %d, %v", v, ok)
		}
		return 2, Fail()
	})
	var owner sync.WaitGroup
	owner.Go(func() { slow.Get(g.Task(ctx), nil) })
	<-begun
	if g.Stopped() {
		t.Error("stopped before anything was")
	}
	within(t, func() {
		together(&g, func(task *Task) { reader.Get(task, nil) }, func(*Task) { cancel() })
	})
	if !g.Stopped() || reader.OK() {
		t.Errorf("stopped %v, the reader's success %v", g.Stopped(), reader.OK())
	}
	close(end)
	owner.Wait()
	if v, ok := slow.Peek(); v != 1 || !ok {
		t.Errorf("what was waited for is %d, %v", v, ok)
	}
}
