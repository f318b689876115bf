package run

import (
	"context"
	"maps"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/source"
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
	// ChecksInputs says that the command looks at the inputs, and reports what is wrong with
	// them itself. Where it neither needs nor checks them, nothing is said of them.
	ChecksInputs bool
	// Fits says whether init has to run since the backend is not that which it set up, once
	// modules and providers are there. May be nil.
	Fits func(ctx context.Context, u *discovery.Unit, s *Site, e *engine.Engine, values map[string]engine.InputValue) bool
	// Do runs the command and returns its status, of which 2 is success with changes, and
	// the errors that it reported.
	Do func(ctx context.Context, u *discovery.Unit, s *Site) (code int, reported diag.List)
}

// commandWork is a Command in the folder of a unit.
type commandWork struct {
	*Turn
	cmd *Command
}

// excluded implements work: who names a unit means it.
func (w *commandWork) excluded() (bool, diag.List) { return false, nil }

// found implements work.
func (w *commandWork) found() (idle bool, ds diag.List) {
	// A dependency of the unit may turn out to be the unit itself, which matters where the
	// module takes what is made of it.
	used := w.Unit.Using(func(name string) bool {
		root := w.at.dir.Root()
		return root == nil || root.Variables[name] != nil
	})
	if ds = used.CheckSelf(w.task); ds.HasErrors() {
		return false, ds
	}
	if part := w.at.dir.Waits; part != "" {
		return false, diag.Errorf(diag.CodeEstateOutputsNotKnown, nil, "Outputs are not known", "This depends on outputs of other units that are not known yet: %s. Apply the units that it depends on first.", part)
	}
	return false, nil
}

// ready implements work. There is nothing to do where nothing is left that the command could
// destroy.
func (w *commandWork) ready(ctx context.Context) (idle bool, ds diag.List) {
	if !w.cmd.Look {
		if ds = w.States.Prepare(ctx, w.Unit.Name, w.at.dir, w.at.Environ()); ds.HasErrors() {
			return false, ds
		}
	}
	w.res.Set = w.cmd.Set(w.Unit)
	w.Dirs.Own(w.at.dir, w.res.Set)
	if w.cmd.Look {
		return false, ds
	}
	if _, more := w.at.dir.Encryption(); more.HasErrors() { // else the state would be written in the clear
		return false, append(ds, more...)
	}
	if ds = append(ds, w.at.dir.Make()...); ds.HasErrors() {
		return false, ds
	}
	if w.Command == "init" || !w.cmd.Uninitialized {
		_, more := w.beforeInit(ctx)
		if ds = append(ds, more...); ds.HasErrors() {
			return false, ds
		}
		root := w.at.dir.Root()
		if root != nil && w.configures() {
			ds = append(ds, w.unconfigured(root)...)
		}
		if ds = append(ds, workcopy.NoBackendBlock(w.Unit.Called(), w.at.dir.Remote, root)...); ds.HasErrors() {
			return false, ds
		}
	}
	if !w.cmd.Uninitialized {
		if ds = append(ds, w.initialize(ctx)...); ds.HasErrors() {
			return false, ds
		}
	}
	if root := w.at.dir.Root(); w.cmd.NeedsInputs && root != nil { // else the command tells what is wrong
		more := siteUnit{w.at}.All(ctx, workdir.Variables{}, root)
		if more.HasErrors() && w.nothingLeft(ctx) {
			return true, ds
		}
		ds = append(ds, more.Errors()...) // warnings come with the command
	}
	return false, ds
}

// configures reports whether the command is about the configuration, as operations of a run
// are: it says nothing of a unit that has none.
func (w *commandWork) configures() bool {
	switch w.Command {
	case "plan", "apply", "validate": // init may bring it, by -from-module
		return true
	}
	return false
}

// nothingLeft reports whether the unit is to be destroyed and has no objects, for a command
// whose inputs have errors.
func (w *commandWork) nothingLeft(ctx context.Context) bool {
	if !w.state.destroys {
		return false
	}
	_, ds := w.module.open(ctx)
	defer w.module.close()
	if w.module.engine == nil || ds.HasErrors() {
		return false
	}
	empty, ds := w.state.nothingLeft(ctx, w.module)
	return empty && !ds.HasErrors()
}

// initialize runs init in the working directory where something is missing that a command
// needs. What else is wrong is reported by the command itself.
func (w *commandWork) initialize(ctx context.Context) diag.List {
	if w.Host.Init == nil {
		return nil
	}
	installed, ds := w.module.open(ctx)
	defer w.module.close()
	if w.module.engine == nil || ds.HasErrors() {
		if installed {
			return ds.Errors()
		}
		return nil
	}
	declared := w.module.root().Variables
	values, _, _ := w.at.variables(declared)
	own, _ := workdir.CollectVariables(workdir.VarSources{Flags: w.Host.VarsOfCommand.typed(), Set: w.Host.Texts, Read: w.Host.Files()}, declared) // the command reports what is wrong with them
	maps.Copy(values, own)
	if w.cmd.Fits == nil || w.cmd.Fits(ctx, w.Unit, w.at, w.module.engine, values) {
		return nil
	}
	return w.module.install(ctx)
}

// run implements work.
func (w *commandWork) run(ctx context.Context) diag.List {
	if w.cmd.Look {
		var ds diag.List
		w.res.Code, ds = w.cmd.Do(ctx, w.Unit, w.at)
		return w.failed(ds)
	}
	ds := w.hooks.before(ctx)
	_, more := w.hooks.reread()
	if ds = w.tell(w.Unit, append(ds, more...)); !ds.HasErrors() {
		code, reported := w.cmd.Do(ctx, w.Unit, w.at)
		w.res.Code = code
		ds = append(ds, w.failed(reported)...)
	}
	code := w.res.Code
	after := w.tell(w.Unit, append(w.hooks.after(ctx, ds), w.at.dir.KeepLock()...))
	w.res.Code = max(code, w.res.Code)
	return append(ds, after...)
}

// failed are the errors of a command that it reported, or one about its status if there are
// none.
func (w *commandWork) failed(reported diag.List) diag.List {
	switch code := w.res.Code; {
	case code == 0 || code == 2:
		return nil
	case reported.HasErrors():
		return reported.Errors()
	default:
		return diag.Errorf(diag.CodeEstateCommandFailed, nil, "Command failed", "The command %s ended with the status %d.", w.Command, code)
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
