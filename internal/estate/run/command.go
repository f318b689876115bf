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

// A Command replaces the operation of a run. It works in the working directory of each unit, as
// it would in any directory. The run does the same around it as around an operation: credentials,
// init, hooks and the errors block.
type Command struct {
	// Uninitialized means that the command does not need an initialized directory.
	Uninitialized bool
	// Look means that the command only reads: the run neither creates the working directory nor
	// runs hooks or init.
	Look bool
	// Set returns the source text of the module's files, for messages.
	Set func(u *discovery.Unit) *source.Set
	// Begin is called before any work on a unit. The run skips the unit if goOn is false, and
	// reports errors as the unit's failure. Begin may be nil.
	Begin func(ctx context.Context, u *discovery.Unit) (goOn bool, ds diag.List)
	// NeedsInputs means that the command evaluates with the inputs. Errors in the inputs are
	// reported before anything runs.
	NeedsInputs bool
	// ChecksInputs means that the command reads the inputs and reports their errors itself. If
	// neither NeedsInputs nor ChecksInputs is set, errors in the inputs are not reported.
	ChecksInputs bool
	// Fits reports whether the initialized directory matches the configured backend. If it does
	// not, init runs before the command. Fits is called after modules and providers are
	// installed. It may be nil, which means true.
	Fits func(ctx context.Context, u *discovery.Unit, s *Site, e *engine.Engine, values map[string]engine.InputValue) bool
	// Do runs the command. It returns the exit status, where 2 means success with changes, and
	// the errors that the command has already reported.
	Do func(ctx context.Context, u *discovery.Unit, s *Site) (code int, reported diag.List)
}

// commandWork runs a Command in the directory of a unit.
type commandWork struct {
	*Turn
	cmd *Command
}

// excluded implements work. It ignores exclude blocks, since the user named the unit.
func (w *commandWork) excluded() (bool, diag.List) { return false, nil }

// found implements work.
func (w *commandWork) found() (idle bool, ds diag.List) {
	// A dependency of the unit may be the unit itself. This only matters for
	// dependencies that the inputs declared by the module use.
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

// ready implements work. It returns idle if the command is a destroy and the unit has no objects
// left.
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
	if _, more := w.at.dir.Encryption(); more.HasErrors() { // otherwise the state would be written unencrypted
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
	if root := w.at.dir.Root(); w.cmd.NeedsInputs && root != nil { // otherwise the command reports errors in the inputs
		more := siteUnit{w.at}.All(ctx, workdir.Variables{}, root)
		if more.HasErrors() && w.nothingLeft(ctx) {
			return true, ds
		}
		ds = append(ds, more.Errors()...) // the command reports the warnings
	}
	return false, ds
}

// configures reports whether the command is an error for a unit without configuration, as plan,
// apply and validate are. Other commands accept such a unit.
func (w *commandWork) configures() bool {
	switch w.Command {
	case "plan", "apply", "validate": // init is absent: its -from-module may add the configuration
		return true
	}
	return false
}

// nothingLeft reports whether the command destroys the unit and the unit has no objects left. It
// is used if the inputs have errors.
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

// initialize runs init in the working directory if modules, providers or the backend are not set
// up. It leaves all other errors to the command.
func (w *commandWork) initialize(ctx context.Context) diag.List {
	if !w.Host.initializes() {
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
	own, _ := workdir.CollectVariables(workdir.VarSources{Flags: w.Host.VarsOfCommand.typed(), Set: w.Host.Texts, Read: w.Host.Files()}, declared) // the command reports their errors
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

// failed returns the errors of the command: those it reported or, if it reported none, an error
// with its exit status. A status of 0 or 2 is no failure.
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

// begin calls Command.Begin and reports whether the run continues with the unit. Errors become
// the unit's failure.
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

// tell passes messages to the observer, and returns them.
func (x *execution) tell(u *discovery.Unit, ds diag.List) diag.List {
	if len(ds) > 0 {
		x.o.Observe.Messages(u, ds)
	}
	return ds
}
