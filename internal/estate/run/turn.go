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
// A turn prepares a unit (its file is evaluated, its working directory is made up) and then
// does the work of the run in it. The parts that a turn is made of know one thing each:
//
//   - Site: where the unit runs, with its environment and values (site.go)
//   - unitModule: its module, with the engine and the providers (module.go)
//   - unitState: where its state is, and taking it (state.go)
//   - unitHooks: the programs that run around its command (hooks.go)
//   - waits: the outputs of other units that it waits for (deferral.go)
//
// What is done is one of two kinds of work: an operation of the run (operation.go), or a
// command in the unit's folder (command.go). Failures are judged by the unit's errors block
// (retry.go).

// A Turn is one try of one unit.
type Turn struct {
	*execution
	Unit  *discovery.Unit
	res   *report.Result
	task  *demand.Task
	pause schedule.Pause
	again bool // the unit was begun before in this run, and failed

	at     *Site // its directory is nil until it is found
	module *unitModule
	state  *unitState
	hooks  *unitHooks
	work   work
}

// work is what a turn does with its unit.
type work interface {
	// excluded reports whether the unit's own file keeps it out of the run.
	excluded() (out bool, ds diag.List)
	// found is called once the working directory is known. With idle there is nothing to do.
	found() (idle bool, ds diag.List)
	// ready prepares the directory. With idle there is nothing to do.
	ready(ctx context.Context) (idle bool, ds diag.List)
	// run does the work, with the hooks around it.
	run(ctx context.Context) diag.List
}

// newTurn makes the turn of a unit that is tried for the first time, or again.
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

// prepare evaluates the unit and gets its directory ready. With idle there is nothing to do.
func (t *Turn) prepare(ctx context.Context) (idle bool, ds diag.List) {
	u := t.Unit
	ds = u.CheckRunner(t.task)
	if t.o.Command != nil { // else discovery and the check of the estate found them
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

// beforeInit runs the hooks that come before the module is read, and takes over what they
// changed in the directory.
func (t *Turn) beforeInit(ctx context.Context) (changed bool, ds diag.List) {
	if ds = t.hooks.first(ctx); ds.HasErrors() {
		return false, ds
	}
	changed, more := t.hooks.reread()
	t.hooks.ran = false // what comes of hooks that run from now on is read again
	return changed, append(ds, more...)
}

// unconfigured is an error about a unit whose module has no configuration: planning
// it would destroy all that it manages. To be validated and prepared it is a folder
// with nothing in it, as a root file above other units is, unless nothing below it is
// configuration either.
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

// mode is the engine's mode for the unit: of one that is no longer there everything is
// destroyed.
func (t *Turn) mode() plan.Mode {
	if t.Unit.Removed {
		return plan.Destroy
	}
	return t.o.Plan.Mode
}
