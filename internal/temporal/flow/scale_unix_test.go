//go:build unix

package flow_test

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

var (
	scaleUnits   = flag.Int("scaleunits", 0, "how many units a run has whose turns wait; 0: the test is skipped")
	scaleWorkers = flag.Int("scaleworkers", 1, "how many workers it has, with four slots each")
	scaleWait    = flag.Duration("scalewait", 0, "how long a turn waits")
)

// Limits of the engine for the history of a workflow, in events and bytes. It ends a workflow
// that exceeds them.
const (
	mostEvents = 51200
	mostBytes  = 50 << 20
)

// TestScale runs many units whose turns only wait, on a real server, and logs the duration and
// the size of the histories.
func TestScale(t *testing.T) {
	if *scaleUnits == 0 {
		t.Skip("SKIP: -scaleunits is not given")
	}
	sealer, err := remote.NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := dial(t, sealer), t.Context()
	queue := fmt.Sprintf("scale-%d", time.Now().UnixNano())
	const slots = 4
	for range *scaleWorkers {
		w := worker.New(c, queue, worker.Options{DisableRegistrationAliasing: true, MaxConcurrentActivityExecutionSize: slots})
		w.RegisterWorkflowWithOptions(flow.Workflow, workflow.RegisterOptions{Name: flow.Name})
		w.RegisterActivityWithOptions(func(context.Context, remote.Job, remote.Turn) (*remote.Done, error) {
			time.Sleep(*scaleWait)
			return &remote.Done{Outputs: &remote.Ref{Text: make([]byte, 200)}, Report: remote.Ref{Text: make([]byte, 1000)}}, nil
		}, activity.RegisterOptions{Name: "plan"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	in := flow.Input{Job: remote.Job{Format: remote.JobFormat, Op: "plan"}}
	for i := range *scaleUnits {
		task := schedule.Task{Name: fmt.Sprintf("live/region/service-%05d", i)}
		if i >= 200 {
			task.Needs = []int{i - 200}
		}
		in.Tasks = append(in.Tasks, task)
	}
	id := queue
	begin, before := time.Now(), used()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, flow.Name, in)
	if err != nil {
		t.Fatal(err)
	}
	first := run.GetRunID()
	if err := run.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	took, cpu := time.Since(begin), used()-before
	executions, events, turns := 0, 0, 0
	var longest int
	var largest int64
	for next := first; next != ""; executions++ {
		d, err := c.DescribeWorkflowExecution(ctx, id, next)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
		it := c.GetWorkflowHistory(ctx, id, next, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		n := 0
		for next = ""; it.HasNext(); n++ {
			e, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e.GetActivityTaskCompletedEventAttributes() != nil {
				turns++
			}
			if more := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); more != nil {
				next = more.GetNewExecutionRunId()
			}
		}
		events, longest = events+n, max(longest, n)
	}
	ideal := *scaleWait * time.Duration(*scaleUnits) / time.Duration(slots**scaleWorkers)
	t.Logf("%d units on %d workers of %d slots, %s each: %s, ideal %s (%.0f%%); %d executions, %d events, longest %d, largest %d kB; %s of processor time in this process, %s a unit",
		*scaleUnits, *scaleWorkers, slots, *scaleWait, took.Round(time.Millisecond), ideal, 100*ideal.Seconds()/took.Seconds(), executions, events, longest, largest>>10, cpu.Round(time.Millisecond), (cpu / time.Duration(*scaleUnits)).Round(10*time.Microsecond))
	if turns != *scaleUnits {
		t.Errorf("%d turns, want %d", turns, *scaleUnits)
	}
	if longest > mostEvents/2 || largest > mostBytes/2 {
		t.Errorf("a history is nearly as large as the engine lets it: %d events, %d bytes", longest, largest)
	}
}

// used returns the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
