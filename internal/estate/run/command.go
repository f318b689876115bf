package run

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/plan"
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
	// Fits says whether init has to run since the backend is not that which it set up, once
	// modules and providers are there. May be nil.
	Fits func(ctx context.Context, u *discovery.Unit, s *Site, e *engine.Engine, values map[string]engine.InputValue) bool
	// Do runs the command and returns its status, of which 2 is success with changes, and
	// the errors that it reported.
	Do func(ctx context.Context, u *discovery.Unit, s *Site) (code int, reported diag.List)
}

// prepareCommand makes the working directory ready for a command. With idle there is nothing
// left that it could destroy.
func (t *Turn) prepareCommand(ctx context.Context) (idle bool, ds diag.List) {
	cmd := t.o.Command
	t.res.Set = cmd.Set(t.Unit)
	t.Dirs.Own(t.at.dir, t.res.Set)
	if cmd.Look {
		return false, nil
	}
	if _, ds := t.at.dir.Encryption(); ds.HasErrors() { // else the state would be written in the clear
		return false, ds
	}
	if ds = t.at.dir.Make(); ds.HasErrors() {
		return false, ds
	}
	if t.Command == "init" || !cmd.Uninitialized {
		if ds = append(ds, t.preHooks(ctx)...); ds.HasErrors() {
			return false, ds
		}
		if ds = append(ds, t.CheckBackend()...); ds.HasErrors() {
			return false, ds
		}
		if ds = append(ds, t.reread()...); ds.HasErrors() {
			return false, ds
		}
	}
	if !cmd.Uninitialized {
		if ds = append(ds, t.initialize(ctx)...); ds.HasErrors() {
			return false, ds
		}
	}
	if root := t.at.dir.Root(); cmd.NeedsInputs && root != nil { // else the command tells what is wrong
		_, more := t.at.Values(root)
		if more.HasErrors() && t.gone(ctx) {
			return true, ds
		}
		ds = append(ds, more.Errors()...) // warnings come with the command
	}
	return false, ds
}

// gone reports whether the unit is to be destroyed and has no objects, for a command whose
// inputs have errors.
func (t *Turn) gone(ctx context.Context) bool {
	if t.mode() != plan.Destroy {
		return false
	}
	_, ds := t.openEngine(ctx)
	if t.engine != nil {
		defer func() {
			t.engine.Close()
			t.engine = nil
		}()
	}
	if t.engine == nil || ds.HasErrors() {
		return false
	}
	empty, ds := t.nothingLeft(ctx)
	return empty && !ds.HasErrors()
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
	values, _, _ := t.at.variables(t.engine.Root().Variables)
	if t.o.Command.Fits == nil || t.o.Command.Fits(ctx, t.Unit, t.at, t.engine, values) {
		return nil
	}
	return t.install(ctx)
}

// checkSelf is the error about a dependency of the unit that turns out to be itself, where
// the module takes what is made of it.
func (t *Turn) checkSelf() diag.List {
	return t.Unit.Using(func(name string) bool {
		root := t.at.dir.Root()
		return root == nil || root.Variables[name] != nil
	}).CheckSelf(t.task)
}

// reread takes over what hooks changed in the directory.
func (t *Turn) reread() diag.List {
	if !t.hooksRan {
		return nil
	}
	if _, err := t.at.dir.Reread(); err != nil {
		return diag.Errorf(nil, "Failed to read the working folder", "%s.", err)
	}
	return nil
}

// command runs the command between the hooks of the unit.
func (t *Turn) command(ctx context.Context) diag.List {
	cmd := t.o.Command
	if cmd.Look {
		var ds diag.List
		t.res.Code, ds = cmd.Do(ctx, t.Unit, t.at)
		return t.failed(ds)
	}
	ds := t.tell(t.Unit, append(t.beforeHooks(ctx), t.reread()...))
	if !ds.HasErrors() {
		code, reported := cmd.Do(ctx, t.Unit, t.at)
		t.res.Code = code
		ds = append(ds, t.failed(reported)...)
	}
	code := t.res.Code
	after := t.tell(t.Unit, append(t.afterHooks(ctx, ds), t.at.dir.KeepLock()...))
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
