// Package worker runs units that it receives from queues of a Temporal server.
//
// Main types: Options and lease. The one rule: nothing is written for a unit once its lease may
// have ended, since another worker may have the unit then.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Operations contains the names of the activities, which are operations of a run.
var Operations = []string{"plan", "apply", "validate", "init"}

// Options configures a worker.
type Options struct {
	Client client.Client
	Queues []string
	Memory int // total memory of turns in MiB, as estates specify it; 0 means no limit
	Blobs  *remote.Blobs
	Dir    string // directory for the files of estates
	Slots  int    // maximum number of concurrent turns
	Name   string // name of this worker
	System *sys.System
	// Serve opens the estate of a job and runs its units; see cli.Serve.
	Serve func(ctx context.Context, system *sys.System, s *remote.Session, q request.Request) int
	Grace time.Duration // time for running turns to end when the worker stops
	Idle  time.Duration // time after which an unused estate is closed
	Log   io.Writer
}

// Run runs turns until the context ends, and then waits for running turns.
func Run(ctx context.Context, o Options) error {
	w := &activities{o: o, open: map[string]*opened{}, slots: newRoom(o.Slots), memory: newRoom(o.Memory)}
	var all []worker.Worker
	end := func() {
		var wg sync.WaitGroup
		for _, out := range all {
			wg.Go(out.Stop)
		}
		wg.Wait()
	}
	for _, queue := range o.Queues {
		out := worker.New(o.Client, queue, worker.Options{
			MaxConcurrentActivityExecutionSize: o.Slots, WorkerStopTimeout: o.Grace, DisableRegistrationAliasing: true,
			MaxConcurrentActivityTaskPollers: partitions, MaxConcurrentWorkflowTaskPollers: 2 * partitions,
			DeadlockDetectionTimeout: workflowTime,
		})
		out.RegisterWorkflowWithOptions(flow.Workflow, workflow.RegisterOptions{Name: flow.Name})
		for _, op := range Operations {
			out.RegisterActivityWithOptions(w.turn, activity.RegisterOptions{Name: op})
		}
		if err := out.Start(); err != nil {
			end()
			return fmt.Errorf("the worker cannot begin: %w", err)
		}
		all = append(all, out)
	}
	tick := time.NewTicker(max(o.Idle/4, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			end()
			w.closeAll()
			return nil
		case <-tick.C:
			w.closeIdle(o.Idle)
		}
	}
}

// partitions is the number of partitions of a queue in the default configuration of a server. A
// worker polls all of them at once, and as many for workflows that it has in memory. Tasks that
// were added to a partition before the worker started are only delivered to a worker that polls
// that partition.
const partitions = 4

// workflowTime is the timeout for one step of the workflow. On a busy machine, a step for
// hundreds of units can take seconds.
const workflowTime = 20 * time.Second

// activities implements the activities, and contains the open estates.
type activities struct {
	o  Options
	wg sync.WaitGroup // waits for open estates

	slots, memory *room

	fetching sync.Mutex

	mu   sync.Mutex
	open map[string]*opened
}

// opened is an estate that is open or is being opened.
type opened struct {
	ready chan struct{} // closed when s and err are set
	s     *remote.Session
	err   error
	users int
	used  time.Time
}

// turn is the activity that runs a unit.
func (w *activities) turn(ctx context.Context, job remote.Job, t remote.Turn) (*remote.Done, error) {
	info := activity.GetInfo(ctx)
	l := newLease(w.o.Client, info.TaskToken, info.HeartbeatTimeout, w.o.System.Now)
	if activity.HasHeartbeatDetails(ctx) {
		var doing string
		if err := activity.GetHeartbeatDetails(ctx, &doing, &l.notes); err != nil {
			return nil, err
		}
		l.early = len(l.notes)
	}
	switch err := l.renew(ctx); { // first, since the process may have been suspended
	case errors.Is(err, errStop):
		return nil, temporal.NewCanceledError()
	case err != nil:
		return nil, err
	}
	turning, cancel := context.WithCancel(ctx)
	defer cancel()
	l.tell("waiting for room on " + w.o.Name)
	for _, x := range []struct {
		of   *room
		need int
	}{{w.slots, 1}, {w.memory, t.Memory}} {
		if x.need == 0 {
			continue
		}
		if err := w.wait(turning, l, x.of, x.need); err != nil {
			return nil, err
		}
		defer x.of.give(x.need)
	}
	l.tell("")
	// The key contains the attempt: an earlier attempt may have left data in the estate that is
	// open here.
	at := fmt.Sprintf("%s %d", job.ID, info.Attempt)
	e := w.use(at, job)
	defer w.release(e)
	var keeping sync.WaitGroup
	ended := make(chan struct{})
	keeping.Go(func() { // ended below
		l.keep(turning, ended, func() { // the run is being stopped
			select {
			case <-e.ready:
				if e.s != nil {
					e.s.StopTurns()
				}
			case <-ended:
			}
		}, cancel)
	})
	defer keeping.Wait()
	defer close(ended)
	select {
	case <-e.ready:
	case <-turning.Done():
		return nil, turning.Err()
	}
	if e.err != nil {
		return nil, e.err
	}
	claim := claimOf(job.ID, t, int(info.Attempt))
	return e.s.Ask(&remote.Request{Turn: t, Ctx: turning, Lease: claim.stateLease(l), Tell: l.tell})
}

// use returns the estate of a job, and opens it if necessary.
func (w *activities) use(at string, job remote.Job) *opened {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.open[at]
	if e == nil {
		e = &opened{ready: make(chan struct{})}
		w.open[at] = e
		w.wg.Go(func() { w.serve(at, e, job) })
	}
	e.users++
	return e
}

func (w *activities) release(e *opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.users--
	e.used = w.o.System.Now()
}

// closeIdle closes the estates that were unused for a while.
func (w *activities) closeIdle(idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.System.Now()
	for at, e := range w.open {
		select {
		case <-e.ready:
		default: // the estate is being opened
			continue
		}
		if e.s != nil && e.s.Job.Tree != "" {
			touch(e.s.Local, now)
		}
		if e.users == 0 && now.Sub(e.used) >= idle {
			delete(w.open, at)
			if e.s != nil {
				e.s.End(nil)
			}
		}
	}
}

// closeAll closes all estates. No turn may be running.
func (w *activities) closeAll() {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.open))
	w.mu.Unlock()
	for _, e := range all {
		if <-e.ready; e.s != nil {
			e.s.End(nil)
		}
	}
	w.wg.Wait()
}

// serve opens the estate of a job and keeps it open until its session ends.
func (w *activities) serve(at string, e *opened, job remote.Job) {
	ctx := context.Background() // End ends the session, instead of the context
	s, dir, err := w.prepare(ctx, job)
	if e.s, e.err = s, err; err != nil {
		w.forget(at, e)
		close(e.ready)
		return
	}
	close(e.ready)
	output := &tail{}
	code := w.o.Serve(ctx, w.system(&job, dir, output), s, job.Request.Relocate(job.Root, s.Local))
	s.End(fmt.Errorf("the estate cannot be opened on this worker (status %d): %s", code, output.String()))
	w.forget(at, e)
}

func (w *activities) forget(at string, e *opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[at] == e {
		delete(w.open, at)
	}
}

// prepare fetches the data of a job to this machine. dir is the directory in which the client
// was started.
func (w *activities) prepare(ctx context.Context, job remote.Job) (s *remote.Session, dir string, err error) {
	var approved []byte
	if job.Approved != nil {
		if approved, err = w.o.Blobs.Get(ctx, *job.Approved); err != nil {
			return nil, "", err
		}
	}
	s = remote.NewSession(&job, w.o.Blobs, approved)
	s.Local = job.Root
	if job.Tree != "" {
		s.Local = filepath.Join(w.o.Dir, "trees", job.Tree[:min(32, len(job.Tree))])
		if err := w.fetch(ctx, job, s.Local); err != nil {
			return nil, "", err
		}
		if job.Commits != nil {
			if s.Commits, err = w.commits(ctx, *job.Commits); err != nil {
				return nil, "", err
			}
		}
		s.Unpack = func(ctx context.Context, tree, dir string) error { return w.unpack(ctx, job, tree, dir) }
	}
	return s, filepath.Join(s.Local, filepath.FromSlash(job.Dir)), nil
}

// commits returns git's answers that were recorded when the run was started.
func (w *activities) commits(ctx context.Context, r remote.Ref) (*git.Record, error) {
	text, err := w.o.Blobs.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	said := new(git.Record)
	if err := json.Unmarshal(text, said); err != nil {
		return nil, fmt.Errorf("what the run says of commits cannot be read: %w", err)
	}
	return said, nil
}

// fetch writes the files of a job to a directory, unless it exists.
func (w *activities) fetch(ctx context.Context, job remote.Job, dir string) error {
	w.fetching.Lock() // two jobs may have the same tree
	defer w.fetching.Unlock()
	if isDir(dir) {
		touch(dir, w.o.System.Now())
		return nil
	}
	removeUnused(filepath.Dir(dir), w.o.System.Now().Add(-keepUnused))
	return w.unpack(ctx, job, job.Tree, dir)
}

// unpack writes the files of a tree to a directory that does not exist.
func (w *activities) unpack(ctx context.Context, job remote.Job, tree, dir string) error {
	if err := w.o.Blobs.GetTree(ctx, tree, dir); err != nil {
		return err
	}
	if job.Repo { // for functions that return the root of the repository
		err := w.o.System.Run(ctx, sys.Command{Path: "git", Args: []string{"init", "-q"}, Dir: dir, Env: w.o.System.Env, Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			fmt.Fprintf(w.o.Log, "the files of %s are no repository here: %s\n", job.ID, err)
		}
	}
	return nil
}

// system returns the system in which the units of a job run.
func (w *activities) system(job *remote.Job, dir string, output io.Writer) *sys.System {
	s := *w.o.System
	s.Dir, s.Args = dir, []string{s.Args[0]}
	env := map[string]string{}
	for _, kv := range slices.Concat(w.o.System.Env, job.Env) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	if job.Color {
		env["FORCE_COLOR"] = "1" // for output that is colored according to the environment
	}
	s.Env = nil
	for _, name := range slices.Sorted(maps.Keys(env)) {
		s.Env = append(s.Env, name+"="+env[name])
	}
	s.Stdin, s.Stdout, s.Stderr = bytes.NewReader(nil), output, output
	s.Terminal = sys.Terminal{}
	s.Interrupts = noInterrupts
	return &s
}

// tail keeps the last tailSize bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text); n > tailSize {
		t.text = slices.Clone(t.text[n-tailSize:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

var errLost = errors.New("the engine has given this attempt up")
