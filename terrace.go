// Package terrace works on a folder of configuration as the program does: it installs
// modules and providers, opens the backend, locks the state, plans, applies with a
// journal that survives a crash, and explains values. Programs that embed Terrace
// start here; package engine below it does the same without files and backends, for
// those that keep state and start providers in their own ways.
//
// Main types: Options and Folder. The one rule: a Folder that was opened holds the lock
// of its state until it is closed.
package terrace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Options say which folder to work on and with what. Dir is required.
type Options struct {
	Dir string // the folder of the root module

	// Environ is the complete environment, as os.Environ returns it: of the programs
	// that are started (providers, provisioners, git), and of the settings that the
	// command line reads there (TF_VAR_*, TF_DATA_DIR, TF_CLI_CONFIG_FILE, HOME, ...).
	Environ []string

	Vars        []string // values of root variables, as -var takes them: "name=value"
	VarFiles    []string // variable files, as -var-file takes them
	Workspace   string   // "" for the one that is selected in the folder
	Parallelism int      // calls of providers at once; 0 means 10

	// PluginDirs are folders with provider packages, in the layout of a filesystem mirror.
	// Init searches them in place of everything else and remembers it, as -plugin-dir.
	PluginDirs []string

	// Providers are those that the program has itself, by their source address: they need no
	// package, and are in no lock file. Init and Open must be given the same ones.
	Providers map[addr.Provider]provider.Factory

	// Provisioners are types of provisioners that the program has itself. Those that it does
	// not know (Schema is nil) are the built-in ones; nil: there are no others.
	Provisioners engine.Provisioners

	BackendConfig []string      // what Init adds to the backend block, as -backend-config takes it
	LockTimeout   time.Duration // how long to try for the lock of the state; 0: once

	Observe event.Sink // hears what providers are asked and what they answer; nil: nobody
	// Log gets what plugins write if TF_LOG asks for it, and as a last resort the text of
	// a state that could be written nowhere else. Nil is standard error.
	Log io.Writer
}

// A Folder is configuration with its providers and its locked state.
type Folder struct {
	context *workdir.Directory
	project *workdir.Loaded
	op      *workdir.Operation
	state   *workdir.OpenState
}

// context is the folder without anybody who could be asked, and without signals: they are the
// embedding program's business.
func (o Options) context() (c *workdir.Directory, who string, err error) {
	system, err := sys.Real()
	if err != nil {
		return nil, "", err
	}
	dir := o.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(system.Dir, dir)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fmt.Errorf("%s is no folder", dir)
	}
	log := o.Log
	if log == nil {
		log = system.Stderr
	}
	who = system.User() + "@" + system.Host()
	f := &workdir.Directory{
		Dir: dir, Launch: dir, Env: o.Environ, User: journal.UserOf(o.Environ), Now: system.Now, Stderr: log, Run: system.Run, Executable: system.Executable,
		Hashes: &install.Hashes{}, Files: &readfile.Kept{}, Providers: o.Providers, Provisioners: o.Provisioners,
	}
	backends := f.NewBackends(who)
	f.Backends = func() *backend.Set { return backends }
	f.Set, f.Host = &source.Set{}, host{observe: o.Observe, log: log}
	return f, who, nil
}

// host is the Host of an embedding program.
type host struct {
	workdir.Silent
	observe event.Sink // nil: nobody
	log     io.Writer
}

func (h host) Event(e event.Event) {
	if h.observe != nil {
		h.observe(e)
	}
}

func (h host) Rescue(text []byte) diag.List { return workdir.Rescue(h.log, text) }

func (o Options) flags() []workdir.VarFlag {
	var out []workdir.VarFlag
	for _, v := range o.VarFiles {
		out = append(out, workdir.VarFlag{File: true, Value: v})
	}
	for _, v := range o.Vars {
		out = append(out, workdir.VarFlag{Value: v})
	}
	return out
}

func unusable(err error) diag.List {
	return diag.Errorf(diag.CodeCLIFolder, nil, "Folder cannot be used", "The folder cannot be worked in: %s.", err)
}

// Init makes a folder ready: it sets up the backend, installs the modules that the
// configuration calls and the providers that configuration and state need, and writes
// the dependency lock file, as "terrace init" does. What fits already is left alone.
func Init(ctx context.Context, o Options) diag.List {
	c, who, err := o.context()
	if err != nil {
		return unusable(err)
	}
	_, ds := setup.Run(ctx, c, setup.Options{BackendConfig: o.BackendConfig, PluginDirs: o.PluginDirs, Vars: o.flags(), Tests: testrun.DefaultDirectory, Who: who}, nil)
	return ds
}

// Open loads the configuration, locks and reads the state, brings in what the journal of
// a killed run holds, which a warning tells, and finds the installed providers. With
// errors there is no Folder and nothing is locked.
func Open(ctx context.Context, o Options) (*Folder, diag.List) {
	c, who, err := o.context()
	if err != nil {
		return nil, unusable(err)
	}
	p, ds := workdir.Load(ctx, c, workdir.LoadOptions{Vars: o.flags(), Parallelism: o.Parallelism, Workspace: o.Workspace})
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := o.take(ctx, c, p, who)
	if ds = append(ds, more...); st == nil {
		p.Close()
		return nil, ds
	}
	op := p.Operation()
	op.State = st
	f := &Folder{context: c, project: p, op: op, state: st}
	if more = op.Ready(ctx, st.Current()); more.HasErrors() {
		return nil, append(append(ds, more...), f.Close()...)
	}
	return f, append(ds, more...)
}

// take locks and reads the state. Without one it is nil.
func (o Options) take(ctx context.Context, c *workdir.Directory, p *workdir.Loaded, who string) (*workdir.OpenState, diag.List) {
	at, ds := p.Backend(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	st, more := workdir.OpenStore(at.Opened, p.Workspace, c.StoreOptions(ctx, at))
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	place := workdir.StatePlace{
		Store: st, Workspace: p.Workspace, Dir: c.Dir, Encryption: at.Encryption, User: c.User,
		KeepSegments: workdir.KeepSegmentsOf(c.Env.Get("TERRACE_JOURNAL"), p.Plugins.Config.JournalInStore),
		Host:         c.Host,
	}
	held, more := workdir.Take(ctx, place.Locked(ctx, workdir.Lock{Timeout: o.LockTimeout, Operation: "OperationTypeApply", Who: who, Now: c.Now()}), nil)
	return held, append(ds, more...)
}

// Engine is the engine that works on the folder: with the providers of the folder, and a
// state and a journal of the caller's own in engine.ApplyOptions.State.
func (f *Folder) Engine() *engine.Engine { return f.project.Engine }

// Files are the texts of the files that were read, from which diag.Printer cuts snippets.
func (f *Folder) Files() *source.Set { return f.context.Set }

// State is the state as it is now, nil if there is none. It must not be changed.
func (f *Folder) State() *state.State { return f.state.Current() }

// Plan compares configuration and state with what there is, and says what has to be
// done. Variables in o are used besides those of the folder, and win over them.
func (f *Folder) Plan(ctx context.Context, o engine.PlanOptions) (*plan.Plan, diag.List) {
	op := *f.op
	op.Values, op.Stop = f.variables(o.Variables), o.Stop
	return op.Plan(ctx, o)
}

// Apply carries out a plan of this Folder. When the context ends, calls that are under way
// are ended in good order and nothing more is begun. What a provider has answered is on
// disk before it counts: if the process is killed, the next Open brings it into the state.
func (f *Folder) Apply(ctx context.Context, p *plan.Plan) (engine.ApplyResult, diag.List) {
	if f.state.Current() != nil && workdir.Stale(p.PrevRun, f.state.Current()) {
		return engine.ApplyResult{State: f.State()}, diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is stale", "The plan was made from another state than there is now. Plan again.")
	}
	op := *f.op
	op.Stop = ctx.Done()
	return op.Apply(ctx, p, 0)
}

// Explain tells where the value at ADDRESS[.PATH] comes from, such as
// "aws_instance.web.tags" or "module.net.var.cidr".
func (f *Folder) Explain(ctx context.Context, address string) (*engine.Explanation, diag.List) {
	return f.project.Engine.Explain(ctx, address, engine.ExplainOptions{Variables: f.project.Vars, State: f.state.Current()})
}

// Close ends the providers and unlocks the state. It may be called more than once.
func (f *Folder) Close() diag.List {
	f.project.Close()
	return f.state.Release()
}

func (f *Folder) variables(more map[string]engine.InputValue) map[string]engine.InputValue {
	out := make(map[string]engine.InputValue, len(f.project.Vars)+len(more))
	maps.Copy(out, f.project.Vars)
	maps.Copy(out, more)
	return out
}

// Text is messages as plain text for people, with the lines that they are about.
func (f *Folder) Text(ds diag.List) string {
	var b strings.Builder
	printer := diag.Printer{Set: f.Files()}
	for _, m := range ds {
		fmt.Fprintln(&b, printer.Text(m))
	}
	return b.String()
}
