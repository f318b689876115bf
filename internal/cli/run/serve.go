package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// # Units run for another process
//
// A worker opens the estate with the options of the client, a request.Request. Then it waits for
// requests to run a unit, and it collects the output of the unit for the client. So the same code
// opens, plans, applies and prints a unit, locally and on a worker.

// served is an estate whose units run at the request of another process. It is the scheduler
// of the run.
type served struct {
	r     *estateRun
	s     *remote.Session
	op    estate.Op
	made  *outputs.Computed
	tasks []schedule.Task

	asking sync.Mutex // ensures that one unit at a time asks for approval

	mu    sync.Mutex
	views map[string]*turnView // views of units that run, by the name of the unit
}

// turnView collects the output of one run of a unit.
type turnView struct {
	r       *estateRun // a copy of the served run, with its own streams
	observe estate.Observer
	yes     bool // the user has approved deferred changes
	asked   bool // there are deferred changes that the user has not approved yet
	tell    func(line string)
	result  *estate.Result

	mu     sync.Mutex
	chunks []remote.Chunk
}

// serve runs units on request until the session ends.
func (r *estateRun) serve(ctx context.Context) int {
	s := r.Serving
	r.op.Plan.Was = s.Job.Was
	r.halt = halt{stop: s.Stop, asking: ctx}
	x := &served{r: r, s: s, op: estate.Op(s.Job.Op), made: &outputs.Computed{}, views: map[string]*turnView{}}
	o, ds := r.options(x.op)
	if ds.HasErrors() {
		return r.Fail(ds)
	}
	if s.Approved != nil {
		p, err := saved.Read(strings.NewReader(string(s.Approved)), int64(len(s.Approved)), release.Version)
		if err != nil {
			return r.Fail(workdir.PlanFileError("of the run", err))
		}
		o.Approved = p.Approvals()
	}
	if s.Job.Calls > 0 {
		o.Limits.Most = s.Job.Calls
	}
	o.Limits.CountPerEngine, o.Limits.Of = true, map[addr.Provider]int{}
	for source, calls := range s.Job.CallsOf {
		a, err := addr.ParseProvider(source)
		if err != nil {
			return r.Fail(diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The run limits the calls of a provider %q: %s.", source, diag.Reason(err)))
		}
		o.Limits.Of[a] = calls
	}
	if r.kept.Wanted() || s.Job.Save {
		o.Saving = r.kept.Saving
		o.Saving.Readings = !r.kept.Wanted() // the run will apply the plan next, so the readings can be reused
	}
	if s.Job.Asks {
		o.Approver = servedApprover{x, ctx}
	}
	o.Scheduler, o.Computed, o.Observe, o.DropPlans = x, x.made, servedObserver{served: x}, true
	r.estate.Run(ctx, o)
	return 0
}

// Run implements schedule.Scheduler. The client decides the order.
func (x *served) Run(ctx context.Context, tasks []schedule.Task, _ schedule.Rules, work schedule.Work) {
	x.tasks = tasks
	index := make(map[string]int, len(tasks))
	for i, t := range tasks {
		index[t.Name] = i
	}
	x.s.Serve(ctx, func(q *remote.Request) (*remote.Done, error) {
		i, ok := index[q.Unit]
		if !ok {
			return nil, fmt.Errorf("the files that this worker has hold no unit %s", q.Unit)
		}
		return x.turn(telemetry.Below(q.Ctx, ctx), i, q, work)
	})
}

func (x *served) turn(ctx context.Context, i int, q *remote.Request, work schedule.Work) (*remote.Done, error) {
	for name, ref := range q.Needs {
		n := x.unit(name)
		if n == nil {
			continue
		}
		text, err := x.s.Blobs.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		v, err := remote.DecodeOutputs(text)
		if err != nil {
			return nil, err
		}
		x.made.Set(n.ID, v)
	}
	v := x.newView(q)
	out := work.Turn(ctx, i, func(note func(resume func())) {
		x.asking.Lock()
		defer x.asking.Unlock()
		resumed := make(chan struct{})
		note(func() { close(resumed) })
		work.Idle(ctx) // calls ask for this unit alone
		<-resumed
	})
	if q.Lease != nil {
		if err := q.Lease.Held(); err != nil {
			return nil, fmt.Errorf("what came of the turn does not count: %w", err)
		}
		if v.result != nil && heldByEarlier(v.result.Diags, q.Lease) {
			return nil, errors.New("an earlier attempt at the turn, which was given up, still has the lock of the state; the turn is tried again")
		}
	}
	done := &remote.Done{Outcome: out, Asks: v.asked}
	if made, ok := x.made.Get(x.r.estate.Found.Units[i].ID); ok && !v.asked {
		text, err := remote.EncodeOutputs(made)
		if err != nil {
			return nil, err
		}
		ref, err := x.s.Blobs.PutSmall(ctx, text)
		if err != nil {
			return nil, err
		}
		done.Outputs = &ref
	}
	report, err := x.report(v)
	if err != nil {
		return nil, err
	}
	done.Report, err = x.s.Blobs.Put(ctx, report)
	return done, err
}

// heldByEarlier reports whether a unit failed because an earlier attempt at the same unit has
// the lock and the lock cannot be taken over. For example, a file lock lasts as long as the
// process of that attempt.
func heldByEarlier(ds diag.List, t *statemgr.Lease) bool {
	for _, m := range ds {
		if holder, ok := m.Extra.(*store.LockInfo); ok && holder != nil && t.Succeeds(*holder) {
			return true
		}
	}
	return false
}

func (x *served) unit(name string) *estate.Unit {
	for _, u := range x.r.estate.Found.Units {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// servedApprover answers the question of one unit. If the user has not approved the deferred
// changes yet, the unit's run ends. The client requests the unit again after approval.
type servedApprover struct {
	*served
	ctx context.Context
}

func (x servedApprover) Deferred(u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	v := x.view(u.Name)
	v.r.shown.summary.Folds.Add(u.Name, view.ShowCauses(v.style(), view.Pieces(v.style(), p, project.NewSchemas(x.ctx, e), x.r.op.Reveal), x.r.op.Plan.Causes))
	if x.r.op.Plan.Causes {
		v.r.shown.summary.Folds.AddOrigins(u.Name, view.AllOrigins(p))
	}
}

func (x servedApprover) Approve(wave []*estate.Result) bool {
	v := x.view(wave[0].Unit.Name)
	if !v.yes {
		v.asked = true
		res := *wave[0]
		v.result = &res
	}
	return v.yes
}

// report returns the encoded report of a unit for the client.
func (x *served) report(v *turnView) ([]byte, error) {
	if v.result == nil {
		return nil, errors.New("the turn ended without a result")
	}
	name := v.result.Unit.Name
	out := remote.Report{Result: remote.ResultOf(v.result), Errors: v.r.errorText(v.result)}
	v.mu.Lock()
	out.Chunks = v.chunks
	v.mu.Unlock()
	for _, m := range v.r.Report.Filter(v.result.Diags) {
		if repeatable(m) {
			w := remote.Warning{Code: m.Code, Title: m.Summary, Text: m.Detail, Address: m.Address}
			if v.r.Report.Human != nil {
				w.Printed = v.r.reporter(x.op).printed(v.result, m)
			}
			out.Warnings = append(out.Warnings, w)
		}
	}
	var err error
	if pieces := v.r.shown.summary.Folds.Of(name); len(pieces) > 0 {
		out.Pieces, err = json.Marshal(pieces)
	}
	if origins := v.r.shown.summary.Folds.OriginsOf(name); len(origins) > 0 && err == nil {
		out.Origins, err = json.Marshal(origins)
	}
	if page, ok := v.r.page.Unit(name); ok && err == nil && x.r.page.Writes() {
		out.Page, err = json.Marshal(page)
	}
	if err == nil && (x.r.kept.Wanted() || x.s.Job.Save) {
		out.Plan, err = x.r.kept.Saving.Export(name, release.Version)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(out)
	if root := x.s.Local; root != "" && root != x.s.Job.Root { // show the paths of the client
		text = []byte(strings.ReplaceAll(string(text), root, x.s.Job.Root))
	}
	return text, err
}

// repeatable reports whether a warning may be printed once for all units that report it.
func repeatable(m *diag.Message) bool {
	return m.Severity == diag.Warning && !m.Alone
}

func (x *served) view(unit string) *turnView {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.views[unit]
}

// newView returns the view for a new run of a unit, and registers it.
func (x *served) newView(q *remote.Request) *turnView {
	r, job := x.r, x.s.Job
	v := &turnView{yes: q.Yes, tell: q.Tell}
	c := r.Call.Below(r.Dir)
	c.Command, c.Serving = r.Command, r.Serving
	v.r = r.below(c)
	c.Report.Out = v.to(remote.Stdout)
	c.Report.Open()
	human := c.Report.Human
	human.Errs, human.Style = v.to(remote.Stderr), view.Style{Color: job.Color, Width: job.Width, Names: c.Report.Names}
	human.Printer.Color, human.Printer.Width = job.Color, job.Width
	if r.op.Json.On || r.op.Json.Into != "" {
		c.Report.Stream = &view.Stream{Out: v.to(remote.Events), Now: r.Now, Messages: view.JSONMessages(r.estate.Sources(), c.Report.Names), Version: config.LanguageVersion}
		if r.op.Json.On {
			c.Report.Human = nil
		}
	}
	if x.op == estate.Apply {
		c.Report.Applying()
	}
	v.observe = v.r.reporter(x.op).observer(q.Ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.views[q.Unit] = v
	return v
}

// style returns the style of plans that fits the client's terminal.
func (v *turnView) style() view.Style {
	job := v.r.Serving.Job
	return view.Style{Color: job.Color, Width: job.Width, Names: v.r.Report.Names}
}

// to returns a writer for one of the client's streams.
func (v *turnView) to(s remote.Stream) io.Writer { return chunkWriter{v, s} }

type chunkWriter struct {
	v  *turnView
	to remote.Stream
}

func (w chunkWriter) Write(b []byte) (int, error) {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	if n := len(w.v.chunks); n > 0 && w.v.chunks[n-1].To == w.to && len(w.v.chunks[n-1].Text) < 4<<10 {
		w.v.chunks[n-1].Text += string(b)
	} else {
		w.v.chunks = append(w.v.chunks, remote.Chunk{To: w.to, Text: string(b)})
	}
	if line := strings.TrimSpace(string(b)); w.to != remote.Events && line != "" && w.v.tell != nil {
		w.v.tell(line)
	}
	return len(b), nil
}

// servedObserver passes each event to the view of its unit.
type servedObserver struct {
	estate.Silent
	*served
}

func (x servedObserver) Started(u *estate.Unit) { x.view(u.Name).observe.Started(u) }

func (x servedObserver) Event(e event.Event) {
	v := x.view(e.Unit)
	if text := view.Text(e, x.op == estate.Apply); text != "" && v.tell != nil {
		v.tell(strings.TrimSpace(text))
	}
	v.observe.Event(e)
}

func (x servedObserver) Planned(u *estate.Unit, e *engine.Engine, p *plan.Plan) {
	x.view(u.Name).observe.Planned(u, e, p)
}

func (x servedObserver) Applied(res *estate.Result, s *state.State) {
	x.view(res.Unit.Name).observe.Applied(res, s)
}

func (x servedObserver) Hook(u *estate.Unit, name string) { x.view(u.Name).observe.Hook(u, name) }

func (x servedObserver) Again(u *estate.Unit, d retry.Decision, failed diag.List) {
	x.view(u.Name).observe.Again(u, d, failed)
}

func (x servedObserver) Log(u *estate.Unit, line string) { x.view(u.Name).observe.Log(u, line) }

func (x servedObserver) Ended(res *estate.Result) {
	v := x.view(res.Unit.Name)
	if v.asked { // the unit will run again after approval
		return
	}
	v.result = res
	shown := *res
	shown.Diags = nil
	for _, m := range res.Diags {
		if !repeatable(m) || v.r.Report.Human == nil {
			shown.Diags = append(shown.Diags, m)
		}
	}
	v.observe.Ended(&shown)
}
