package flow_test

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/temporal/connect"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
)

var update = flag.Bool("update", false, "record the histories of testdata anew, on the server of TERRACE_TEST_TEMPORAL")

// recordedKey is the key with which the recorded histories are sealed.
var recordedKey = base64.StdEncoding.EncodeToString([]byte("kept histories: not a secret key"))

// secret occurs in the values of the recorded runs, and must not be readable in their histories.
const secret = "planted-secret-value"

// recorded describes a recorded run.
type recorded struct {
	name   string
	in     flow.Input
	fails  map[string]bool // units
	asks   map[string]bool // units whose first turn asks for approval
	answer bool
	cancel bool // the run is canceled while a unit waits for that
}

func recordedRuns() []recorded {
	layers := func(n int) (out []schedule.Task) {
		for i := range n {
			t := schedule.Task{Name: fmt.Sprintf("u%02d", i)}
			if i >= 3 {
				t.Needs = []int{i - 3}
			}
			out = append(out, t)
		}
		return out
	}
	job := remote.Job{Format: remote.JobFormat, ID: "recorded", Op: "plan", Request: request.Request{Command: "plan", Operation: request.Operation{Parallelism: 10}}, Env: []string{"TF_VAR_password=" + secret}}
	return []recorded{
		{name: "layers", in: flow.Input{Job: job, Tasks: layers(12)}},
		{name: "placed", in: flow.Input{Job: job, Tasks: layers(9), Places: 4, Limits: map[string]int{"QUEUE": 2}, Memory: map[string]int{"u01": 300}}},
		{name: "failed", in: flow.Input{Job: job, Tasks: layers(12)}, fails: map[string]bool{"u01": true}},
		{name: "failfast", in: flow.Input{Job: job, Tasks: layers(12), Rules: schedule.Rules{FailFast: true}, Places: 1}, fails: map[string]bool{"u01": true}},
		{name: "asked", in: flow.Input{Job: job, Tasks: layers(6)}, asks: map[string]bool{"u04": true}, answer: true},
		{name: "refused", in: flow.Input{Job: job, Tasks: layers(9)}, asks: map[string]bool{"u04": true}},
		{name: "continued", in: flow.Input{Job: job, Tasks: layers(30), History: 60}},
		{name: "canceled", in: flow.Input{Job: job, Tasks: layers(9), Places: 2}, cancel: true},
	}
}

// TestReplay replays histories that an earlier build of the workflow recorded. The workflow must
// make the same decisions, since a run may continue on workers of the same version that were
// built later. Any other change needs a new version of the program, whose workers do not receive
// these runs. -update records the histories again. Use it only together with a new name of the
// workflow, or before a first release.
func TestReplay(t *testing.T) {
	sealer, err := remote.NewSealer(recordedKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordedRuns() {
		t.Run(r.name, func(t *testing.T) {
			pattern := filepath.Join("testdata", "histories", r.name+"-*.json")
			if *update {
				r.record(t, sealer)
			}
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				t.Fatalf("no histories %s: %v", pattern, err)
			}
			for _, path := range files {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:20]} {
					if strings.Contains(string(text), form) {
						t.Errorf("%s holds a secret in the clear", path)
					}
				}
				var h historypb.History
				if err := protojson.Unmarshal(text, &h); err != nil {
					t.Fatal(err)
				}
				replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: connect.Converter(sealer)})
				if err != nil {
					t.Fatal(err)
				}
				replayer.RegisterWorkflowWithOptions(flow.Workflow, workflow.RegisterOptions{Name: flow.Name})
				if err := replayer.ReplayWorkflowHistory(nil, &h); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

// dial connects to the server of the tests, or skips the test.
func dial(t *testing.T, sealer *remote.Sealer) client.Client {
	t.Helper()
	at := os.Getenv("TERRACE_TEST_TEMPORAL")
	if at == "" {
		t.Skip("SKIP: TERRACE_TEST_TEMPORAL names no Temporal server (HOST:PORT/NAMESPACE)")
	}
	address, namespace, _ := strings.Cut(at, "/")
	c, err := connect.Dial(t.Context(), connect.Settings{Address: address, Namespace: namespace, Identity: "recorder", Env: sys.Env{}, Log: os.Stderr}, sealer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// record executes the run and writes its histories to files.
func (r *recorded) record(t *testing.T, sealer *remote.Sealer) {
	c := dial(t, sealer)
	ctx := t.Context()
	queue := "record-" + r.name
	if n, ok := r.in.Limits["QUEUE"]; ok {
		r.in.Limits = map[string]int{queue: n}
	}
	w := worker.New(c, queue, worker.Options{DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(flow.Workflow, workflow.RegisterOptions{Name: flow.Name})
	begun := make(chan struct{}, 100)
	w.RegisterActivityWithOptions(func(ctx context.Context, _ remote.Job, turn remote.Turn) (*remote.Done, error) {
		done := &remote.Done{Outputs: &remote.Ref{Text: []byte(secret)}, Report: remote.Ref{Text: []byte(secret)}}
		switch {
		case r.fails[turn.Unit]:
			done.Outcome = schedule.Failed
		case r.asks[turn.Unit] && turn.Number == 1:
			done.Asks = true
		case r.cancel && turn.Unit == "u01":
			begun <- struct{}{}
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx, "waiting")
				time.Sleep(100 * time.Millisecond)
			}
			return nil, temporal.NewCanceledError()
		}
		return done, nil
	}, activity.RegisterOptions{Name: "plan"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	r.in.Heartbeat = 2 * time.Second
	id := fmt.Sprintf("record-%s-%d", r.name, time.Now().UnixNano())
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, flow.Name, r.in)
	if err != nil {
		t.Fatal(err)
	}
	first := run.GetRunID()
	if len(r.asks) > 0 {
		time.Sleep(3 * time.Second) // until the run is idle
		if err := c.SignalWorkflow(ctx, id, "", flow.AnswerSignal, r.answer); err != nil {
			t.Fatal(err)
		}
	}
	if r.cancel {
		<-begun
		if err := c.CancelWorkflow(ctx, id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.Get(ctx, nil); (err != nil) != r.cancel {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata/histories", 0o755); err != nil {
		t.Fatal(err)
	}
	for n, next := 1, first; next != ""; n++ {
		var h historypb.History
		it := c.GetWorkflowHistory(ctx, id, next, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for next = ""; it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, e)
			if more := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); more != nil {
				next = more.GetNewExecutionRunId()
			}
		}
		text, err := protojson.Marshal(&h)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("testdata/histories/%s-%d.json", r.name, n), append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
