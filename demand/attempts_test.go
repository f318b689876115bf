package demand

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/terrace-iac/terrace/diag"
)

// A temporary failure applies to the tasks that had begun. A later task computes the cell and its readers
// again, and its messages replace the old ones.
func TestPassingFailure(t *testing.T) {
	g := Graph{Attempts: true}
	calls, readers := 0, 0
	answer := NewCell(name{"answer", 1}, "", func(t *Task) (string, diag.List) {
		if calls++; calls == 1 {
			Passing(t)
			return "", diag.Errorf("", line(1), "Down", "D.")
		}
		return "fine", nil
	})
	reader := NewCell(name{"reader", 2}, "", func(t *Task) (string, diag.List) {
		readers++
		v, ok := answer.Get(t, line(2))
		if !ok {
			return "placeholder", nil // like try()
		}
		return v, nil
	})
	other := NewCell(name{"other", 3}, "", func(*Task) (string, diag.List) { return "other", nil })
	first, second := g.Task(t.Context()), g.Task(t.Context())
	for _, task := range []*Task{first, second, first} {
		if v, ok := reader.Get(task, nil); v != "placeholder" || !ok {
			t.Errorf("got %q, %v", v, ok)
		}
		if _, ok := answer.Get(task, nil); ok {
			t.Error("the failure does not count for a task that had begun")
		}
		other.Get(task, nil)
	}
	if calls != 1 || readers != 1 {
		t.Errorf("%d calls and %d of the reader for tasks that had begun, want 1", calls, readers)
	}
	if got, want := report(&g), "1 error Down: D.\n"; got != want {
		t.Errorf("report %q, want %q", got, want)
	}
	if !other.Done() || reader.Done() || answer.Done() {
		t.Error("what failed for the moment is done, or what did not is not")
	}
	third := g.Task(t.Context())
	if v, ok := reader.Get(third, nil); v != "fine" || !ok {
		t.Errorf("a later task got %q, %v", v, ok)
	}
	for _, task := range []*Task{first, third} { // the first task does not get the old failure either
		if v, ok := reader.Get(task, nil); v != "fine" || !ok {
			t.Errorf("got %q, %v", v, ok)
		}
	}
	if calls != 2 || readers != 2 || report(&g) != "" {
		t.Errorf("%d calls, %d of the reader, report %q", calls, readers, report(&g))
	}
}

// In a graph without Attempts, a failure is permanent.
func TestPassingInOneAttempt(t *testing.T) {
	var g Graph
	calls := 0
	c := NewCell(name{"c", 1}, 0, func(t *Task) (int, diag.List) {
		calls++
		Passing(t)
		return 1, diag.Errorf("", line(1), "Down", "D.")
	})
	c.Get(g.Task(t.Context()), nil)
	c.Get(g.Task(t.Context()), nil)
	if calls != 1 || !c.Done() {
		t.Errorf("%d calls, done %v", calls, c.Done())
	}
}

// The failure of a canceled task does not apply to a task that continues, whether that task waited for it
// or begins later.
func TestCanceledTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Graph{Attempts: true}
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		c := NewCell(name{"c", 1}, "", func(t *Task) (string, diag.List) {
			if calls++; calls == 1 {
				<-t.Context().Done()
				return "", diag.Errorf("", line(1), "Canceled", "%s", t.Context().Err())
			}
			return "fine", nil
		})
		canceled, waiting, too := g.Task(ctx), g.Task(t.Context()), g.Task(ctx)
		go c.Get(canceled, nil)
		synctest.Wait()
		got := make(chan string)
		go func() {
			v, _ := c.Get(waiting, nil)
			got <- v
		}()
		synctest.Wait()
		cancel()
		if v := <-got; v != "fine" {
			t.Errorf("the task that waited got %q", v)
		}
		if v, ok := c.Get(too, nil); v != "fine" || !ok {
			t.Errorf("another canceled task got %q, %v", v, ok)
		}
		if calls != 2 || report(&g) != "" {
			t.Errorf("%d calls, report %q", calls, report(&g))
		}
	})
}

// Canceled tasks share their failures, so that a large graph ends soon.
func TestCanceledTasksShare(t *testing.T) {
	g := Graph{Attempts: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	c := NewCell(name{"c", 1}, 0, func(t *Task) (int, diag.List) {
		calls++
		return 0, diag.Errorf("", line(1), "Canceled", "%s", t.Context().Err())
	})
	for range 3 {
		c.Get(g.Task(ctx), nil)
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
