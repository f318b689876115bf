package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

func listRequest(namespace string, token []byte) *workflowservice.ListWorkflowExecutionsRequest {
	return &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: "WorkflowType = '" + flow.Name + "'", NextPageToken: token}
}

// Cancel has what is under way in a run end, and nothing more begin.
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
	return err
}

func noRun(id string) error {
	return fmt.Errorf("there is no run %s: \"run --on … list\" prints those that there are", id)
}
