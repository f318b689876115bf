package flow_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/schedule/scheduletest"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// inFlow runs the Scheduler in a workflow as a schedule.Scheduler. Turns are activities.
type inFlow struct{ t *testing.T }

// paused is the data of a paused turn in the test suite: the function that resumes it.
type paused struct {
	resumed chan struct{}
	out     chan schedule.Outcome
}

func (s inFlow) Run(ctx context.Context, tasks []schedule.Task, rules schedule.Rules, work schedule.Work) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	var mu sync.Mutex
	pauses := map[int]*paused{}
	asked := make(chan struct{}, len(tasks))
	type result struct {
		Out  schedule.Outcome
		Asks bool
	}
	env.RegisterActivityWithOptions(func(_ context.Context, i int) (result, error) {
		mu.Lock()
		p := pauses[i]
		if p == nil {
			p = &paused{resumed: make(chan struct{}), out: make(chan schedule.Outcome, 1)}
			pauses[i] = p
			mu.Unlock()
			go func() {
				p.out <- work.Turn(ctx, i, func(note func(resume func())) {
					note(func() { close(p.resumed) })
					asked <- struct{}{}
					<-p.resumed
				})
			}()
			select {
			case out := <-p.out:
				return result{Out: out}, nil
			case <-asked:
				return result{Asks: true}, nil
			}
		}
		mu.Unlock()
		return result{Out: <-p.out}, nil
	}, activity.RegisterOptions{Name: "turn"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		f := &flow.Scheduler{
			Places: 1,
			Turn:   func(i int) workflow.Future { return workflow.ExecuteActivity(ctx, "turn", i) },
			Ended: func(_ int, f workflow.Future) (schedule.Outcome, bool) {
				var r result
				if err := f.Get(ctx, &r); err != nil {
					s.t.Error(err)
				}
				return r.Out, r.Asks
			},
			Refused: work.Refused,
			Idle:    func(workflow.Context, []int) bool { return work.Idle(context.Background()) },
		}
		f.Begin(tasks, rules, nil).Run(ctx, func() bool { return work.Stopping != nil && work.Stopping(context.Background()) })
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		s.t.Error(err)
	}
}

func TestRulesOfWorkflow(t *testing.T) {
	scheduletest.Run(t, func(t *testing.T) schedule.Scheduler { return inFlow{t} })
}

// The workflow passes the outputs of a unit to dependent units, and to no others.
func TestOutputsFlow(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	var mu sync.Mutex
	got := map[string][]string{}
	env.RegisterActivityWithOptions(func(_ context.Context, job remote.Job, turn remote.Turn) (*remote.Done, error) {
		mu.Lock()
		defer mu.Unlock()
		for name, ref := range turn.Needs {
			got[turn.Unit] = append(got[turn.Unit], name+"="+string(ref.Text))
		}
		slices.Sort(got[turn.Unit])
		return &remote.Done{Outputs: &remote.Ref{Text: []byte("of " + turn.Unit)}}, nil
	}, activity.RegisterOptions{Name: "plan"})
	env.ExecuteWorkflow(flow.Workflow, flow.Input{
		Job:   remote.Job{Format: remote.JobFormat, Op: "plan"},
		Tasks: []schedule.Task{{Name: "a"}, {Name: "b", Needs: []int{0}}, {Name: "c", Needs: []int{0, 1}}, {Name: "d"}},
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got["c"], []string{"a=of a", "b=of b"}) || !slices.Equal(got["b"], []string{"a=of a"}) || len(got["a"])+len(got["d"]) > 0 {
		t.Errorf("got %v", got)
	}
}

// UnitOf inverts ActivityID for names with any characters.
func TestActivityID(t *testing.T) {
	for _, unit := range []string{"app", "live/app", "issue#12", "a#1", "#"} {
		seen := map[string]bool{}
		for n := range 3 {
			id := flow.ActivityID(unit, n+1)
			if got := flow.UnitOf(id); got != unit || seen[id] {
				t.Errorf("turn %d of %q is %q, whose unit is %q", n+1, unit, id, got)
			}
			seen[id] = true
		}
	}
	if flow.ActivityID("app", 1) != "app" {
		t.Error("Temporal's pages show the name of a unit alone")
	}
}
