// Package follow starts runs on a Temporal server and reports their progress.
//
// Main type: Follower. The one rule: all reports come from the history of the run, so that a
// client that connects later receives them too.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// A Follower reports the progress of one run.
type Follower struct {
	Client client.Client
	Data   converter.DataConverter
	// Failures decodes the errors of turns.
	Failures converter.FailureConverter
	Blobs    *remote.Blobs
	// Once means that only the existing history is reported, without waiting for more.
	Once bool
	// Tell receives the reports. It is not called concurrently.
	Tell func(remote.Message) error

	id      string
	version string // version of the program that started the run
	tasks   []schedule.Task

	telling sync.Mutex
	begun   map[string]bool // units whose start was reported
	over    map[string]bool
	queues  map[string]bool // queues of the run
	noted   map[string]bool // keys of notes that were reported

	units  map[int64]string // units of turns, by the ID of the event that scheduled the turn
	asking []remote.Message // turns that wait for an answer that was not requested yet
	idle   bool
}

// Options configures a new run.
type Options struct {
	Version   string // version of the program
	Heartbeat time.Duration
	History   int
}

// Start starts a run and returns its ID.
func Start(ctx context.Context, c client.Client, queue string, b *remote.Blobs, s *remote.Start, o Options) (id string, err error) {
	job := s.Job
	job.Version = o.Version
	job.ID = "terrace-" + job.Op + "-" + nameOf(job) + "-" + store.NewID()[:8]
	if !s.InPlace {
		if job.Tree, err = b.PutTree(ctx, job.Root); err != nil {
			return "", err
		}
		if job.Commits, err = putCommits(ctx, b, s); err != nil {
			return "", err
		}
	}
	if s.Approved != nil {
		ref, err := b.Put(ctx, s.Approved)
		if err != nil {
			return "", err
		}
		job.Approved = &ref
	}
	queues, limits := map[string]string{}, map[string]int{}
	for unit, q := range s.Queues {
		queues[unit] = b.Sealer.Queue(q, o.Version)
	}
	for q, n := range s.Turns {
		limits[b.Sealer.Queue(q, o.Version)] = n
	}
	in := flow.Input{Job: job, Tasks: s.Tasks, Rules: s.Rules, Places: s.Places, Heartbeat: o.Heartbeat, History: o.History, Queues: queues, Limits: limits, Memory: s.Memory}
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: job.ID, TaskQueue: queue}, flow.Name, in)
	if err != nil {
		return started(ctx, c, job.ID, err)
	}
	return job.ID, nil
}

// started determines whether a run exists although starting it failed, since the engine's answer
// may have been lost. A run that no client follows would block the next one.
func started(ctx context.Context, c client.Client, id string, failed error) (string, error) {
	if refused(failed) {
		return "", failed
	}
	var err error
	for range 10 {
		_, err = c.DescribeWorkflowExecution(ctx, id, "")
		var none *serviceerror.NotFound
		switch {
		case err == nil:
			return id, nil
		case errors.As(err, &none):
			return "", fmt.Errorf("the run cannot be begun: %w", failed)
		}
		t := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		if t.Stop(); ctx.Err() != nil {
			break
		}
	}
	return "", fmt.Errorf("the server answers no more, and it is not known whether it has the run: look for %s with \"run --on … list\" (%w)", id, failed)
}

// refused reports whether an error means that the engine rejected the request.
func refused(err error) bool {
	var namespace *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &namespace) || errors.As(err, &denied) || errors.As(err, &invalid)
}

// putCommits stores git's answers about commits, and the files of these commits, in the blob
// store.
func putCommits(ctx context.Context, b *remote.Blobs, s *remote.Start) (*remote.Ref, error) {
	said := s.Commits
	if said == nil {
		return nil, nil
	}
	said.Trees = map[string]string{}
	for _, ref := range slices.Sorted(maps.Keys(s.Checkouts)) {
		tree, err := b.PutTree(ctx, s.Checkouts[ref])
		if err != nil {
			return nil, err
		}
		said.Trees[ref] = tree
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	ref, err := b.PutSmall(ctx, text)
	return &ref, err
}

// nameOf returns a short name of a job's directory, for its ID.
func nameOf(job remote.Job) string {
	name := path.Base(path.Join(filepath.ToSlash(job.Root), job.Dir))
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
}

// Follow reports a run until it has ended or ctx ends.
func (f *Follower) Follow(ctx context.Context, id string) error {
	f.id = id
	f.begun, f.over, f.noted = map[string]bool{}, map[string]bool{}, map[string]bool{}
	watching, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { f.watch(watching) })
	first, err := f.first(ctx)
	if err != nil {
		return err
	}
	for run := first; run != ""; {
		if run, err = f.history(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// first returns the ID of the first execution of the run. Others may follow it.
func (f *Follower) first(ctx context.Context) (string, error) {
	d, err := f.Client.DescribeWorkflowExecution(ctx, f.id, "")
	if err != nil {
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return "", noRun(f.id)
		}
		return "", err
	}
	info := d.GetWorkflowExecutionInfo()
	if first := info.GetFirstRunId(); first != "" {
		return first, nil
	}
	return info.GetExecution().GetRunId(), nil
}

// history reports the history of an execution, and returns the ID of the execution that follows
// it, or "".
func (f *Follower) history(ctx context.Context, run string) (next string, err error) {
	f.units = map[int64]string{}
	last := int64(0)
	for wait := false; ; wait = true { // the existing events first
		it := f.Client.GetWorkflowHistory(ctx, f.id, run, wait, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			if err != nil {
				if ctx.Err() != nil {
					return "", ctx.Err()
				}
				if err := f.pause(ctx, err); err != nil {
					return "", err
				}
				break
			}
			if e.GetEventId() <= last {
				continue
			}
			last = e.GetEventId()
			next, over, err := f.event(ctx, e)
			if err != nil || over {
				return next, err
			}
			if wait {
				if err := f.ask(); err != nil {
					return "", err
				}
			}
		}
		if f.Once {
			return "", nil
		}
		if err := f.ask(); err != nil {
			return "", err
		}
	}
}

// pause waits before a failed request to the server is repeated.
func (f *Follower) pause(ctx context.Context, failed error) error {
	var gone *serviceerror.NotFound
	if errors.As(failed, &gone) {
		return fmt.Errorf("the history of the run %s is gone", f.id)
	}
	f.note("server", "The server does not answer: "+failed.Error()+". It is asked again.")
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ask reports that the run waits for an answer, if it does.
func (f *Follower) ask() error {
	if !f.idle {
		return nil
	}
	f.idle = false
	for _, m := range f.asking {
		if err := f.tell(m); err != nil {
			return err
		}
	}
	f.asking = nil
	return f.tell(remote.Message{Idle: true})
}

func (f *Follower) tell(m remote.Message) error {
	f.telling.Lock()
	defer f.telling.Unlock()
	return f.Tell(m)
}

// note reports a text once per key.
func (f *Follower) note(key, text string) {
	f.telling.Lock()
	defer f.telling.Unlock()
	if !f.noted[key] {
		f.noted[key] = true
		_ = f.Tell(remote.Message{Note: text})
	}
}

// event reports an event of the history. over means that the execution has ended.
func (f *Follower) event(ctx context.Context, e *historypb.HistoryEvent) (next string, over bool, err error) {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in flow.Input
		a := e.GetWorkflowExecutionStartedEventAttributes()
		if err := f.Data.FromPayloads(a.GetInput(), &in); err != nil {
			return "", false, fmt.Errorf("the run %s cannot be read: %w", f.id, err)
		}
		f.telling.Lock()
		f.version = in.Job.Version
		f.queues = map[string]bool{a.GetTaskQueue().GetName(): true}
		for _, q := range in.Queues {
			f.queues[q] = true
		}
		f.telling.Unlock()
		if f.tasks == nil {
			f.tasks = in.Tasks
			return "", false, f.tell(remote.Message{Job: &in.Job, Tasks: in.Tasks, Rules: &in.Rules})
		}
	case enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		f.stuck(e.GetWorkflowTaskFailedEventAttributes())
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		f.units[e.GetEventId()] = flow.UnitOf(e.GetActivityTaskScheduledEventAttributes().GetActivityId())
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		return "", false, f.ended(ctx, f.units[a.GetScheduledEventId()], e.GetEventTime().AsTime(), a.GetResult())
	case enums.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		return "", false, f.lost(f.units[a.GetScheduledEventId()], f.text(a.GetFailure()), schedule.Failed)
	case enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		return "", false, f.lost(f.units[a.GetScheduledEventId()], "no worker brought its turn to an end: "+f.text(a.GetFailure()), schedule.Failed)
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		return "", false, f.lost(f.units[a.GetScheduledEventId()], "the run was interrupted", schedule.NotRun)
	case enums.EVENT_TYPE_MARKER_RECORDED:
		return "", false, f.marker(e.GetMarkerRecordedEventAttributes().GetDetails()["data"])
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		if a.GetSignalName() == flow.AnswerSignal {
			return "", false, f.answered(a.GetInput())
		}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(), true, nil
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return "", true, nil
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return "", true, errors.New(f.text(e.GetWorkflowExecutionFailedEventAttributes().GetFailure()))
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		if e.GetWorkflowExecutionTerminatedEventAttributes().GetReason() == untouched {
			return "", true, errors.New("it was " + untouched + ", so that nothing was done")
		}
		return "", true, errors.New("somebody terminated it; what units were doing then may still go on for a while")
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return "", true, errors.New("it took longer than the server lets it")
	}
	return "", false, nil
}

// stuck reports why a worker could not continue the workflow. The engine retries with other
// workers until one can. A worker of another version may make decisions that differ from the
// history.
func (f *Follower) stuck(a *historypb.WorkflowTaskFailedEventAttributes) {
	text := fmt.Sprintf("The worker %s could not go on with the run: %s.", a.GetIdentity(), strings.TrimSuffix(f.text(a.GetFailure()), "."))
	switch a.GetCause() {
	case enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND:
		return // the engine schedules these again itself
	case enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
		text += " It is of another version than the one that the run was begun with: start a worker of that version, or cancel the run and begin it again."
	default:
		text += " Workers are asked again."
	}
	f.note("stuck "+text, text)
}

// ended reports the result of a turn.
func (f *Follower) ended(ctx context.Context, unit string, at time.Time, result *commonpb.Payloads) error {
	var done remote.Done
	if err := f.Data.FromPayloads(result, &done); err != nil {
		return fmt.Errorf("what came of the unit %s cannot be read: %w", unit, err)
	}
	text, err := f.Blobs.Get(ctx, done.Report)
	if err != nil {
		return err
	}
	m := remote.Message{Ended: &remote.Ended{Unit: unit, At: at, Outcome: done.Outcome, Asks: done.Asks, Report: text}}
	if done.Asks {
		f.asking = append(f.asking, m)
		return nil
	}
	f.setOver(unit)
	return f.tell(m)
}

func (f *Follower) setOver(unit string) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.over[unit] = true
}

func (f *Follower) lost(unit, why string, out schedule.Outcome) error {
	f.setOver(unit)
	return f.tell(remote.Message{Ended: &remote.Ended{Unit: unit, Outcome: out, Lost: why}})
}

// marker reports data that the workflow recorded.
func (f *Follower) marker(data *commonpb.Payloads) error {
	var noted flow.Noted
	if err := f.Data.FromPayloads(data, &noted); err != nil {
		return fmt.Errorf("the run %s cannot be read: %w", f.id, err)
	}
	for _, r := range noted.Refused {
		f.setOver(r.Unit)
		if err := f.tell(remote.Message{Refused: &r}); err != nil {
			return err
		}
	}
	f.idle = f.idle || noted.Idle
	return nil
}

// answered records that the user has already answered.
func (f *Follower) answered(input *commonpb.Payloads) error {
	var yes bool
	if err := f.Data.FromPayloads(input, &yes); err != nil {
		return err
	}
	asking := f.asking
	f.asking, f.idle = nil, false
	if yes {
		return nil
	}
	for _, m := range asking {
		if err := f.lost(m.Ended.Unit, "what had been deferred was not approved", schedule.NotRun); err != nil {
			return err
		}
	}
	return nil
}

// text returns the message of a failure.
func (f *Follower) text(x *failurepb.Failure) string {
	if x == nil {
		return "no reason was given"
	}
	err := f.Failures.FailureToError(x)
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return strings.TrimSpace(err.Error())
}

// watch reports running turns, which the history does not contain, until the context ends.
func (f *Follower) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d, err := f.Client.DescribeWorkflowExecution(ctx, f.id, "")
		if err != nil {
			continue
		}
		for _, a := range d.GetPendingActivities() {
			unit := flow.UnitOf(a.GetActivityId())
			if why := a.GetLastFailure(); why != nil && a.GetAttempt() > 1 {
				f.note(fmt.Sprint(unit, a.GetAttempt()), fmt.Sprintf("[%s] attempt %d on %s ended: %s. It is tried again.", unit, a.GetAttempt()-1, a.GetLastWorkerIdentity(), f.text(why)))
			}
			if a.GetState() != enums.PENDING_ACTIVITY_STATE_STARTED {
				continue
			}
			f.doing(unit, a.GetHeartbeatDetails())
		}
		if n == 3 || n%30 == 0 {
			f.workers(ctx)
		}
	}
}

// doing reports that a unit has started, and its current step.
func (f *Follower) doing(unit string, details *commonpb.Payloads) {
	f.telling.Lock()
	defer f.telling.Unlock()
	if f.over[unit] {
		return
	}
	if !f.begun[unit] {
		f.begun[unit] = true
		_ = f.Tell(remote.Message{Begun: &unit})
	}
	var line string
	if f.Data.FromPayloads(details, &line) == nil && line != "" {
		_ = f.Tell(remote.Message{Activity: &remote.Activity{Unit: unit, Text: line}})
	}
}

// workers reports queues without workers.
func (f *Follower) workers(ctx context.Context) {
	f.telling.Lock()
	queues, version := slices.Sorted(maps.Keys(f.queues)), f.version
	f.telling.Unlock()
	for _, q := range queues {
		d, err := f.Client.DescribeTaskQueue(ctx, q, enums.TASK_QUEUE_TYPE_ACTIVITY)
		if err == nil && len(d.GetPollers()) == 0 {
			f.note("workers "+q, f.nobody(q, version))
		}
	}
}

// nobody returns the message that a queue of the engine has no worker. version is the version of
// the run.
func (f *Follower) nobody(queue, version string) string {
	name, ok := f.Blobs.Sealer.QueueName(queue, version)
	if !ok {
		return fmt.Sprintf("No worker takes turns from %s, as an earlier version called the queue of this run. Workers of this version do not take them: start one of that version, or terminate the run on the server and begin it again.", queue)
	}
	return fmt.Sprintf("No worker of version %s with the key of %s takes turns from the queue %s. Start one: terrace worker --temporal … --queue %s", version, remote.KeyVariable, name, name)
}

// List writes at most most runs of the server, the latest first.
func List(ctx context.Context, c client.Client, namespace string, out io.Writer, most int) error {
	for n, token := 0, []byte(nil); ; {
		page, err := c.ListWorkflow(ctx, listRequest(namespace, token))
		if err != nil {
			return err
		}
		for _, x := range page.GetExecutions() {
			if x.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				continue
			}
			if n++; n > most {
				return nil
			}
			fmt.Fprintf(out, "%s  %-10s  %s\n", x.GetStartTime().AsTime().UTC().Format(time.RFC3339), strings.ToLower(x.GetStatus().String()), x.GetExecution().GetWorkflowId())
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}
