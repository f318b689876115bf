package flow

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names in the engine.
const (
	Name         = "terrace-run" // name of the workflow
	AnswerSignal = "answer"      // a bool that approves deferred actions
)

// Input is the input of the workflow.
type Input struct {
	Job       remote.Job        `json:"job"`
	Tasks     []schedule.Task   `json:"tasks"`
	Rules     schedule.Rules    `json:"rules"`
	Places    int               `json:"places,omitempty"`    // maximum number of concurrent turns; 0 means the maximum of the engine
	Heartbeat time.Duration     `json:"heartbeat,omitempty"` // timeout for heartbeats of workers; 0 means DefaultHeartbeat
	History   int               `json:"history,omitempty"`   // number of events after which a new history begins; 0 means DefaultHistory
	Queues    map[string]string `json:"queues,omitempty"`    // queues of units that do not use the workflow's
	Limits    map[string]int    `json:"limits,omitempty"`    // maximum number of concurrent turns, by queue
	Memory    map[string]int    `json:"memory,omitempty"`    // memory of turns in MiB, by unit

	// Data of the histories before this one:
	Before  []TaskResult       `json:"before,omitempty"`
	Outputs map[int]remote.Ref `json:"outputs,omitempty"`
	Turns   map[int]int        `json:"turns,omitempty"` // number of turns of units that asked
}

// UnmarshalJSON implements json.Unmarshaler. Unknown fields are an error: the run would do
// something else than its client requested.
func (in *Input) UnmarshalJSON(text []byte) error {
	type fields Input
	return remote.Strictly(text, (*fields)(in), "run")
}

// Defaults of Input, and limits.
const (
	DefaultHeartbeat = 30 * time.Second
	DefaultHistory   = 8000 // the engine warns at 10,240 and ends a workflow at 51,200
	mostPlaces       = 500  // the engine allows 2,000 concurrent activities
)

// Noted contains data that the workflow records in its history for clients that follow it.
type Noted struct {
	Refused []remote.RefusedUnit `json:"refused,omitempty"`
	Idle    bool                 `json:"idle,omitempty"` // the run waits for an answer
}

// run is one execution of the workflow.
type run struct {
	in    Input
	ctx   workflow.Context // context of activities; it ends when the run is canceled
	noted Noted
	past  []TaskResult
	left  []int          // number of dependent tasks that have not ended, by task
	busy  map[string]int // number of running turns, by queue
}

// Workflow runs the units of an estate.
func Workflow(ctx workflow.Context, in Input) error {
	w := &run{in: in, past: slices.Clone(in.Before), busy: map[string]int{}}
	if w.in.Outputs == nil {
		w.in.Outputs = map[int]remote.Ref{}
	}
	if w.in.Turns == nil {
		w.in.Turns = map[int]int{}
	}
	w.left = make([]int, len(in.Tasks))
	for _, t := range in.Tasks {
		for _, n := range t.Needs {
			w.left[n]++
		}
	}
	for _, e := range in.Before {
		w.settle(e.Task)
	}
	if in.Heartbeat == 0 {
		in.Heartbeat = DefaultHeartbeat
	}
	if in.History == 0 {
		in.History = DefaultHistory
	}
	w.ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * 24 * time.Hour, HeartbeatTimeout: in.Heartbeat, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: mostAttempts},
	})
	places := mostPlaces
	if in.Places > 0 {
		places = min(in.Places, mostPlaces)
	}
	s := &Scheduler{
		Places: places, Turn: w.turn, Ended: w.ended, Room: w.room, Filled: w.tell, Idle: w.idle,
		Refused: func(i int, why schedule.Refusal) {
			w.noted.Refused = append(w.noted.Refused, remote.RefusedUnit{Unit: in.Tasks[i].Name, Why: why})
			w.note(i, schedule.NotRun)
		},
		Pausing: func() bool {
			info := workflow.GetInfo(ctx)
			return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > in.History
		},
	}
	over := s.Begin(in.Tasks, in.Rules, in.Before).Run(ctx, func() bool { return ctx.Err() != nil })
	if over {
		return ctx.Err()
	}
	w.in.Before = w.past
	return workflow.NewContinueAsNewError(ctx, Name, w.in)
}

// mostAttempts is the maximum number of times that a turn is given to a worker that does not
// return its result.
const mostAttempts = 100

// note records the result of a task.
func (w *run) note(i int, out schedule.Outcome) {
	w.past = append(w.past, TaskResult{Task: i, Outcome: out})
	w.settle(i)
}

// settle drops outputs that no remaining task needs.
func (w *run) settle(i int) {
	for _, n := range w.in.Tasks[i].Needs {
		if w.left[n]--; w.left[n] == 0 {
			delete(w.in.Outputs, n)
		}
	}
}

// ActivityID returns the ID of a turn of a unit: the unit's name, followed by "#" and the number
// if it is a later turn or if the name contains "#".
func ActivityID(unit string, number int) string {
	if number == 1 && !strings.Contains(unit, "#") {
		return unit
	}
	return unit + "#" + strconv.Itoa(number)
}

// UnitOf returns the unit of the activity with an ID.
func UnitOf(id string) string {
	if i := strings.LastIndexByte(id, '#'); i >= 0 {
		return id[:i]
	}
	return id
}

// queue returns the queue of a unit.
func (w *run) queue(i int) string {
	if q := w.in.Queues[w.in.Tasks[i].Name]; q != "" {
		return q
	}
	return workflow.GetInfo(w.ctx).TaskQueueName
}

// room reports whether the queue of a unit allows another turn.
func (w *run) room(i int) bool {
	q := w.queue(i)
	most := w.in.Limits[q]
	return most == 0 || w.busy[q] < most
}

func (w *run) turn(i int) workflow.Future {
	t := w.in.Tasks[i]
	q := w.queue(i)
	w.busy[q]++
	w.in.Turns[i]++
	in := remote.Turn{Unit: t.Name, Number: w.in.Turns[i], Yes: w.in.Turns[i] > 1, Memory: w.in.Memory[t.Name], Needs: map[string]remote.Ref{}}
	for _, n := range t.Needs {
		if r, ok := w.in.Outputs[n]; ok {
			in.Needs[w.in.Tasks[n].Name] = r
		}
	}
	o := workflow.GetActivityOptions(w.ctx)
	o.ActivityID = ActivityID(t.Name, in.Number)
	o.TaskQueue = q
	return workflow.ExecuteActivity(workflow.WithActivityOptions(w.ctx, o), w.in.Job.Op, w.in.Job, in)
}

func (w *run) ended(i int, f workflow.Future) (schedule.Outcome, bool) {
	w.busy[w.queue(i)]--
	var done remote.Done
	out := schedule.Failed
	switch err := f.Get(w.ctx, &done); {
	case err == nil && done.Asks:
		return schedule.NotRun, true
	case err == nil:
		out = done.Outcome
		if done.Outputs != nil && w.left[i] > 0 {
			w.in.Outputs[i] = *done.Outputs
		}
		delete(w.in.Turns, i)
	case temporal.IsCanceledError(err):
		out = schedule.NotRun
	}
	w.note(i, out)
	return out, false
}

// tell records refused units and waiting in the history.
func (w *run) tell() {
	if len(w.noted.Refused) == 0 && !w.noted.Idle {
		return
	}
	noted := w.noted
	w.noted = Noted{}
	workflow.SideEffect(w.ctx, func(workflow.Context) any { return noted })
}

// idle waits for the user's answer and returns it.
func (w *run) idle(ctx workflow.Context, asking []int) (yes bool) {
	w.noted.Idle = true
	w.tell()
	sel := workflow.NewSelector(ctx)
	sel.AddReceive(workflow.GetSignalChannel(ctx, AnswerSignal), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &yes) })
	sel.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	sel.Select(ctx)
	if !yes {
		for _, i := range asking {
			w.note(i, schedule.NotRun)
		}
	}
	return yes
}
