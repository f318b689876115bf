package follow

import (
	"context"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// waiting is an engine with one run and its history.
type waiting struct {
	client.Client
	events     []*historypb.HistoryEvent
	canceled   bool
	terminated string // reason of the termination
}

func (w *waiting) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}}, nil
}

func (w *waiting) CancelWorkflow(context.Context, string, string) error {
	w.canceled = true
	return nil
}

func (w *waiting) TerminateWorkflow(_ context.Context, _, _, reason string, _ ...any) error {
	w.terminated = reason
	return nil
}

func (w *waiting) GetWorkflowHistory(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &events{w.events}
}

type events struct{ left []*historypb.HistoryEvent }

func (e *events) HasNext() bool { return len(e.left) > 0 }

func (e *events) Next() (*historypb.HistoryEvent, error) {
	x := e.left[0]
	e.left = e.left[1:]
	return x, nil
}

// A canceled run that no worker ever started is terminated. One that was started is left to its
// workers.
func TestCancelWithoutWorkers(t *testing.T) {
	event := func(kind enums.EventType) *historypb.HistoryEvent { return &historypb.HistoryEvent{EventType: kind} }
	fresh := []*historypb.HistoryEvent{
		event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED), event(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED), event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED),
	}
	later := &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{ContinuedExecutionRunId: "before"},
	}}
	for _, x := range []struct {
		name   string
		events []*historypb.HistoryEvent
		ends   bool
	}{
		{"nobody took it up", fresh, true},
		{"a worker looks at it", append(fresh[:3:3], event(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED)), false},
		{"it has a history before this one", append([]*historypb.HistoryEvent{later}, fresh[1:]...), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w := &waiting{events: x.events}
			if err := Cancel(t.Context(), w, "run"); err != nil || !w.canceled {
				t.Fatalf("canceled %v, %v", w.canceled, err)
			}
			if (w.terminated != "") != x.ends {
				t.Errorf("terminated: %q", w.terminated)
			}
			f := &Follower{}
			_, over, err := f.event(t.Context(), &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
				WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: w.terminated},
			}})
			if !over || strings.Contains(err.Error(), "nothing was done") != x.ends {
				t.Errorf("over %v, %v", over, err)
			}
		})
	}
}
