// Package terrace works on a directory of configuration as the program does: it installs
// modules and providers, opens the backend, reads the state, plans, applies with a journal
// that survives a crash, and explains values. Programs that embed Terrace start here. Package
// engine below it does the same without files and backends, for programs that keep state and
// start providers in their own ways.
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
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
)

// Options say which directory to work on and with what. Dir is required.
type Options struct {
	Dir string // the directory of the root module

	// Environ is the complete environment, as os.Environ returns it: of the programs
	// that are started (providers, provisioners, git), and of the settings that the
	// command line reads there (TF_VAR_*, TF_DATA_DIR, TF_CLI_CONFIG_FILE, HOME, ...).
	Environ []string

	Vars        []string // values of root variables, as -var takes them: "name=value"
	VarFiles    []string // variable files, as -var-file takes them
	Workspace   string   // "" for the one that is selected in the directory
	Parallelism int      // calls of providers at once; 0 means 10

	// PluginDirs are directories with provider packages, in the layout of a filesystem mirror.
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

// A Directory is configuration with its providers and its state. Its methods must not be
// called concurrently.
type Directory struct {
	options Options
	dir     *workdir.Directory
	who     string // user@host, for locks
	broken  diag.List

	// The rest is nil if broken has errors.
	loaded *workdir.Loaded
	at     *workdir.OpenedBackend
	state  *state.State // nil if there is none
}

// context is the directory for the options.
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

// Init makes a directory ready: it sets up the backend, installs the modules that the
// configuration calls and the providers that configuration and state need, and writes the
// dependency lock file, as "terrace init" does. What fits already is left alone.
func Init(ctx context.Context, o Options) diag.List {
	c, who, err := o.context()
	if err != nil {
		return unusable(err)
	}
	_, ds := setup.Run(ctx, c, setup.Options{BackendConfig: o.BackendConfig, PluginDirs: o.PluginDirs, Vars: o.flags(), Tests: testrun.DefaultDirectory, Who: who}, setup.Silent{})
	return ds
}

// Open loads the configuration, reads the state, and finds the installed providers. The state
// is not locked; what the journal of a killed run contains counts as part of it. With errors
// the Directory has only its messages: Text, Files and Close work, and all other methods
// return the errors again.
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

// Engine is the engine that works on the directory: with the providers of the directory, and a
// state and a journal of the caller's own in engine.ApplyOptions.State. It is nil if Open
// returned errors.
func (d *Directory) Engine() *engine.Engine {
	if d.broken.HasErrors() {
		return nil
	}
	return d.loaded.Engine
}

// Files are the texts of the files that were read, from which diag.Printer cuts snippets.
func (d *Directory) Files() *source.Set { return d.dir.Set }

// State is the state as it was when the directory was opened or a plan was applied last; nil
// if there is none. It must not be changed.
func (d *Directory) State() *state.State { return d.state }

// Plan compares configuration and state with what there is, and returns what has to be done.
// Variables in o are used besides those of the directory, and win over them.
func (d *Directory) Plan(ctx context.Context, o engine.PlanOptions) (*plan.Plan, diag.List) {
	if d.broken.HasErrors() {
		return nil, d.broken
	}
	op := d.operation(o.Variables)
	op.Stop = o.Stop
	op.From = d.state
	return op.Plan(ctx, o)
}

// operation is an operation on the directory, without a state.
func (d *Directory) operation(more map[string]engine.InputValue) *workdir.Operation {
	op := d.loaded.Operation()
	values := make(map[string]engine.InputValue, len(d.loaded.Vars)+len(more))
	maps.Copy(values, d.loaded.Vars)
	maps.Copy(values, more)
	op.Values = values
	return op
}

// Apply carries out a plan that Plan made. It locks the state meanwhile, and refuses the plan
// if somebody else has changed the state since. When the context ends, calls that are under way
// are ended in good order and nothing more is begun. What a provider has answered is on disk
// before it counts: if the process is killed, the next Apply brings it into the state.
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
	res, more = op.Apply(ctx, p, 0)
	return res, append(ds, more...)
}

// Explain says where the value at ADDRESS[.PATH] comes from, such as
// "aws_instance.web.tags" or "module.net.var.cidr".
func (d *Directory) Explain(ctx context.Context, address string) (*engine.Explanation, diag.List) {
	if d.broken.HasErrors() {
		return nil, d.broken
	}
	return d.loaded.Engine.Explain(ctx, address, engine.ExplainOptions{Variables: d.loaded.Vars, State: d.state})
}

// Close ends the providers. It may be called more than once.
func (d *Directory) Close() diag.List {
	if d.loaded != nil {
		d.loaded.Close()
	}
	return nil
}

// Text is messages as plain text for people, with the lines that they are about.
func (d *Directory) Text(ds diag.List) string {
	var b strings.Builder
	printer := diag.Printer{Set: d.Files()}
	for _, m := range ds {
		fmt.Fprintln(&b, printer.Text(m))
	}
	return b.String()
}
