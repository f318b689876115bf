package run

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

// destroyed reports whether a unit that is to be destroyed has nothing left, where it
// cannot be evaluated any more because outputs that it is made of were destroyed before it:
// so a destroy that stopped halfway can be run again. Where its state is must be known
// without outputs, or from the last time that something was applied here. failed is what
// evaluating it gave.
func (t *Turn) destroyed(ctx context.Context, failed diag.List) (bool, diag.List) {
	if t.mode() != plan.Destroy || !slices.ContainsFunc(failed.Errors(), func(m *diag.Message) bool { return m.Code == "unit/no-outputs" }) {
		return false, nil
	}
	task, in := t.Static.Task(ctx), t.Unit.In(t.Static)
	d, ok := t.Dirs.Bare(task, in)
	if !ok {
		return false, nil
	}
	m := t.Dirs.Module(task, in)
	late := d.Remote != nil && !unit.Known(d.Remote.Config)
	if late || !m.Whole {
		if where, ok := t.States.Noted(ctx, t.Unit.Name, d.Path, t.States.Home(in)); ok {
			return t.empty(ctx, where)
		}
	}
	if late || d.Remote == nil && (m.Root == nil || m.Root.Backend != nil) {
		return false, nil
	}
	where, ds := t.at.where(ctx, d, m.Root, nil, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return t.empty(ctx, where)
}

// nothingLeft reports whether the unit is to be destroyed and has no objects: then
// nothing is asked of it, its inputs least of all, which may depend on what is destroyed.
// The state is locked meanwhile: nobody else is making something.
func (t *Turn) nothingLeft(ctx context.Context) (bool, diag.List) {
	if t.mode() != plan.Destroy {
		return false, nil
	}
	where, ds := t.at.where(ctx, t.at.dir, t.engine.Root(), t.engine, nil)
	if ds.HasErrors() {
		return false, nil
	}
	return t.empty(ctx, where)
}

// empty reports whether a state holds nothing.
func (t *Turn) empty(ctx context.Context, where states.Place) (bool, diag.List) {
	h, ds := t.take(ctx, where)
	if ds.HasErrors() {
		return false, ds
	}
	empty := h.Current().Empty()
	return empty, append(ds, h.Release()...)
}
