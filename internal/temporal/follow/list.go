package follow

import (
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/api/workflowservice/v1"
)

func listRequest(namespace string, token []byte) *workflowservice.ListWorkflowExecutionsRequest {
	return &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: "WorkflowType = '" + flow.Name + "'", NextPageToken: token}
}
