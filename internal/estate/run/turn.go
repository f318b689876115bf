package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/estate/workdir/overlay"
	"github.com/terrace-iac/terrace/internal/folder"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// A Turn is one try of one unit.
type Turn struct {
	*execution
	Unit  *discovery.Unit
	res   *report.Result
	task  *demand.Task
	pause schedule.Pause
	again bool // the unit was begun before in this run, and failed

	approval *saved.Approval // what was approved of it; nil if everything is
	at       *Site           // where the unit runs; its directory is nil until it is found
	engine   *engine.Engine
	plugins  *folder.Plugins // of the engine; nil: the built-in provider alone
	values   map[string]engine.InputValue
	waits    []*unit.Setting // inputs with something unknown in them
	held     *operation.Held // the state while it is planned and applied, and as it was left

	curable  diag.List // messages that the hooks before the command may make untrue
	hooksRan bool      // in this turn, or those of init before it
}

// prepare evaluates the unit and opens its engine. With idle there is nothing to do.
func (t *Turn) prepare(ctx context.Context) (idle bool, ds diag.List) {
	u := t.Unit
	ds = u.CheckRunner(t.task)
	if t.o.Command != nil { // else discovery found them
		ds = append(ds, u.Warnings(t.task)...)
	}
	if ds = t.First.Of(ds); ds.HasErrors() {
		return false, ds
	}
	stop, more := t.excluded()
	if !stop && !more.HasErrors() {
		var wrong diag.List
		t.at.dir, wrong = t.Dirs.Dir(t.task, u.Unit, true)
		more = append(more, wrong...)
	}
	if destroyed, about := t.destroyed(ctx, more); destroyed {
		return true, append(ds, about...)
	} else if ds = slices.Concat(ds, more, about); stop || ds.HasErrors() {
		return true, ds
	}
	if t.o.Command != nil {
		if more := t.checkSelf(); more.HasErrors() {
			return false, append(ds, more...)
		}
	}
	if t.at.dir.Waits != "" && t.o.Command != nil {
		return false, append(ds, diag.Errorf(nil, "Outputs are not known", "The unit's %s depends on outputs that are not known yet. Apply the units that it depends on first.", t.at.dir.Waits)...)
	}
	if t.at.dir.Waits != "" {
		t.deferUnit(nil, report.Deferral{Reason: t.at.dir.Waits + " is not known yet", Waits: t.waitsOf("", u.Waits(t.task, t.at.dir.WaitsIn))})
		return true, ds
	}
	t.res.Set = t.at.dir.Parsed.Set
	t.at.found(t.at.dir)
	t.at.credentials, more = t.Credentials.For(t.task, u.Unit)
	if ds = slices.Concat(ds, more, t.unfit()); ds.HasErrors() {
		return false, ds
	}
	if t.o.Command == nil || !t.o.Command.Look {
		if ds = append(ds, t.States.Prepare(ctx, u.Name, t.at.dir, t.at.Environ())...); ds.HasErrors() {
			return false, ds
		}
	}
	if t.o.Command != nil {
		idle, more = t.prepareCommand(ctx)
		return idle, append(ds, more...)
	}
	idle, more = t.open(ctx)
	switch {
	case idle:
		return true, append(ds, more...)
	case t.hasHooks() && curable(more):
		t.curable = more
		return false, ds
	}
	return false, append(ds, more...)
}

// curable reports whether there is nothing wrong, or only what hooks may put right
// before the command runs: files that are missing, and values for variables.
func curable(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool {
		return m.Code == "estate/input-type" || strings.HasPrefix(m.Code, "unit/")
	})
}

// open opens the engine and computes the inputs. idle reports that there is nothing
// to do.
func (t *Turn) open(ctx context.Context) (idle bool, ds diag.List) {
	if _, ds = t.openEngine(ctx); ds.HasErrors() {
		return false, ds
	}
	if more := append(t.unconfigured(), workdir.NoBackendBlock(t.Unit.Name, t.at.dir.Remote, t.engine.Root())...); more.HasErrors() {
		return false, append(ds, more...)
	}
	idle, more := t.evaluate(ctx)
	return idle, append(ds, more...)
}

// evaluate computes the inputs, where they are needed. idle reports that there is
// nothing to do.
func (t *Turn) evaluate(ctx context.Context) (idle bool, ds diag.List) {
	if t.o.Op == Validate || t.o.Op == Init {
		return false, ds
	}
	u, declared := t.Unit, t.engine.Root().Variables
	t.values, t.waits, ds = t.at.variables(declared)
	if ds.HasErrors() {
		empty, about := t.nothingLeft(ctx)
		if empty || about.HasErrors() {
			return empty, about
		}
		return false, append(ds, about...)
	}
	if t.o.Approved != nil {
		enc, more := t.encryption(ctx)
		if ds = append(ds, more.Errors()...); more.HasErrors() {
			return false, ds
		}
		if t.approval, more = saved.Of(t.o.Approved, u.Name, enc.Plan(ctx).PlanSealer()); more.HasErrors() {
			return false, append(ds, more...)
		}
	}
	for name, v := range t.approval.Inputs() { // nothing gives them a value now
		if _, ok := t.values[name]; !ok && declared[name] != nil {
			t.values[name] = engine.InputValue{Value: v}
		}
	}
	ds = append(ds, inputs.Missing(u.Name, u.Path, declared, t.values)...)
	return false, append(ds, t.at.checkInputs(declared)...)
}

// excluded looks at an exclude block that is made of outputs, which could not be
// done before the run. stop reports that the unit takes no part, or waits for them.
func (t *Turn) excluded() (stop bool, ds diag.List) {
	if t.o.Command != nil {
		return false, nil // who names a unit means it
	}
	x, ds := t.Unit.Exclude(t.task)
	if ds.HasErrors() || x == nil || !x.Late {
		return false, ds
	}
	if x, ds = t.Unit.ExcludeNow(t.task); ds.HasErrors() || x == nil {
		return false, ds
	}
	switch {
	case x.Late:
		t.deferUnit(nil, report.Deferral{Reason: "exclude is not known yet", Waits: t.waitsOf("", t.Unit.Waits(t.task, "exclude"))})
		return true, ds
	case x.If && discovery.Excludes(x, t.Command):
		t.res.LeaveOut()
		return true, ds
	}
	return false, ds
}

// unfit are errors about extra arguments that a run over several units has not.
func (t *Turn) unfit() diag.List {
	if len(t.at.extra.Other) == 0 || t.o.Command != nil { // whose parser takes them
		return nil
	}
	ds := diag.Errorf(t.at.dir.Terraform.At, "Extra argument not available", "The unit gives the command the arguments %s, which a run over several units does not have in this version. Run the command in the unit's own folder.", strings.Join(t.at.extra.Other, " "))
	ds[0].Code = "estate/extra-argument"
	return ds
}

// unconfigured is an error about a unit whose module has no configuration: planning
// it would destroy all that it manages.
func (t *Turn) unconfigured() diag.List {
	root := t.engine.Root()
	if t.mode() == plan.Destroy || slices.ContainsFunc(root.Files, func(f config.FileRole) bool { return overlay.IsConfig(filepath.Base(f.Path)) }) {
		return nil
	}
	var at *source.Range
	if tf := t.at.dir.Terraform; tf != nil && tf.Source != nil {
		at = tf.Source.At
	}
	ds := diag.Errorf(at, "No configuration files", "There is no .tf or .tofu file in the module of the unit %s. Set terraform.source to where its module is, or leave the unit out: a file that others include or import should not be called %s.", t.Unit.Name, filepath.Base(t.Unit.Path))
	ds[0].Code = "estate/no-configuration"
	return ds
}

// CheckBackend says whether the module has the backend block that remote_state sets.
func (t *Turn) CheckBackend() diag.List {
	return workdir.NoBackendBlock(t.Unit.Name, t.at.dir.Remote, t.at.dir.Root())
}

// take locks and reads the unit's state.
func (t *Turn) take(ctx context.Context, where states.Place) (*operation.Held, diag.List) {
	return t.States.Take(ctx, where, t.lock(), t.lockedFor())
}

// lockedFor is what locks say that the state is locked for.
func (t *Turn) lockedFor() string {
	if t.o.Op == Apply {
		return "OperationTypeApply"
	}
	return "OperationTypePlan"
}

// lock says how the unit's state is locked.
func (t *Turn) lock() arguments.Lock {
	if t.at.extra.Lock != nil && t.o.Lock == (arguments.Lock{}) {
		return *t.at.extra.Lock
	}
	return t.o.Lock
}

// close ends the turn. It may be called whatever of it began.
func (t *Turn) close() {
	if t.engine != nil {
		t.engine.Close()
	}
}
