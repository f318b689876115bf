package run

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Command is what a run does with units in place of an operation of its own: something
// that works in the unit's working directory as in any folder. Around it is all that is
// around an operation: credentials, init, hooks, and the errors block.
type Command struct {
	// Uninitialized says that the command does without an initialized directory.
	Uninitialized bool
	// Look says that the command only looks: the directory is not made, and nothing runs
	// around it.
	Look bool
	// Set gets the text of the module's files.
	Set func(u *discovery.Unit) *source.Set
	// Begin is called before anything is done for a unit, which is left alone unless it is
	// to go on. May be nil.
	Begin func(ctx context.Context, u *discovery.Unit) (goOn bool, ds diag.List)
	// NeedsInputs says that the command computes with the inputs: what is wrong with them
	// is reported before anything runs.
	NeedsInputs bool
	// Fits says whether init has to run since the backend is not that which it set up, once
	// modules and providers are there. May be nil.
	Fits func(ctx context.Context, t *Turn, e *engine.Engine, values map[string]engine.InputValue) bool
	// Do runs the command and returns its status, of which 2 is success with changes, and
	// the errors that it reported.
	Do func(ctx context.Context, t *Turn) (code int, reported diag.List)
}

// prepareCommand makes the working directory ready for a command.
func (t *Turn) prepareCommand(ctx context.Context) diag.List {
	cmd := t.o.Command
	t.res.Set = cmd.Set(t.Unit)
	t.Dirs.Own(t.dir, t.res.Set)
	if cmd.Look {
		return nil
	}
	ds := t.dir.Make()
	if ds.HasErrors() {
		return ds
	}
	if t.Command == "init" || !cmd.Uninitialized {
		if ds = append(ds, t.preHooks(ctx)...); ds.HasErrors() {
			return ds
		}
		if ds = append(ds, t.CheckBackend()...); ds.HasErrors() {
			return ds
		}
		if ds = append(ds, t.reread()...); ds.HasErrors() {
			return ds
		}
	}
	if !cmd.Uninitialized {
		if ds = append(ds, t.initialize(ctx)...); ds.HasErrors() {
			return ds
		}
	}
	if root := t.dir.Root(); cmd.NeedsInputs && root != nil { // else the command tells what is wrong
		_, more := t.Values(root)
		ds = append(ds, more.Errors()...) // warnings come with the command
	}
	return ds
}

// initialize runs init in the working directory where something is missing that a command
// needs. What else is wrong is told by the command itself.
func (t *Turn) initialize(ctx context.Context) diag.List {
	if t.Host.Init == nil {
		return nil
	}
	installed, ds := t.openEngine(ctx)
	if t.engine != nil {
		defer func() {
			t.engine.Close()
			t.engine = nil
		}()
	}
	if t.engine == nil || ds.HasErrors() {
		if installed {
			return ds.Errors()
		}
		return nil
	}
	values, _, _ := t.variables(t.engine.Root().Variables)
	if t.o.Command.Fits == nil || t.o.Command.Fits(ctx, t, t.engine, values) {
		return nil
	}
	return t.install(ctx)
}

// checkSelf is the error about a dependency of the unit that turns out to be itself, where
// the module takes what is made of it.
func (t *Turn) checkSelf() diag.List {
	return t.Unit.Using(func(name string) bool {
		root := t.dir.Root()
		return root == nil || root.Variables[name] != nil
	}).CheckSelf(t.task)
}

// reread takes over what hooks changed in the directory.
func (t *Turn) reread() diag.List {
	if !t.hooksRan {
		return nil
	}
	if _, err := t.dir.Reread(); err != nil {
		return diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	}
	return nil
}

// command runs the command between the hooks of the unit.
func (t *Turn) command(ctx context.Context) diag.List {
	cmd := t.o.Command
	if cmd.Look {
		var ds diag.List
		t.res.Code, ds = cmd.Do(ctx, t)
		return t.failed(ds)
	}
	ds := t.tell(t.Unit, append(t.beforeHooks(ctx), t.reread()...))
	if !ds.HasErrors() {
		code, reported := cmd.Do(ctx, t)
		t.res.Code = code
		ds = append(ds, t.failed(reported)...)
	}
	code := t.res.Code
	after := t.tell(t.Unit, append(t.afterHooks(ctx, ds), t.dir.KeepLock()...))
	t.res.Code = max(code, t.res.Code)
	return append(ds, after...)
}

// failed are the errors of a command that it reported, or one about its status if there are
// none.
func (t *Turn) failed(reported diag.List) diag.List {
	switch code := t.res.Code; {
	case code == 0 || code == 2:
		return nil
	case reported.HasErrors():
		return reported.Errors()
	default:
		ds := diag.Errorf(nil, "Command failed", "The command %s ended with the status %d.", t.Command, code)
		ds[0].Code = "estate/command-failed"
		return ds
	}
}

// begin asks the command whether it goes on with a unit. What is wrong is the unit's
// failure.
func (x *execution) begin(ctx context.Context, res *report.Result) (goOn bool) {
	if x.o.Command == nil || x.o.Command.Begin == nil {
		return true
	}
	goOn, ds := x.o.Command.Begin(ctx, res.Unit)
	res.Diags = append(res.Diags, x.tell(res.Unit, ds)...)
	if ds.HasErrors() {
		res.Fail(ds)
		return false
	}
	return goOn
}

// tell reports messages at once, if somebody wants that.
func (x *execution) tell(u *discovery.Unit, ds diag.List) diag.List {
	if x.o.Observe.Messages != nil && len(ds) > 0 {
		x.o.Observe.Messages(u, ds)
	}
	return ds
}

// Dir is the working directory.
func (t *Turn) Dir() string { return t.dir.Path }

// Home is the folder for what must outlive the working directory, which may be a cache.
func (t *Turn) Home() string { return t.States.Home(t.dir.Unit) }

// Files is the working directory as it is read, from where things lie. Each file of
// configuration is opened once.
func (t *Turn) Files() config.FS { return t.dir.Files }

// Sources is the configuration in the working directory.
func (t *Turn) Sources() *engine.Sources { return &t.dir.Parsed.Sources }

// Secret are the generated files in the working directory whose text must not be shown.
func (t *Turn) Secret() []string { return t.dir.Files.Secret }

// Locate is where a file of the working directory comes from, as workdir.Dir.Origin tells
// it.
func (t *Turn) Locate(name string) (path, layer string) { return t.dir.Origin(name) }

// Environ is the environment of the unit, and Programs that of the programs that run for
// it, which has its inputs.
func (t *Turn) Environ() sys.Env                     { return t.environ() }
func (t *Turn) Programs(ctx context.Context) sys.Env { return t.programs(ctx) }

// Words are what extra_arguments add to the words of the command.
func (t *Turn) Words() []string { return t.extra.Words }

// Backend are the arguments of init that a remote_state without generate stands for, as
// -backend-config has them.
func (t *Turn) Backend() []string { return backendArguments(t.dir) }

// Values are the values that the unit, and what extra_arguments add, give the variables
// that a module declares. What is wrong with them is told as before a run.
func (t *Turn) Values(root *config.Module) (map[string]engine.InputValue, diag.List) {
	values, _, ds := t.variables(root.Variables)
	return values, append(ds, t.checkInputs(root.Variables)...)
}

// Refer is the value of a reference in the language of units, seen from the unit.
func (t *Turn) Refer(ref hcl.Traversal) (cty.Value, diag.List) { return t.Unit.Refer(t.task, ref) }

// checkInputs holds the inputs to what the module declares.
func (t *Turn) checkInputs(declared map[string]*config.Variable) diag.List {
	var ds diag.List
	if t.Inputs.Debug {
		ds = inputs.WriteDebug(t.task, t.Unit.Unit, t.Unit.Name, declared)
	}
	return append(ds, t.Unit.CheckInputs(t.task, inputs.Optional(declared), t.Inputs.Strict)...)
}
