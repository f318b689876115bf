package follow

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// lossy is an engine whose answers are lost.
type lossy struct {
	client.Client
	err error // error of the request that describes the run
}

func (l lossy) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, l.err
}

// If the request that starts a run gets no answer, the run may exist, and is then followed.
func TestStartedUnanswered(t *testing.T) {
	lost := errors.New("the answer is lost")
	if id, err := started(t.Context(), lossy{}, "run", lost); id != "run" || err != nil {
		t.Errorf("a run that is there: %q, %v", id, err)
	}
	if id, err := started(t.Context(), lossy{err: serviceerror.NewNotFound("none")}, "run", lost); id != "" || !errors.Is(err, lost) || !strings.Contains(err.Error(), "cannot be begun") {
		t.Errorf("a run that is not there: %q, %v", id, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := started(ctx, lossy{err: serviceerror.NewUnavailable("gone")}, "run", lost); id != "" || !errors.Is(err, lost) || !strings.Contains(err.Error(), "look for run") {
		t.Errorf("a server that is gone: %q, %v", id, err)
	}
	none := serviceerror.NewNamespaceNotFound("infra")
	if id, err := started(t.Context(), lossy{err: none}, "run", none); id != "" || !errors.Is(err, none) {
		t.Errorf("a namespace that is not there: %q, %v", id, err)
	}
}
