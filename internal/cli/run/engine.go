package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate/placement"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Worker declares the command worker.
func Worker() command.Command {
	return command.Command{
		Name: "worker", Synopsis: "Take turns of units from a Temporal server", Usage: "[options]",
		Uses: command.Temporal,
		Help: `Runs units of estates for "run --all --on", until it is interrupted: then
what is under way comes to its end first. Any number of workers, on any number
of machines, take turns from one queue. A worker uses its own credentials,
provider caches and network; what units are made of comes from the client by
--blobs, a directory that all see or a store of objects.

TERRACE_RUN_KEY, 32 random bytes in base64, seals all that leaves a machine. It
must be the same for the command and all workers. For TLS there are
TERRACE_TEMPORAL_TLS_CERT, _TLS_KEY, _TLS_CA and _TLS_SERVER_NAME (three files
and a name), for Temporal Cloud TERRACE_TEMPORAL_API_KEY. The temporal block of
the CLI configuration can say all of that but the key, too.`,
		Examples: []command.Example{{Line: "worker --temporal localhost:7233 --namespace default --queue terrace", Text: "Take turns from a server on this machine."}},
		Prepare: func() (flag.Flags, command.Run) {
			w := NewWorkerFlags()
			return w.Declare(), func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "worker takes no arguments.")
				}
				cfg, ds := c.Directory.Settings()
				if ds.HasErrors() {
					return c.Fail(ds)
				}
				for _, x := range []struct {
					flag, setting string
					into          *string
				}{
					{"temporal", cfg.Temporal.Address, &w.Temporal}, {"namespace", cfg.Temporal.Namespace, &w.Namespace},
					{"queue", cfg.Temporal.Queue, &w.Queue}, {"blobs", cfg.Temporal.Blobs, &w.Blobs},
				} {
					if !c.Given(x.flag) {
						*x.into = cmp.Or(x.setting, *x.into)
					}
				}
				return runWorker(ctx, c, w.words()...)
			}
		},
	}
}

// WorkerFlags are the flags of the command worker. The program terrace-worker receives them
// again.
type WorkerFlags struct {
	Temporal, Namespace, Queue, Blobs, Dir string
	Slots, Memory                          int
	Grace, Idle                            time.Duration
}

// NewWorkerFlags returns the defaults of the flags.
func NewWorkerFlags() *WorkerFlags {
	return &WorkerFlags{Temporal: "localhost:7233", Namespace: "default", Queue: "terrace", Slots: 4, Grace: 10 * time.Minute, Idle: 2 * time.Minute}
}

// Declare returns the flags, bound to the fields.
func (w *WorkerFlags) Declare() flag.Flags {
	return flag.Flags{
		flag.Text(&w.Temporal, "temporal", "HOST:PORT", "The Temporal server, localhost:7233 by default.").WithTwoDashes(),
		flag.Text(&w.Namespace, "namespace", "NAME", "Its namespace, default by default.").WithTwoDashes(),
		flag.Text(&w.Queue, "queue", "NAME,…", "The queues that turns are taken from, by default the one named as this program.").WithTwoDashes(),
		flag.Text(&w.Blobs, "blobs", "PLACE", "Where files and plans lie, a directory or KIND:ARGUMENT=VALUE,… of a backend.").WithTwoDashes(),
		flag.Text(&w.Dir, "dir", "PATH", "Where this worker unpacks the files of estates.").WithTwoDashes().Completes(flag.Folders),
		flag.AtLeast(&w.Slots, 1, "slots", "N", "How many units run here at once, 4 by default.").WithTwoDashes(),
		flag.Duration(&w.Grace, "grace", "DURATION", "How long turns may take that are under way at the end, 10m by default.").WithTwoDashes(),
		flag.Duration(&w.Idle, "idle", "DURATION", "How long an estate stays open of which no unit is asked for, 2m by default.").WithTwoDashes(),
		flag.AtLeast(&w.Memory, 0, "memory", "MIB", "How much memory turns may take together, as the estate's "+placement.FileName+" counts it. Without it nobody counts.").WithTwoDashes(),
	}
}

// words returns the command line of terrace-worker.
func (w *WorkerFlags) words() []string {
	return []string{
		"worker", "--temporal=" + w.Temporal, "--namespace=" + w.Namespace, "--queue=" + w.Queue, "--blobs=" + w.Blobs, "--dir=" + w.Dir,
		fmt.Sprint("--slots=", w.Slots), fmt.Sprint("--memory=", w.Memory), fmt.Sprint("--grace=", w.Grace), fmt.Sprint("--idle=", w.Idle),
	}
}

// AboutFlags returns the flags of run that select the engine.
func AboutFlags(on, blobs *string) flag.Flags {
	return flag.Flags{
		flag.Text(on, "on", "URL", "The engine.").WithTwoDashes(),
		flag.Text(blobs, "blobs", "PLACE", "Where files and plans lie.").WithTwoDashes(),
	}
}

// fromSettings is the value of --on that selects the engine in the CLI configuration.
const fromSettings = "temporal"

// engineOf completes --on and --blobs from the temporal block of the CLI configuration.
func engineOf(c *command.Call, f *unitflags.Flags) diag.List {
	if f.On == "" {
		return nil
	}
	cfg, ds := c.Directory.Settings()
	if ds.HasErrors() {
		return ds
	}
	t := cfg.Temporal
	f.Blobs = cmp.Or(f.Blobs, t.Blobs)
	if f.On != fromSettings {
		return nil
	}
	if t.Address == "" {
		return diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "--on %s is the engine of the temporal block in the CLI configuration, which has no address there. Write one, or --on temporal://HOST:PORT/NAMESPACE/QUEUE.", fromSettings)
	}
	f.On = fmt.Sprintf("temporal://%s/%s/%s", t.Address, cmp.Or(t.Namespace, "default"), cmp.Or(t.Queue, "terrace"))
	return nil
}

// idleEngineFlag returns an error text for a flag that needs --on or several units. Without
// the error, the user might believe that the run uses workers. It returns "" if all flags fit.
func idleEngineFlag(f *unitflags.Flags) string {
	switch {
	case f.On == "" && f.Detach:
		return "--detach leaves a run to the workers of --on, which is missing."
	case f.On == "" && f.InPlace:
		return "--in-place is about the workers of --on, which is missing."
	case f.On != "" && !f.Many():
		return "--on gives the units of an estate to workers, and needs --all, a filter or --graph."
	}
	return ""
}

// engineEnv returns the environment of terrace-worker. Values from the CLI configuration
// supplement variables that are not set.
func engineEnv(c *command.Call) sys.Env {
	cfg, ds := c.Directory.Settings()
	if ds.HasErrors() {
		return c.Env // these errors are already reported, or do not concern the engine
	}
	t, out := cfg.Temporal, slices.Clone(c.Env)
	for _, x := range [][2]string{
		{"TERRACE_TEMPORAL_TLS_CERT", t.TLSCert}, {"TERRACE_TEMPORAL_TLS_KEY", t.TLSKey}, {"TERRACE_TEMPORAL_TLS_CA", t.TLSCA},
		{"TERRACE_TEMPORAL_TLS_SERVER_NAME", t.TLSServerName}, {"TERRACE_TEMPORAL_API_KEY", t.APIKey},
	} {
		if x[1] != "" && c.Env.Get(x[0]) == "" {
			out = append(out, x[0]+"="+x[1])
		}
	}
	return out
}

// aboutRuns are the words after run that concern runs on an engine.
var aboutRuns = []string{"attach", "list", "cancel", "logs", "prune"}

// engineWords runs attach, list, cancel, logs and prune, which are part of run with --on. ok
// is false for other words.
func engineWords(ctx context.Context, c *command.Call, f *unitflags.Flags, words []string) (code int, ok bool) {
	if f.On == "" || !slices.Contains(aboutRuns, words[0]) {
		return 0, false
	}
	if ds := engineOf(c, f); ds.HasErrors() {
		return c.Fail(ds), true
	}
	if words[0] != "attach" {
		args := []string{words[0], "--on=" + f.On}
		if f.Blobs != "" {
			args = append(args, "--blobs="+f.Blobs)
		}
		return runWorker(ctx, c, append(args, words[1:]...)...), true
	}
	if len(words) != 2 {
		return c.UsageError("No run given", "Name the run to follow, as \"run --on URL list\" prints it."), true
	}
	job, ds := jobOf(ctx, c, f, words[1])
	if ds.HasErrors() {
		return c.Fail(ds), true
	}
	return attach(ctx, c, f, job), true
}

// jobOf requests the job of a run from the engine.
func jobOf(ctx context.Context, c *command.Call, f *unitflags.Flags, id string) (*remote.Job, diag.List) {
	link, errs, stop := talk(ctx, c)
	defer stop()
	if err := link.Send(remote.Message{Attach: &remote.Attach{Engine: remote.Engine{Version: release.Version, On: f.On, Blobs: f.Blobs}, ID: id}}); err != nil {
		return nil, noWorker(err)
	}
	for {
		m, err := link.Next()
		switch {
		case err != nil:
			if why := stop(); why != nil { // the error of the program explains more than the end of its output
				err = errors.New(whyEnded(why, errs))
			}
			return nil, noWorker(err)
		case m.Failed != "":
			return nil, diag.Errorf(diag.CodeRemoteNotFound, nil, "Distributed run not found", "The run %s on %s cannot be followed: %s.", id, f.On, m.Failed)
		case m.Job != nil:
			return m.Job, nil
		}
	}
}

// attach follows a run in progress, with the options that it was started with.
func attach(ctx context.Context, c *command.Call, f *unitflags.Flags, job *remote.Job) int {
	of := &unitflags.Flags{Units: job.Request.Units, Following: job}
	of.On, of.Blobs, of.Detach, of.Working = f.On, cmp.Or(of.Blobs, f.Blobs), false, f.Working
	r := requested(c, of, job.Request)
	if code := r.readSaved(); code != 0 {
		return code
	}
	return r.start(ctx)
}
