package run

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
)

// # A turn
//
// A turn prepares a unit (it evaluates the unit file and finds the working directory) and then
// does the work of the run. Each part of a turn has one responsibility:
//
//   - Site: the directory, environment and values of variables (site.go)
//   - unitModule: the module, with the engine and the providers (module.go)
//   - unitState: the location of the state, and its lock (state.go)
//   - unitHooks: the programs that run around the command (hooks.go)
//   - waits: the outputs of other units that the unit waits for (deferral.go)
//
// There are two kinds of work: an operation of the run (operation.go) and a command in the unit's
// directory (command.go). The unit's errors block decides what happens after a failure
// (retry.go).

// A Turn is one attempt to run one unit.
type Turn struct {
	*execution
	Unit  *discovery.Unit
	res   *report.Result
	task  *demand.Task
	pause schedule.Pause
	again bool // this is a retry: the unit failed before in this run

	at     *Site // its directory is nil until Turn.prepare finds it
	module *unitModule
	state  *unitState
	hooks  *unitHooks
	work   work
}

// work is the work that a turn does in its unit.
type work interface {
	// excluded reports whether the unit's own file excludes it from the run.
	excluded() (out bool, ds diag.List)
	// found is called once the working directory is known. It returns idle if there is nothing to
	// do.
	found() (idle bool, ds diag.List)
	// ready prepares the directory. It returns idle if there is nothing to do.
	ready(ctx context.Context) (idle bool, ds diag.List)
	// run does the work, and runs the hooks around it.
	run(ctx context.Context) diag.List
}

// newTurn returns a turn of the unit of res. again means that it is a retry.
func (x *execution) newTurn(ctx context.Context, res *report.Result, again bool, pause schedule.Pause) *Turn {
	t := &Turn{execution: x, Unit: res.Unit, res: res, task: x.Loader.Task(ctx), pause: pause, again: again}
	t.at = x.site(t.task, t.Unit)
	t.module = &unitModule{x: x, at: t.at, res: res}
	t.hooks = &unitHooks{x: x, at: t.at, res: res, install: t.module.install}
	t.module.hooks = t.hooks
	t.state = &unitState{x: x, at: t.at, purpose: "OperationTypePlan", destroys: t.mode() == plan.Destroy}
	if x.o.Op == Apply {
		t.state.purpose = "OperationTypeApply"
	}
	if cmd := x.o.Command; cmd != nil {
		t.at.unchecked = !cmd.NeedsInputs && !cmd.ChecksInputs
		t.work = &commandWork{Turn: t, cmd: cmd}
	} else {
		t.work = &operationWork{Turn: t}
	}
	return t
}

// run prepares the unit and does the work.
func (t *Turn) run(ctx context.Context) diag.List {
	defer t.module.close()
	reading, s := telemetry.Start(ctx, "unit_read_config")
	about(s, t.Unit).Text("terragrunt_config_path", t.Unit.Path)
	idle, ds := t.prepare(reading)
	over(s, t.tell(t.Unit, ds))
	if ds.HasErrors() || idle {
		return ds
	}
	ctx, s = telemetry.Start(ctx, "unit_run")
	about(s, t.Unit).Text("terraform_command", t.Command)
	more := t.work.run(ctx)
	ended(s, more)
	return append(ds, more...)
}

// prepare evaluates the unit and prepares its directory. It returns idle if there is nothing to
// do.
func (t *Turn) prepare(ctx context.Context) (idle bool, ds diag.List) {
	u := t.Unit
	ds = u.CheckRunner(t.task)
	if t.o.Command != nil { // otherwise discovery and the check of the estate have reported these
		_, features := u.Features(t.task)
		_, rules := u.Errors(t.task)
		ds = slices.Concat(ds, features.Errors(), rules.Errors(), u.Warnings(t.task))
	}
	if ds = t.First.Of(ds); ds.HasErrors() {
		return false, ds
	}
	out, more := t.work.excluded()
	if !out && !more.HasErrors() {
		var wrong diag.List
		t.at.dir, wrong = t.Dirs.Dir(t.task, u.Unit, true)
		more = append(more, wrong...)
	}
	if nothing, about := t.state.nothingKnown(ctx, more); nothing {
		return true, append(ds, about...)
	} else if ds = slices.Concat(ds, more, about); out || ds.HasErrors() {
		return true, ds
	}
	idle, more = t.work.found()
	if ds = append(ds, more...); idle || more.HasErrors() {
		return idle, ds
	}
	t.res.Set = t.at.dir.Parsed.Set
	if ds = append(ds, t.at.prepare(t.at.dir, t.Command)...); ds.HasErrors() {
		return false, ds
	}
	idle, more = t.work.ready(ctx)
	return idle, append(ds, more...)
}

// beforeInit runs the hooks that come before the module is read. It reports whether they changed
// files of the module.
func (t *Turn) beforeInit(ctx context.Context) (changed bool, ds diag.List) {
	if ds = t.hooks.first(ctx); ds.HasErrors() {
		return false, ds
	}
	changed, more := t.hooks.reread()
	t.hooks.ran = false // changes by later hooks are read separately
	return changed, append(ds, more...)
}

// unconfigured returns an error if the unit's module has no configuration, because planning it
// would destroy all its objects. validate and init accept an empty directory, such as that of a
// root file above other units, if a directory below it has configuration.
func (t *Turn) unconfigured(root *config.Module) diag.List {
	if t.state.destroys || t.at.dir.Configured(root) {
		return nil
	}
	if (t.Command == "validate" || t.Command == "init") && t.at.dir.Files.ConfigBelow() {
		return nil
	}
	var at *source.Range
	if tf := t.at.dir.Terraform; tf != nil && tf.Source != nil {
		at = tf.Source.At
	}
	return diag.Errorf(diag.CodeEstateNoConfiguration, at, "No configuration files", "There is no .tf or .tofu file in the module of the unit %s. Set terraform.source to where its module is, or leave the unit out: a file that others include or import should not be called %s.", t.Unit.Called(), filepath.Base(t.Unit.Path))
}

// mode returns the plan mode of the unit. A unit that was removed from the estate is destroyed.
func (t *Turn) mode() plan.Mode {
	if t.Unit.Removed {
		return plan.Destroy
	}
	return t.o.Plan.Mode
}
