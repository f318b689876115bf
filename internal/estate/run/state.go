package run

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/unit"
)

// unitState opens the state of one unit: it finds the location and the lock options.
type unitState struct {
	x        *execution
	at       *Site
	purpose  string // purpose that is recorded in the lock
	destroys bool   // the unit is to be destroyed
}

// lock returns the lock options: those of the run if any are set, otherwise those of
// extra_arguments.
func (s *unitState) lock() arguments.Lock {
	if s.at.extra.Lock != nil && s.x.o.Lock == (arguments.Lock{}) {
		return *s.at.extra.Lock
	}
	return s.x.o.Lock
}

// where returns the location of the state. If the directory was initialized with another backend,
// where runs init, which fails too unless extra arguments such as -reconfigure allow the change.
func (s *unitState) where(ctx context.Context, m *unitModule) (states.Location, diag.List) {
	p, ds := m.place(ctx, m.values)
	if !s.x.Host.initializes() || !slices.ContainsFunc(ds, states.Changed) {
		return p, ds
	}
	if ds = m.install(ctx); ds.HasErrors() {
		return p, ds
	}
	return m.place(ctx, m.values)
}

// options returns the options for opening the state. It is an error if another unit of the run
// uses the same state.
func (s *unitState) options(ctx context.Context, where states.Location) (statemgr.Options, diag.List) {
	st, ds := s.x.States.Open(ctx, where)
	if ds.HasErrors() {
		return statemgr.Options{}, ds
	}
	if p, ok := st.(backend.Placer); ok {
		mine := states.Claim{Unit: s.at.unit.Name, Called: s.at.unit.Called()}
		if s.at.dir.Remote != nil {
			mine.At = s.at.dir.Remote.At
		}
		if ds = append(ds, s.x.claims.Add(p.Place(), mine)...); ds.HasErrors() {
			return statemgr.Options{}, ds
		}
	}
	return s.x.States.Options(ctx, where, s.lock(), s.purpose)
}

// # Units that are already destroyed
//
// A destroy that stopped halfway can be run again. The inputs of a unit without objects are not
// evaluated then, because they may depend on outputs that are already destroyed.

// nothingKnown reports whether a unit has no objects left although it cannot be evaluated because
// outputs it depends on are destroyed. It applies only to a unit that is to be destroyed. The
// location of the state must be known without outputs, or recorded by the last apply on this
// machine. failed contains the errors of the evaluation.
func (s *unitState) nothingKnown(ctx context.Context, failed diag.List) (bool, diag.List) {
	if !s.destroys || !slices.ContainsFunc(failed.Errors(), func(m *diag.Message) bool { return m.Code == diag.CodeUnitNoOutputs }) {
		return false, nil
	}
	r := *s.x.Runner
	r.Loader = r.Static
	task, in := r.Static.Task(ctx), s.at.unit.In(r.Static)
	d, ok := r.Dirs.Bare(task, in)
	if !ok {
		return false, nil
	}
	m := r.Dirs.Module(task, in)
	if m.Dir != nil {
		d = m.Dir
	}
	at := r.site(task, &discovery.Unit{Unit: in, Name: s.at.unit.Name})
	if at.prepare(d, r.Command).HasErrors() {
		return false, nil
	}
	s.at.extra = at.extra // contains the lock options
	var eng *engine.Engine
	if m.Dir != nil && m.Whole {
		eng, _ = at.open(ctx) // called modules may be missing, since the root module suffices
		if eng != nil {
			defer eng.Close()
		}
		if eng != nil && eng.Tree() == nil {
			eng = nil
		}
	}
	late := d.Remote != nil && !unit.Known(d.Remote.Config)
	if late || !m.Whole {
		enc, ds := r.States.Encryption(d, m.Root, at.static(ctx, eng, nil), at.Environ())
		if ds.HasErrors() {
			return false, nil
		}
		if where, ok := r.States.Noted(ctx, at.unit.Name, d.Path, r.States.Home(in), at.Environ(), enc); ok {
			return s.empty(ctx, where)
		}
	}
	if late || d.Remote == nil && (m.Root == nil || m.Root.Backend != nil && eng == nil) {
		return false, nil
	}
	where, ds := at.where(ctx, m.Root, eng, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return s.empty(ctx, where)
}

// nothingLeft reports whether a unit that is to be destroyed, and whose module is open, has no
// objects left. The state is locked while it is read, so that no other process adds objects.
func (s *unitState) nothingLeft(ctx context.Context, m *unitModule) (bool, diag.List) {
	if !s.destroys {
		return false, nil
	}
	where, ds := m.place(ctx, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return s.empty(ctx, where)
}

// empty reports whether the state contains no objects.
func (s *unitState) empty(ctx context.Context, where states.Location) (bool, diag.List) {
	h, ds := s.take(ctx, where)
	if ds.HasErrors() {
		return false, ds
	}
	empty := h.Current().Empty()
	return empty, append(ds, h.Release()...)
}

// take locks and reads the state.
func (s *unitState) take(ctx context.Context, where states.Location) (*workdir.OpenState, diag.List) {
	return s.x.States.Take(ctx, where, s.lock(), s.purpose)
}
