package follow

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"
)

// If workers of another version cannot continue a run, the report says so, and what to do.
func TestAnotherVersion(t *testing.T) {
	sealer, err := remote.NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	f := &Follower{
		Failures: temporal.GetDefaultFailureConverter(), Blobs: &remote.Blobs{Sealer: sealer}, noted: map[string]bool{},
		Tell: func(m remote.Message) error { notes = append(notes, m.Note); return nil },
	}
	fail := func(cause enums.WorkflowTaskFailedCause, text string) string {
		t.Helper()
		notes = nil
		e := &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
			WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{Cause: cause, Identity: "me@here:1", Failure: &failurepb.Failure{Message: text}},
		}}
		if _, over, err := f.event(t.Context(), e); over || err != nil {
			t.Errorf("over %v, %v", over, err)
		}
		return strings.Join(notes, "\n")
	}
	if got := fail(enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR, "lookup failed for scheduledEventID"); !strings.Contains(got, "me@here:1 could not go on with the run: lookup failed for scheduledEventID. It is of another version") {
		t.Errorf("another version: %q", got)
	}
	if got := fail(enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE, "panic"); !strings.Contains(got, "run: panic. Workers are asked again.") {
		t.Errorf("a failure: %q", got)
	}
	if got := fail(enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, "UnhandledCommand"); got != "" {
		t.Errorf("what the server does by itself: %q", got)
	}
	if got := f.nobody(sealer.Queue("q", "1.2.0"), "1.2.0"); !strings.Contains(got, "No worker of version 1.2.0 with") || !strings.Contains(got, "from the queue q. Start one") {
		t.Errorf("a queue of this version: %q", got)
	}
	if got := f.nobody("q", "1.2.0"); !strings.Contains(got, "takes turns from q, as an earlier version called") {
		t.Errorf("a queue of an earlier version: %q", got)
	}
}
