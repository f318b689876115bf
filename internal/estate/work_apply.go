package estate

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// planAndApply is the turn of a unit in a plan and an apply.
func (w *work) planAndApply(ctx context.Context) diag.List {
	e, u := w.r.e, w.u
	where, ds := e.stateWhere(ctx, u, w.engine.Root(), w.engine, w.values)
	if ds.HasErrors() {
		return ds
	}
	skip := w.r.o.Plans.SkipRefresh
	if x := u.extra(e.o.Request.Command); x.fresh != nil {
		skip = skip || !*x.fresh
	}
	if ds = w.r.claim(u, local.Open(where).Path()); ds.HasErrors() {
		return ds
	}
	h, ds := w.take(ctx, where)
	if ds.HasErrors() {
		return ds
	}
	w.hold = h
	if w.r.o.Op == Apply {
		if err := w.noteWhere(ctx, where); err != nil {
			return diag.Errorf(nil, "Failed to note where the state is", "%s.", err)
		}
	}
	prev := h.Current()
	planning, s := w.phase(ctx, "plan")
	p, more := w.engine.Plan(planning, prev, engine.PlanOptions{
		Mode: w.mode(), Variables: w.values, SkipRefresh: skip, Targets: w.r.o.Plans.Targets, Excludes: w.r.o.Plans.Excludes, Replace: w.replaced(prev),
		Defer: w.r.o.Op == Plan, Time: w.plannedAt(), Stop: w.r.o.Stop,
	})
	ended(s, more)
	if more.HasErrors() && len(w.waits) > 0 && w.r.o.Op == Plan && unplannable(more) {
		w.r.putOff(u, w.res, w.engine.Root(), Deferral{Reason: "what must be known before anything is planned is not known yet", At: more.Errors()[0].At, Waits: w.allWaits()})
		return append(ds, more.Warnings()...)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	w.noteplan(p)
	if w.r.o.Op == Plan {
		w.r.setOutputs(u, w.planned(p))
		return ds
	}
	yes, more := w.approved(p)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !yes {
		w.res.Status, w.res.Reason, w.res.Cause, w.res.Code = EarlyExit, "run error", "what had been put off was not approved", 1
		return ds
	}
	return append(ds, w.apply(ctx, p)...)
}

// replaced are those instances that are to be replaced which the unit has: an
// address is meant for the units that know it.
func (w *work) replaced(prev *state.State) []addr.Instance {
	var out []addr.Instance
	for _, a := range w.r.o.Plans.Replace {
		n := w.engine.Tree().Root
		for _, step := range a.Module.Steps() {
			if n != nil {
				n = n.Calls[step.Name]
			}
		}
		if n != nil && n.Config.Resources[a.Resource] != nil || prev != nil && prev.Instance(a) != nil {
			out = append(out, a)
		}
	}
	return out
}

// plannedAt is when the approved plan was made; zero if there is none.
func (w *work) plannedAt() time.Time {
	if w.approval == nil {
		return time.Time{}
	}
	return w.approval.time
}

// mode is the engine's mode for the unit: of one that is no longer there
// everything is destroyed.
func (w *work) mode() plan.Mode {
	if w.u.Removed {
		return plan.Destroy
	}
	return w.r.o.Plans.mode()
}

// planned are the outputs that other units of a plan see.
func (w *work) planned(p *plan.Plan) cty.Value {
	if w.r.o.Plans.Destroy || w.r.o.Plans.RefreshOnly || w.r.e.o.Inputs.Mocks {
		return storedOutputs(w.hold.Current())
	}
	return plannedOutputs(p, w.engine.Root())
}

func countsOf(p *plan.Plan) Counts {
	n := p.Counts()
	return Counts{n.Add, n.Change, n.Destroy, n.Import, n.Forget}
}

func (w *work) noteplan(p *plan.Plan) {
	w.res.Plan, w.res.Changes, w.res.Deferred, w.res.Counts = p, p.HasChanges(), w.deferrals(p), countsOf(p)
	if w.r.o.Saving != nil {
		w.r.o.Saving.plan(w.u.Name, w.digest(), p)
	}
	if w.r.o.Observe.Planned != nil {
		w.r.o.Observe.Planned(w.u, w.engine, p)
	}
	if w.r.o.Op == Apply || w.r.o.DropPlans || w.r.o.Saving != nil {
		w.res.Plan = nil // plans are large
	}
	if w.r.o.Op == Apply {
		w.res.Counts = Counts{} // what counts is what will be done
	}
}

// apply carries the plan out.
func (w *work) apply(ctx context.Context, p *plan.Plan) diag.List {
	h := w.hold
	if !p.HasChanges() && p.Prior.Equal(p.PrevRun) { // else what was read or refreshed goes into state
		w.applied(p)
		return nil
	}
	if ds := h.Start(ctx, len(p.Changes)); ds.HasErrors() {
		return ds
	}
	w.r.e.holding.add(h)
	defer w.r.e.holding.remove(h)
	ctx, s := w.phase(ctx, "apply")
	got, ds := w.engine.Apply(context.WithoutCancel(ctx), p, engine.ApplyOptions{
		Variables: w.values, Persist: h.Write, Every: w.r.o.Every, Journal: h, Stop: w.r.o.Stop,
	})
	ds = append(ds, h.End(got.State)...)
	ended(s, ds)
	w.res.Counts = Counts{got.Added, got.Changed, got.Destroyed, got.Imported, got.Forgotten}
	if got.Stopped && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(nil, "Apply was interrupted", "Not everything that was planned was done, since the run was interrupted. What was done is in the state.")...)
	}
	if ds.HasErrors() {
		w.r.setOutputs(w.u, w.made(nil))
		return ds
	}
	w.applied(p)
	return ds
}

// applied says that the apply of a plan has ended without errors.
func (w *work) applied(p *plan.Plan) {
	w.r.setOutputs(w.u, w.made(p.Outputs))
	if w.r.o.Observe.Applied != nil {
		w.r.o.Observe.Applied(w.res, w.hold.Current())
	}
}

// made are the outputs that there are after an apply: of a unit without any, none.
// State does not keep outputs that are null: those that were computed and are not in
// it are null.
func (w *work) made(computed []*plan.OutputChange) cty.Value {
	v := storedOutputs(w.hold.Current())
	if w.mode() == plan.Destroy {
		return v
	}
	m := map[string]cty.Value{}
	if v != cty.NilVal {
		m = v.AsValueMap()
	}
	for _, c := range computed {
		o := w.engine.Root().Outputs[c.Name]
		if _, stored := m[c.Name]; o != nil && !stored && !c.Left {
			m[c.Name] = hide(cty.NilVal, o.Sensitive)
		}
	}
	return cty.ObjectVal(m)
}
