package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/plan"
)

// # Runs on other machines
//
// With --on, this process opens and checks the estate and prints the run. An engine for
// durable work schedules the units, and workers run them. A separate program, terrace-worker,
// communicates with the engine, because this program starts faster without the engine's client
// library.

// workerProgram is the program that communicates with the engine.
const workerProgram = "terrace-worker"

// findWorker returns the path of terrace-worker: next to this program, or its name, for a
// search in PATH.
func findWorker(c *command.Call) string {
	name := workerProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := c.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return workerProgram
}

// runWorker runs terrace-worker with the streams of the command.
func runWorker(ctx context.Context, c *command.Call, args ...string) int {
	program := sys.Command{
		Path: findWorker(c), Args: args, Dir: c.Dir, Env: engineEnv(c), Foreground: true, Stdin: c.System.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
	}
	if args[0] != "worker" { // if the reader of the output goes away, this process ends, as with other commands
		program.Stdout = struct{ io.Writer }{c.Stdout}
	}
	if c.System.Become != nil && args[0] == "worker" { // replace this process, so that a signal to it reaches the worker
		if err := c.System.Become(program); !errors.Is(err, errors.ErrUnsupported) {
			return c.Fail(noWorker(err))
		}
	}
	err := c.Run(ctx, program)
	if err == nil {
		return 0
	}
	code, ran := sys.ExitCode(err)
	switch {
	case errors.Is(err, sys.ErrInterrupted): // the user interrupted it, so no message is needed
		return 1
	case ran && code > 0:
		return code
	}
	return c.Fail(noWorker(err))
}

func noWorker(err error) diag.List {
	return diag.Errorf(diag.CodeRemoteProgram, nil, "Program for distributed runs not run", "What runs the units of an estate on other machines is a program of its own, %s, which failed: %s. Put it beside %s or into a directory of PATH.", workerProgram, err, view.Program)
}

// remoteScheduler schedules a run whose units run in other processes, as the engine requests.
// This process prints the run.
type remoteScheduler struct {
	run  *followed // the local side of the run
	on   string    // address of the engine
	halt <-chan struct{}
	save bool
	link *remote.Link
	stop func() // ends terrace-worker

	tasks []schedule.Task
	units map[string]int
	work  schedule.Work

	asking sync.WaitGroup // units that are about to ask for approval

	mu     sync.Mutex
	turns  map[string]*awaited
	remote map[string]bool // units whose result came from a worker
	begun  bool            // the engine has accepted the run
	heard  bool            // the engine reported something about the run
	failed string          // why the run could not continue
	silent bool            // terrace-worker ended by itself
}

// awaited is a unit whose result is awaited.
type awaited struct {
	ended chan *remote.Ended
	begun bool
	done  bool
}

// remotely changes the options of a run so that its units run on the workers of --on.
func (r *estateRun) remotely(ctx context.Context, o *estate.RunOptions, approved *estate.SavedPlan, asked bool) (*remoteScheduler, diag.List) {
	x := &remoteScheduler{run: &followed{r: r, op: o.Op}, on: r.f.On, halt: r.halt.stop, turns: map[string]*awaited{}, remote: map[string]bool{}, units: map[string]int{}}
	x.save = r.kept.Wanted() || r.asksFirst() || o.Op == estate.Plan && r.ruled.rules != nil
	start, ds := r.startMessage(ctx, o, approved, asked, x.save)
	if ds.HasErrors() {
		return nil, ds
	}
	link, errs, stop := talk(ctx, r.Call)
	x.link = link
	x.stop = func() {
		err := stop()
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.silent && err != nil { // its own error explains more
			x.failed = whyEnded(err, errs)
		}
	}
	if job := r.f.Following; job != nil {
		r.f.Following = nil // later operations of this command begin new runs
		x.begun = true
		start = remote.Message{Attach: &remote.Attach{Engine: start.Start.Engine, ID: job.ID}}
	}
	if err := x.link.Send(start); err != nil {
		x.stop()
		return nil, noWorker(err)
	}
	o.Scheduler, o.Elsewhere, o.Observe = x, x.turn, remoteObserver{remoteScheduler: x, local: o.Observe}
	return x, nil
}

// detach waits until the run has begun, and then ends the connection to it.
func (x *remoteScheduler) detach() (begun bool) {
	defer x.stop()
	for {
		m, err := x.link.Next()
		switch {
		case err != nil:
			x.ended()
			x.stop()
			x.run.tell(diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The run on %s did not begin: %s.", x.on, strings.TrimSuffix(x.failed, ".")))
			return false
		case m.Failed != "":
			x.run.tell(diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The run on %s did not begin: %s.", x.on, strings.TrimSuffix(m.Failed, ".")))
			return false
		case m.Started != "":
			x.run.identify(m.Started)
			x.run.note("The run goes on. Follow it in this directory with: " + x.run.r.Report.Names.Program() + " run --on " + x.on + " attach " + m.Started)
			return true
		case m.Note != "":
			x.run.note(m.Note)
		}
	}
}

// talk starts terrace-worker. errs receives its Stderr. stop ends it and returns its error; it
// may be called several times.
func talk(ctx context.Context, c *command.Call) (link *remote.Link, errs *bytes.Buffer, stop func() error) {
	toThem, fromUs := io.Pipe()
	fromThem, toUs := io.Pipe()
	errs = &bytes.Buffer{}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { // stop waits for it
		err := c.Run(running, sys.Command{Path: findWorker(c), Args: []string{"client"}, Dir: c.Dir, Env: engineEnv(c), Stdin: toThem, Stdout: toUs, Stderr: errs})
		_ = toUs.CloseWithError(io.EOF)
		_ = toThem.CloseWithError(err) // if the program did not start, a send would block forever
		ended <- err
	}()
	return remote.NewLink(fromThem, fromUs), errs, sync.OnceValue(func() error {
		_ = fromUs.Close()
		cancel()
		_ = fromThem.Close()
		return <-ended
	})
}

// whyEnded returns the reason why terrace-worker ended. errs is its Stderr.
func whyEnded(err error, errs *bytes.Buffer) string {
	return strings.TrimSuffix(strings.TrimSpace(err.Error()+" "+errs.String()), ".")
}

// asksFirst reports whether the user approves the plans before the apply.
func (r *estateRun) asksFirst() bool {
	return (r.name == "apply" || r.name == "destroy") && r.saved == nil && !r.op.Approved && !(r.f.NonInteractive && !r.f.NoAutoApprove)
}

// startMessage returns the message that begins the run.
func (r *estateRun) startMessage(ctx context.Context, o *estate.RunOptions, approved *estate.SavedPlan, asked, save bool) (remote.Message, diag.List) {
	root, repo := r.Launch, false
	for dir := r.Launch; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			root, repo = dir, true
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if !repo && !r.f.InPlace {
		if rel, err := filepath.Rel(r.Launch, r.Dir); err != nil || !filepath.IsLocal(rel) {
			return remote.Message{}, diag.Errorf(diag.CodeRemoteFiles, nil, "Directory outside of the run's files", "The files of a run with --on are those of the repository, or without one those below the directory that the command is started in, %s. %s is not among them: start the command there.", r.Launch, r.Dir)
		}
	}
	rel, err := filepath.Rel(root, r.Launch)
	if err != nil {
		return remote.Message{}, diag.Errorf(diag.CodeRemoteFiles, nil, "Directory outside of the run's files", "%s.", err)
	}
	if !r.f.InPlace {
		if ds := r.estate.Found.Beyond(ctx, root); ds.HasErrors() {
			return remote.Message{}, ds
		}
	}
	q, ds := r.request()
	if ds.HasErrors() {
		return remote.Message{}, ds
	}
	job := remote.Job{
		Format: remote.JobFormat, Request: q, Env: travels(r.Env, r.CalledAs()), Root: root, Dir: filepath.ToSlash(rel), Repo: repo,
		Op: string(o.Op), At: r.began, Who: r.Who(), Save: save, Asks: o.Approver != nil, Asked: asked, Was: r.op.Plan.Was,
	}
	_, span := telemetry.Start(ctx, "distributed_run_start")
	if span.Traced() { // makes the spans of workers children of this one
		job.Env = append(job.Env, telemetry.Variable+"="+span.Parent())
	}
	span.End()
	if h := r.Report.Human; h != nil {
		job.Color, job.Width = h.Style.Color, h.Style.Width
	}
	start := &remote.Start{
		Engine: remote.Engine{Version: release.Version, On: r.f.On, Blobs: r.f.Blobs}, Job: job, InPlace: r.f.InPlace, Rules: o.Queue, Places: r.f.Parallelism,
		Tasks: discovery.Tasks(r.estate.Found.Units, o.Plan.Mode == plan.Destroy), Detach: r.f.Detach,
	}
	if !r.f.InPlace {
		start.Commits, start.Checkouts = r.estate.Commits(), r.estate.Found.Checkouts.Dirs()
	}
	if ds := r.place(ctx, start); ds.HasErrors() {
		return remote.Message{}, ds
	}
	if approved != nil {
		var b bytes.Buffer
		if err := approved.Write(&b, release.Version); err != nil {
			return remote.Message{}, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
		}
		start.Approved = b.Bytes()
	}
	return remote.Message{Start: start}, nil
}

// place sets on which queues the units run, and how many at once.
func (r *estateRun) place(ctx context.Context, start *remote.Start) diag.List {
	file, ds := r.workers.load(r.Dir, r.estate.Sources())
	if ds.HasErrors() {
		return ds
	}
	if r.workers.plan == nil {
		var names []string
		for _, u := range r.estate.Found.Units {
			names = append(names, u.Name)
		}
		whole := r.whole && r.Dir == file.Dir && r.f.Following == nil // a followed run has reported these warnings when it began
		p, ds := file.Plan(names, whole, func(dir string, filters []string) (map[string]bool, diag.List) {
			return r.estate.Match(ctx, dir, filters)
		})
		if ds.HasErrors() {
			return ds
		}
		r.tellEstate(ds)
		r.workers.plan = &p
	}
	p := r.workers.plan
	start.Queues, start.Memory, start.Turns = p.Queues, p.Memory, p.Turns
	s := file.Share(r.f.Calls, start.Places)
	start.Places, start.Job.Calls, start.Job.CallsOf = s.Turns, s.Calls, s.CallsOf
	return nil
}

// travels returns the environment variables to send to workers: those that affect the run.
// Credentials are not among them, since workers use their own. TERRACE_AS carries the name by
// which the client was started, because the worker has another name.
func travels(env sys.Env, as string) []string {
	var out []string
	if as != "" && env.Get("TERRACE_AS") == "" {
		out = append(out, "TERRACE_AS="+as)
	}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "TF_VAR_"), strings.HasPrefix(name, "TG_"), strings.HasPrefix(name, "TERRAGRUNT_"), strings.HasPrefix(name, "TF_CLI_ARGS"),
			name == "TF_WORKSPACE", name == "TERRACE_AS", name == "TERRACE_JOURNAL", name == "TRACEPARENT":
			out = append(out, kv)
		}
	}
	return out
}

// Run implements schedule.Scheduler. It follows the messages of the engine.
func (x *remoteScheduler) Run(ctx context.Context, tasks []schedule.Task, _ schedule.Rules, work schedule.Work) {
	x.tasks, x.work = tasks, work
	for i, t := range tasks {
		x.units[t.Name] = i
	}
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() { // ends when over is closed
		select {
		case <-x.halt:
			_ = x.link.Send(remote.Message{Stop: true})
		case <-over:
		}
	})
	for {
		m, err := x.link.Next()
		if err != nil {
			x.ended()
			break
		}
		if x.take(ctx, m, &wg) {
			break
		}
	}
	close(over)
	x.stop()
	x.rest(ctx)
	wg.Wait()
	switch {
	case x.failed == "":
	case !x.begun:
		x.run.tell(diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The run on %s did not begin: %s.", x.on, strings.TrimSuffix(x.failed, ".")))
	default:
		x.run.tell(diag.Errorf(diag.CodeRemoteNotEnded, nil, "Distributed run not ended", "The run on %s could not be followed to its end: %s.", x.on, x.failed))
	}
}

// take handles a message. over is true if the message is the last.
func (x *remoteScheduler) take(ctx context.Context, m remote.Message, wg *sync.WaitGroup) (over bool) {
	if m.Failed == "" && m.Note == "" {
		x.mu.Lock()
		x.heard = true
		x.mu.Unlock()
	}
	switch {
	case m.Begun != nil:
		x.begin(ctx, *m.Begun, wg)
	case m.Activity != nil:
		x.run.doing(m.Activity.Unit, m.Activity.Text)
	case m.Ended != nil:
		t := x.begin(ctx, m.Ended.Unit, wg)
		if t != nil && !t.done {
			if t.done = !m.Ended.Asks; m.Ended.Asks {
				x.asking.Add(1)
			}
			t.ended <- m.Ended
		}
	case m.Refused != nil:
		i, ok := x.units[m.Refused.Unit]
		if ok {
			x.await(m.Refused.Unit).done = true
			x.work.Refused(i, m.Refused.Why)
		}
	case m.Idle:
		wg.Go(func() {
			x.asking.Wait() // wait for units that are about to ask
			x.work.Idle(ctx)
		})
	case m.Started != "":
		x.begun = true
		x.run.note("Run " + m.Started + " on " + x.on)
	case m.Note != "":
		x.run.note(m.Note)
	case m.Failed != "":
		x.fail(m.Failed)
		return true
	case m.Over:
		return true
	}
	return false
}

func (x *remoteScheduler) fail(why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == "" {
		x.failed = why
	}
}

// ended records that terrace-worker ended; stop determines the reason.
func (x *remoteScheduler) ended() {
	x.fail("the program that speaks with the engine ended")
	x.mu.Lock()
	defer x.mu.Unlock()
	x.silent = true
}

// unheard reports whether the engine could not be reached, or refused the run. Then there is
// nothing to report about units.
func (x *remoteScheduler) unheard() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.heard && x.failed != ""
}

func (x *remoteScheduler) await(unit string) *awaited {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.turns[unit]
	if t == nil {
		t = &awaited{ended: make(chan *remote.Ended, 4)}
		x.turns[unit] = t
	}
	return t
}

// begin starts the local side of a unit. It waits for the result of the worker.
func (x *remoteScheduler) begin(ctx context.Context, unit string, wg *sync.WaitGroup) *awaited {
	i, ok := x.units[unit]
	if !ok {
		return nil
	}
	t := x.await(unit)
	if !t.begun {
		t.begun = true
		wg.Go(func() {
			x.work.Turn(ctx, i, func(note func(resume func())) {
				resumed := make(chan struct{})
				note(func() { close(resumed) })
				x.asking.Done()
				<-resumed
			})
		})
	}
	return t
}

// rest ends the units for which no result came.
func (x *remoteScheduler) rest(ctx context.Context) {
	x.mu.Lock()
	why := x.failed
	x.mu.Unlock()
	var unheard string // reason for units that never began
	switch {
	case why == "":
		why = "no worker reported its result"
	case !x.begun:
		unheard = "the run did not begin"
	default:
		unheard = "the run could not be followed to its end"
	}
	for i, t := range x.tasks {
		if t.Skip {
			continue
		}
		switch a := x.await(t.Name); {
		case a.done:
		case a.begun:
			a.ended <- &remote.Ended{Unit: t.Name, Outcome: schedule.NotRun, Lost: why}
		default:
			a.done = true
			x.work.Refused(i, schedule.Refusal{Reason: schedule.Stopping, Text: unheard})
		}
	}
	if x.work.Idle != nil {
		x.work.Idle(ctx)
	}
}

// turn is the function RunOptions.Elsewhere: it waits for the worker's results for a unit.
func (x *remoteScheduler) turn(_ context.Context, res *estate.Result, ask func() bool) {
	unit := res.Unit.Name
	t := x.await(unit)
	x.run.start(unit)
	for m := range t.ended {
		x.mu.Lock()
		x.remote[unit] = true
		x.mu.Unlock()
		if m.Lost != "" {
			if m.Outcome == schedule.NotRun {
				res.Break("run error", m.Lost)
			} else {
				ds := diag.Errorf(diag.CodeRemoteUnitLost, nil, "Unit was not run to its end", "%s.", m.Lost)
				res.Fail(ds)
				res.Diags = ds
			}
			x.mu.Lock()
			x.remote[unit] = false // print the unit here
			x.mu.Unlock()
			return
		}
		var reported remote.Report
		if err := json.Unmarshal(m.Report, &reported); err != nil || reported.Result == nil {
			ds := diag.Errorf(diag.CodeRemoteUnitLost, nil, "Unit was not run to its end", "What the worker reported of the unit %s cannot be read: %v. Worker and command must be of the same version.", unit, err)
			res.Fail(ds)
			res.Diags = ds
			if m.Asks {
				x.asking.Done()
			}
			return
		}
		reported.Result.Fill(res, m.At)
		if err := x.run.reported(res, &reported); err != nil {
			x.fail(err.Error())
		}
		if !m.Asks {
			return
		}
		if !ask() {
			x.mu.Lock()
			x.remote[unit] = false
			x.mu.Unlock()
			res.Counts = plan.Counts{}
			res.Break("run error", "what had been deferred was not approved")
			return
		}
	}
}

// remoteObserver reports units without a report from a worker to local. The reports of workers
// are already printed.
type remoteObserver struct {
	estate.Silent
	*remoteScheduler
	local estate.Observer
}

func (x remoteObserver) Ended(res *estate.Result) {
	x.mu.Lock()
	reported := x.remote[res.Unit.Name]
	x.mu.Unlock()
	switch {
	case reported:
		x.run.end(res)
	case x.unheard(): // one error is about the whole run
	default:
		x.local.Ended(res)
	}
}

// remoteApprover sends the user's answers about deferred changes to the engine.
type remoteApprover struct {
	estate.Approver
	away *remoteScheduler
}

func (x remoteApprover) Approve(wave []*estate.Result) bool {
	yes := x.Approver.Approve(wave)
	_ = x.away.link.Send(remote.Message{Answer: &yes})
	return yes
}
