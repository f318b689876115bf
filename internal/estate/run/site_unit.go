package run

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// siteUnit implements workdir.UnitSettings for the working directory of a site. It evaluates with the
// task of the site, so that a cycle through another unit is detected and an interrupt ends the
// evaluation.
type siteUnit struct{ s *Site }

// All adds the values that the unit's inputs and extra_arguments give to variables of the module.
// It reports the same errors as a run.
func (u siteUnit) All(_ context.Context, values workdir.Variables, root *config.Module) diag.List {
	given, _, ds := u.s.variables(root.Variables)
	add(values, given)
	if u.s.unchecked {
		return ds
	}
	return append(ds, u.s.checkInputs(root.Variables)...).Once()
}

// add copies the given values of variables that have no value yet.
func add(values, given map[string]engine.InputValue) {
	for name, in := range given {
		if _, ok := values[name]; !ok {
			values[name] = in
		}
	}
}

// One returns the value of one variable. The loader calls it for sources of modules that depend
// on variables. All reports errors in the value.
func (u siteUnit) One(_ context.Context, v *config.Variable) (engine.InputValue, bool) {
	in, ok, ds := u.s.value(v)
	return in, ok && !ds.HasErrors()
}

// Environ returns the environment of the programs that run for the unit.
func (u siteUnit) Environ(ctx context.Context) sys.Env { return u.s.ofPrograms(ctx) }

// Refer returns the value of a reference in the language of unit files, evaluated in the unit.
func (u siteUnit) Refer(_ context.Context, ref hcl.Traversal) (cty.Value, diag.List) {
	return u.s.unit.Refer(u.s.task, ref)
}

// Moves returns the moves between units that involve this unit.
func (u siteUnit) Moves() workdir.Moves { return u.s.r.Moves.Of(u.s.unit.ID) }

// Explain adds the origins of the unit's values. Paths are relative to the program's directory.
func (u siteUnit) Explain(o *engine.ExplainOptions) {
	o.Unit, o.UnitSet = u.s.unit.Origin(u.s.task), u.s.r.Loader.Sources()
	o.Show = func(file string) (string, string) {
		path, layer := u.s.Source(file)
		return u.s.r.Host.shown(path), layer
	}
}

// Locate adds source ranges in the unit's remote_state block to messages about the backend.
func (u siteUnit) Locate(ds diag.List) diag.List { return states.Located(u.s.dir.Remote, ds) }

// Applying records the location of the unit's state, unless the unit's files specify the location
// without outputs.
func (u siteUnit) Applying(ctx context.Context, at backend.Config, workspace string) diag.List {
	s := u.s
	task, in := s.r.Static.Task(ctx), s.unit.In(s.r.Static)
	rs, ds := in.RemoteState(task)
	if ds.HasErrors() || (rs == nil || unit.Known(rs.Config)) && s.r.Dirs.Module(task, in).Whole {
		return nil
	}
	if err := s.r.States.Note(s.dir.Path, at, workspace); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to note where the state is", "%s.", err)
	}
	return nil
}

// initUnit is the workdir.UnitSettings for init. It provides only the inputs, and does not check them.
type initUnit struct{ siteUnit }

// All adds the values of the inputs. The command that follows reports the errors, if it needs the
// inputs.
func (u initUnit) All(_ context.Context, values workdir.Variables, root *config.Module) diag.List {
	given, _, ds := inputs.Of(u.s.task, u.s.unit.Unit, root.Variables)
	add(values, given)
	return ds.Warnings()
}

// Moves returns nil, since init moves nothing.
func (initUnit) Moves() workdir.Moves { return nil }

// Applying does nothing, since init applies nothing.
func (initUnit) Applying(context.Context, backend.Config, string) diag.List { return nil }

var _, _ workdir.UnitSettings = siteUnit{}, initUnit{}

// turnHost is the workdir.Host of a unit's turn. It extends the unit's host with events and with
// the set of states that are being changed.
type turnHost struct {
	workdir.Host
	observe  event.Sink // nil drops events
	changing *states.Changing
}

func (h turnHost) Event(e event.Event) {
	if h.observe != nil {
		h.observe(e)
	}
}

func (h turnHost) Changing(s *statemgr.State) func() {
	h.changing.Add(s)
	return func() { h.changing.Remove(s) }
}
