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

// siteUnit is what the unit of a site adds to its working directory. It evaluates with the
// task of the site, so that a cycle through another unit is found and an interrupt of the run
// ends it.
type siteUnit struct{ s *Site }

// All adds the values that the unit, and what extra_arguments add, give the variables of the
// module. What is wrong with them is reported as before a run.
func (u siteUnit) All(_ context.Context, values workdir.Variables, root *config.Module) diag.List {
	given, _, ds := u.s.variables(root.Variables)
	add(values, given)
	if u.s.unchecked {
		return ds
	}
	return append(ds, u.s.checkInputs(root.Variables)...).Once()
}

// add adds the values of variables that have none: another way of giving one wins.
func add(values, given map[string]engine.InputValue) {
	for name, in := range given {
		if _, ok := values[name]; !ok {
			values[name] = in
		}
	}
}

// One returns the value of one variable: sources of modules are made of some while the module
// is loaded. What is wrong with it is said with all the others.
func (u siteUnit) One(_ context.Context, v *config.Variable) (engine.InputValue, bool) {
	in, ok, ds := u.s.value(v)
	return in, ok && !ds.HasErrors()
}

// Environ is the environment of the programs that run for the unit.
func (u siteUnit) Environ(ctx context.Context) sys.Env { return u.s.ofPrograms(ctx) }

// Refer is the value of a reference in the language of units, seen from the unit.
func (u siteUnit) Refer(_ context.Context, ref hcl.Traversal) (cty.Value, diag.List) {
	return u.s.unit.Refer(u.s.task, ref)
}

// Moves are those between units that the unit has a part in.
func (u siteUnit) Moves() workdir.Moves { return u.s.r.Moves.Of(u.s.unit.ID) }

// Locate gives messages about the backend their place in the unit's remote_state.
func (u siteUnit) Locate(ds diag.List) diag.List { return states.Located(u.s.dir.Remote, ds) }

// Applying notes where the state of the unit is, if the unit's files do not say so without
// outputs.
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

// initUnit is siteUnit for init: the inputs alone, unchecked.
type initUnit struct{ siteUnit }

// All adds the inputs.
func (u initUnit) All(_ context.Context, values workdir.Variables, root *config.Module) diag.List {
	given, _, ds := inputs.Of(u.s.task, u.s.unit.Unit, root.Variables)
	add(values, given)
	return ds
}

// Moves is nil: init moves nothing.
func (initUnit) Moves() workdir.Moves { return nil }

// Applying does nothing: init applies nothing.
func (initUnit) Applying(context.Context, backend.Config, string) diag.List { return nil }

var _, _ workdir.Unit = siteUnit{}, initUnit{}

// turnHost is the Host of the turn of a unit: that of the program for the unit, with the
// events of the unit and the states that are being changed.
type turnHost struct {
	workdir.Host
	observe  event.Sink // nil: nobody
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
