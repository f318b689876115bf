package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

func listRequest(namespace string, token []byte) *workflowservice.ListWorkflowExecutionsRequest {
	return &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: "WorkflowType = '" + flow.Name + "'", NextPageToken: token}
}

// Cancel cancels a run: running units end, and no more start. A run that no worker has started
// within a few seconds is terminated, since no worker could end it.
func Cancel(ctx context.Context, c client.Client, id string) error {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err == nil {
		if s := d.GetWorkflowExecutionInfo().GetStatus(); s != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return fmt.Errorf("the run %s has ended already (%s)", id, strings.ToLower(s.String()))
		}
		err = c.CancelWorkflow(ctx, id, "")
	}
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return noRun(id)
	}
	if err != nil {
		return err
	}
	t := time.NewTimer(takenUp)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	}
	if touched, err := begun(ctx, c, id); err != nil || touched {
		return err
	}
	if err := c.TerminateWorkflow(ctx, id, "", untouched); err != nil && !errors.As(err, &gone) {
		return err
	}
	return nil
}

const (
	takenUp   = 2 * time.Second                       // time for a worker to react to a canceled run
	untouched = "canceled before a worker took it up" // reason of a terminated run
)

// begun reports whether a worker ever started the run, or whether it has ended.
func begun(ctx context.Context, c client.Client, id string) (bool, error) {
	it := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return false, err
		}
		switch e.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			if e.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId() != "" {
				return true, nil
			}
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED, enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		default:
			return true, nil
		}
	}
	return false, nil
}

func noRun(id string) error {
	return fmt.Errorf("there is no run %s: \"run --on … list\" prints those that there are", id)
}
