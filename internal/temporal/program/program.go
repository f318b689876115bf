// Package program implements the command line of terrace-worker, which terrace runs: the worker,
// and the commands that talk to the engine.
//
// Main function: Main. The one rule: on the pipe to terrace, the program only writes messages of
// package remote.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/temporal/connect"
	"github.com/terrace-iac/terrace/internal/temporal/flow"
	"github.com/terrace-iac/terrace/internal/temporal/follow"
	"github.com/terrace-iac/terrace/internal/temporal/worker"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Main runs the command line and returns the exit status.
func Main(ctx context.Context, system *sys.System) int {
	p := &program{System: system, abort: make(chan struct{})}
	done := make(chan int, 1)
	go func() { done <- p.run(ctx) }() // ended with this function, except after a second interrupt
	select {
	case code := <-done:
		return code
	case <-p.abort:
		p.EndChildren()
		return 1
	}
}

func (p *program) run(ctx context.Context) int {
	system := p.System
	if len(system.Args) < 2 {
		return p.fail(fmt.Errorf("terrace-worker is run by terrace: see \"terrace worker -help\""))
	}
	args := system.Args[2:]
	var err error
	switch system.Args[1] {
	case "worker":
		err = p.worker(ctx, args)
	case "client":
		return p.client(ctx)
	case "list", "cancel", "logs", "prune":
		err = p.look(ctx, system.Args[1], args)
	case "version":
		fmt.Fprintln(system.Stdout, release.Version)
	default:
		err = fmt.Errorf("terrace-worker has no command %q", system.Args[1])
	}
	if err != nil {
		return p.fail(err)
	}
	return 0
}

type program struct {
	*sys.System
	abort chan struct{} // closed when the process has to end at once
}

func (p *program) fail(err error) int {
	fmt.Fprintln(p.Stderr, "Error:", err)
	return 1
}

// engine connects to the engine and opens the blob store.
func (p *program) engine(ctx context.Context, on, place string) (connect.Settings, client.Client, *remote.Blobs, error) {
	s, err := connect.Parse(on)
	if err != nil {
		return s, nil, nil, err
	}
	sealer, err := remote.NewSealer(p.Env.Get(remote.KeyVariable))
	if err != nil {
		return s, nil, nil, err
	}
	blobs, err := p.blobs(ctx, place, sealer)
	if err != nil {
		return s, nil, nil, err
	}
	s.Queue = sealer.Queue(s.Queue, release.Version)
	s.Env, s.Log, s.Identity = p.Env, p.Stderr, fmt.Sprintf("%s@%s:%d", p.User(), p.Host(), os.Getpid())
	c, err := connect.Dial(ctx, s, sealer)
	return s, c, blobs, err
}

// again is the delay after which a worker tries again to reach a server.
const again = 2 * time.Second

// reach is like engine, but waits for a server that does not answer: the worker may be started
// before the server, or the server may be restarting.
func (p *program) reach(ctx context.Context, on, place string) (connect.Settings, client.Client, *remote.Blobs, error) {
	for said := false; ; {
		s, c, blobs, err := p.engine(ctx, on, place)
		if !connect.Away(err) || ctx.Err() != nil {
			return s, c, blobs, err
		}
		if !said {
			said = true
			fmt.Fprintf(p.Stderr, "%s. The worker waits for it.\n", diag.Reason(err))
		}
		t := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// blobs opens the blob store that --blobs specifies.
func (p *program) blobs(ctx context.Context, place string, sealer *remote.Sealer) (*remote.Blobs, error) {
	kind, args, isBackend := strings.Cut(place, ":")
	if isBackend && strings.Contains(args, "=") {
		objects, err := p.backend(ctx, kind, args)
		if err != nil {
			return nil, fmt.Errorf("--blobs=%s: %w", kind, err)
		}
		return &remote.Blobs{Objects: objects, Sealer: sealer, Place: "the " + kind + " store of --blobs", Now: p.Now}, nil
	}
	if place == "" {
		home := p.Env.Home()
		if home == "" {
			return nil, errors.New("there is no home directory for what workers read: say another one by --blobs")
		}
		place = filepath.Join(home, ".cache", "terrace", "runs")
	}
	place = sys.Join(p.Dir, place)
	return &remote.Blobs{Objects: remote.Folder(place), Sealer: sealer, Place: place, Now: p.Now}, nil
}

// backend opens a store of states that supports other objects.
func (p *program) backend(ctx context.Context, kind, args string) (remote.Objects, error) {
	given := map[string]string{}
	for pair := range strings.SplitSeq(args, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not ARGUMENT=VALUE", pair)
		}
		given[name] = value
	}
	st, err := cli.Store(ctx, p.System, kind, given)
	if err != nil {
		return nil, err
	}
	blobs := backend.BlobsOf(st)
	if blobs == nil {
		return nil, fmt.Errorf("the store has no room for more than a state: use a directory, or a store of objects such as s3")
	}
	return stored{blobs}, nil
}

// stored implements remote.Objects with a store of states.
type stored struct{ backend.Blobs }

// GetBlob implements remote.Objects.
func (s stored) GetBlob(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Blobs.GetBlob(ctx, name)
	if errors.Is(err, backend.ErrNoBlob) {
		err = fs.ErrNotExist
	}
	return data, err
}

// worker runs turns until it is interrupted.
func (p *program) worker(ctx context.Context, args []string) error {
	w := run.NewWorkerFlags()
	if _, _, err := w.Declare().Parse(args, p.Env, false); err != nil {
		return err
	}
	queues := strings.Split(w.Queue, ",")
	s, c, blobs, err := p.reach(ctx, "temporal://"+w.Temporal+"/"+w.Namespace+"/"+queues[0], w.Blobs)
	if err != nil {
		return err
	}
	defer c.Close()
	queues = blobs.Sealer.Queues(queues, release.Version)
	if w.Dir == "" {
		home := p.Env.Home()
		if home == "" {
			return errors.New("there is no home directory for the files of estates: say another one by --dir")
		}
		w.Dir = filepath.Join(home, ".cache", "terrace", "worker")
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	signals, off := p.Interrupts()
	defer off()
	ended := make(chan struct{})
	defer close(ended)
	go func() { // ended by ended
		select {
		case <-signals:
			fmt.Fprintln(p.Stderr, "The worker ends when what is under way has ended. A second interrupt ends it at once.")
			stop()
		case <-ended:
			return
		}
		select {
		case <-signals:
			close(p.abort)
		case <-ended:
		}
	}()
	fmt.Fprintf(p.Stderr, "Worker %s takes turns of runs of version %s from the queue %s of %s, %d at once. The files of runs are in %s.\n", s.Identity, release.Version, strings.Join(queues, ", "), s.Address, w.Slots, blobs.Place)
	return worker.Run(working, worker.Options{
		Client: c, Queues: queues, Memory: w.Memory, Name: s.Identity, Blobs: blobs, Dir: sys.Join(p.Dir, w.Dir), Slots: w.Slots, System: p.serving(), Serve: cli.Serve, Grace: w.Grace, Idle: w.Idle, Log: p.Stderr,
	})
}

// serving returns the system in which units run. Hooks call the program in TG_CTX_TF_PATH, which
// must be terrace, since terrace-worker has none of its commands. It is the terrace in the
// directory of this program, or otherwise the one in PATH.
func (p *program) serving() *sys.System {
	s := *p.System
	s.Executable = func() (string, error) {
		name := "terrace"
		if self, err := p.Executable(); err == nil {
			if real, err := filepath.EvalSymlinks(self); err == nil {
				self = real
			}
			if path, err := sys.LookPath(filepath.Join(filepath.Dir(self), name), p.Dir, p.Env); err == nil {
				return path, nil
			}
		}
		return sys.LookPath(name, p.Dir, p.Env)
	}
	return &s
}

// client talks to the engine on behalf of a terrace process at the other end of two pipes.
func (p *program) client(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	link := remote.NewLink(p.Stdin, p.Stdout)
	first, err := link.Next()
	if err != nil {
		return p.fail(err)
	}
	if err := p.follow(ctx, cancel, link, first); err != nil {
		_ = link.Send(remote.Message{Failed: err.Error()})
		return 0
	}
	_ = link.Send(remote.Message{Over: true})
	return 0
}

func (p *program) follow(ctx context.Context, cancel func(), link *remote.Link, first remote.Message) error {
	var at remote.Engine
	switch {
	case first.Start != nil:
		at = first.Start.Engine
	case first.Attach != nil:
		at = first.Attach.Engine
	default:
		return fmt.Errorf("nothing was asked for")
	}
	if at.Version != release.Version {
		return fmt.Errorf("terrace-worker has version %s and the program that started it has %s: install both of one version", release.Version, at.Version)
	}
	s, c, blobs, err := p.engine(ctx, at.On, at.Blobs)
	if err != nil {
		return err
	}
	defer c.Close()
	id := ""
	if first.Start != nil {
		o, err := p.options()
		if err != nil {
			return err
		}
		if id, err = follow.Start(ctx, c, s.Queue, blobs, first.Start, o); err != nil {
			return err
		}
		if err := link.Send(remote.Message{Started: id}); err != nil || first.Start.Detach {
			return err
		}
	} else {
		id = first.Attach.ID
	}
	go func() { // ended by the other end, or with the process
		for {
			m, err := link.Next()
			switch {
			case err != nil: // the run continues without this client
				cancel()
				return
			case m.Stop:
				err = follow.Cancel(ctx, c, id)
			case m.Answer != nil:
				err = c.SignalWorkflow(ctx, id, "", flow.AnswerSignal, *m.Answer)
			}
			if err != nil {
				_ = link.Send(remote.Message{Note: "The server was not informed: " + diag.Reason(err)})
			}
		}
	}()
	return p.follower(s, c, blobs, link.Send).Follow(ctx, id)
}

func (p *program) follower(s connect.Settings, c client.Client, blobs *remote.Blobs, tell func(remote.Message) error) *follow.Follower {
	data := connect.Converter(blobs.Sealer)
	return &follow.Follower{
		Client: c, Data: data, Blobs: blobs, Tell: tell,
		Failures: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: data, EncodeCommonAttributes: true}),
	}
}

// options returns the options of runs from the environment.
func (p *program) options() (follow.Options, error) {
	o := follow.Options{Version: release.Version}
	if text := p.Env.Get(heartbeatVariable); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			return o, fmt.Errorf("%s is %q, and must be a time of a second or more, such as 30s", heartbeatVariable, text)
		}
		o.Heartbeat = d
	}
	return o, nil
}

const heartbeatVariable = "TERRACE_TEMPORAL_HEARTBEAT" // timeout for heartbeats of workers

// look runs the commands list, cancel, logs and prune.
func (p *program) look(ctx context.Context, what string, args []string) error {
	var on, place string
	args, _, err := run.AboutFlags(&on, &place).Parse(args, p.Env, false)
	if err != nil {
		return err
	}
	s, c, blobs, err := p.engine(ctx, on, place)
	if err != nil {
		return err
	}
	defer c.Close()
	if what == "list" {
		const most = 50
		return follow.List(ctx, c, s.Namespace, p.Stdout, most)
	}
	if what == "prune" {
		return p.prune(ctx, blobs, args)
	}
	if len(args) == 0 {
		return fmt.Errorf("name the run, as \"terrace run --on … list\" prints it")
	}
	id := args[0]
	if what == "cancel" {
		return follow.Cancel(ctx, c, id)
	}
	return p.logs(ctx, s, c, blobs, id, args[1:])
}

// kept is the number of days that prune keeps data of runs by default.
const kept = 30

// prune deletes data of old runs.
func (p *program) prune(ctx context.Context, blobs *remote.Blobs, args []string) error {
	days := kept
	if len(args) > 0 {
		var err error
		if days, err = strconv.Atoi(args[0]); err != nil || days < 0 {
			return fmt.Errorf("%q is no number of days", args[0])
		}
	}
	n, err := blobs.Prune(ctx, p.Now().AddDate(0, 0, -days))
	if err == nil {
		fmt.Fprintf(p.Stdout, "%d objects of runs that began more than %d days ago were removed from %s.\n", n, days, blobs.Place)
	}
	return err
}
