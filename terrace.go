// Package terrace works on one directory of configuration like the command line: it installs
// modules and providers, opens the backend, reads the state, plans, applies with a journal
// that survives a crash, and explains values. It is the starting point for programs that embed
// Terrace. Package engine does the same without backends and installation, for programs that
// store state or start providers themselves.
//
// Main types: Options and Directory. The one rule: only Apply locks the state.
package terrace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Options configures Init and Open. Dir is required.
type Options struct {
	Dir string // directory of the root module, absolute or relative to the working directory of the process

	// Environ is the complete environment, in the form of os.Environ. Terrace passes it to the
	// programs that it starts (providers, provisioners, git), and reads its own settings from it
	// (TF_VAR_*, TF_DATA_DIR, TF_CLI_CONFIG_FILE, HOME, ...). It does not read os.Environ. nil means
	// an empty environment.
	Environ []string

	Vars        []string // values of root variables in the form of -var: "name=value"
	VarFiles    []string // paths of variable files, like -var-file
	Workspace   string   // "" means the workspace that is selected in the directory
	Parallelism int      // maximum number of concurrent provider calls; 0 means 10

	// PluginDirs contains directories with provider packages, in the layout of a filesystem
	// mirror. Init installs providers from these directories only, and records them for later
	// runs, like -plugin-dir. nil means the configured installation methods.
	PluginDirs []string

	// Providers contains the providers that the embedding program implements, by source address.
	// They need no package and have no entry in the lock file. Pass the same ones to Init and Open.
	Providers map[addr.Provider]provider.Factory

	// Provisioners contains the provisioners that the embedding program implements. A type for
	// which Schema returns nil is looked up among the built-in ones. nil means only those.
	Provisioners engine.Provisioners

	BackendConfig []string      // arguments that Init merges into the backend block: "key=value" or the path of a file, like -backend-config
	LockTimeout   time.Duration // how long Apply retries to lock the state; 0 means one attempt

	Observe event.Sink // receives the events of provider calls, possibly concurrently; nil discards them
	// Log receives the output of plugins, and, as a last resort, the text of a state that could
	// not be written anywhere else. nil means standard error.
	Log io.Writer
}

// A Directory is a loaded configuration with its providers and its state. Its methods must not be
// called concurrently. The caller must call Close.
type Directory struct {
	options Options
	dir     *workdir.Directory
	who     string // user@host, for locks
	broken  diag.List

	// The fields below may be nil if broken has errors.
	loaded *workdir.Loaded
	at     *workdir.OpenedBackend
	state  *state.State // nil if there is none
}

// context opens the directory of the options.
func (o Options) context() (d *workdir.Directory, who string, err error) {
	return workdir.Embedded(workdir.Embedding{Dir: o.Dir, Environ: o.Environ, Providers: o.Providers, Provisioners: o.Provisioners, Observe: o.Observe, Log: o.Log})
}

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
	return diag.Errorf(diag.CodeCLIFolder, nil, "Directory cannot be used", "The directory cannot be worked in: %s.", err)
}

// Init initializes a directory like "terrace init": it sets up the backend, installs the modules
// that the configuration calls and the providers that configuration and state need, and writes the
// dependency lock file. It keeps installed packages that match the constraints. It never asks the
// user: a question of "terrace init", such as whether to migrate state, is an error.
func Init(ctx context.Context, o Options) diag.List {
	c, who, err := o.context()
	if err != nil {
		return unusable(err)
	}
	_, ds := setup.Run(ctx, c, setup.Options{BackendConfig: o.BackendConfig, PluginDirs: o.PluginDirs, Vars: o.flags(), Tests: testrun.DefaultDirectory, Who: who}, setup.Silent{})
	return ds
}

// Open loads the configuration, reads the state, and selects the installed providers. It does not
// lock the state. If a killed run has left a journal, the state includes the changes in that journal.
// The Directory is never nil. If there are errors, only Text, Files and Close are usable: Engine and
// State return nil, and the other methods return the errors again.
func Open(ctx context.Context, o Options) (*Directory, diag.List) {
	c, who, err := o.context()
	if err != nil {
		return &Directory{dir: &workdir.Directory{Set: &source.Set{}}, broken: unusable(err)}, unusable(err)
	}
	d := &Directory{options: o, dir: c, who: who}
	ds := d.open(ctx)
	if ds.HasErrors() {
		d.broken = ds.Errors()
	}
	return d, ds
}

func (d *Directory) open(ctx context.Context) diag.List {
	var ds, more diag.List
	if d.loaded, ds = workdir.Load(ctx, d.dir, workdir.LoadOptions{Vars: d.options.flags(), Parallelism: d.options.Parallelism, Workspace: d.options.Workspace}); ds.HasErrors() {
		return ds
	}
	d.at, more = d.loaded.Backend(ctx)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	d.state, more = d.dir.ReadWorkspace(ctx, d.at, d.loaded.Workspace, workdir.StateFiles{})
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	return append(ds, d.loaded.SelectProviders(ctx, d.state)...)
}

// Engine returns the engine of the directory, for callers that store state and journal themselves;
// see engine.ApplyOptions.State. It returns nil if Open returned errors. Close closes the engine.
func (d *Directory) Engine() *engine.Engine {
	if d.broken.HasErrors() {
		return nil
	}
	return d.loaded.Engine
}

// Files returns the texts of all files that were read, from which diag.Printer quotes lines.
func (d *Directory) Files() *source.Set { return d.dir.Set }

// State returns the state as of Open or the last Apply, or nil if there is none. The caller must not
// modify it.
func (d *Directory) State() *state.State { return d.state }

// Plan refreshes the state in memory, compares it with the configuration, and returns the necessary
// changes. It writes nothing except the file o.GenerateTo. Variables in o have precedence over those
// of Options. With errors the plan is nil or marked as errored, and cannot be applied.
func (d *Directory) Plan(ctx context.Context, o engine.PlanOptions) (*plan.Plan, diag.List) {
	if d.broken.HasErrors() {
		return nil, d.broken
	}
	op := d.operation(o.Variables)
	op.Stop = o.Stop
	op.From = d.state
	return op.Plan(ctx, o)
}

// operation returns an operation on the directory without a state. Values in more have precedence
// over those of the directory.
func (d *Directory) operation(more map[string]engine.InputValue) *workdir.Operation {
	op := d.loaded.Operation()
	values := make(map[string]engine.InputValue, len(d.loaded.Vars)+len(more))
	maps.Copy(values, d.loaded.Vars)
	maps.Copy(values, more)
	op.Values = values
	return op
}

// Apply applies a plan that Plan has made, and writes the state, which it locks meanwhile. It returns
// an error if the state has changed since the plan was made. When ctx is done, Apply starts no more
// operations, asks the running ones to stop, and waits for them. Every provider response is written
// to a journal on disk before Apply acts on it. If the process is killed, the next Apply merges the
// journal into the state.
func (d *Directory) Apply(ctx context.Context, p *plan.Plan) (res engine.ApplyResult, ds diag.List) {
	res.State = d.state
	if d.broken.HasErrors() {
		return res, d.broken
	}
	l := workdir.Lock{Timeout: d.options.LockTimeout, Operation: "OperationTypeApply", Who: d.who, Now: d.dir.Now()}
	options, ds := d.loaded.Locked(ctx, d.at, workdir.StateFiles{}, d.dir.Env.Get("TERRACE_JOURNAL"), l)
	if ds.HasErrors() {
		return res, ds
	}
	held, more := workdir.Take(ctx, options, nil)
	if ds = append(ds, more...); held == nil {
		return res, ds
	}
	defer func() {
		d.state = held.Current()
		ds = append(ds, held.Release()...)
	}()
	if now := held.Current(); now != nil && workdir.Stale(p.PrevRun, now) && !p.PrevRun.Equal(now) {
		return res, append(ds, diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is stale", "The plan was made from another state than there is now. Plan again.")...)
	}
	op := d.operation(nil)
	op.State, op.Stop = held, ctx.Done()
	res, more = op.Apply(ctx, p, 0, false)
	return res, append(ds, more...)
}

// Explain explains how the value at an address was computed. address is ADDRESS[.PATH], such as
// "aws_instance.web.tags" or "module.net.var.cidr".
func (d *Directory) Explain(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
	if d.broken.HasErrors() {
		return nil, d.broken
	}
	return d.loaded.Engine.Explain(ctx, address, engine.ExplainOptions{Variables: d.loaded.Vars, State: d.state})
}

// Close stops the providers. It may be called more than once, and returns no errors.
func (d *Directory) Close() diag.List {
	if d.loaded != nil {
		d.loaded.Close()
	}
	return nil
}

// Text formats messages as plain text for users, with the lines of the files that they refer to.
func (d *Directory) Text(ds diag.List) string {
	var b strings.Builder
	printer := diag.Printer{Set: d.Files()}
	for _, m := range ds {
		fmt.Fprintln(&b, printer.Text(m))
	}
	return b.String()
}
