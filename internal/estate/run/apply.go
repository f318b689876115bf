package run

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/estate/workdir"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// planAndApply is the turn of a unit in a plan and an apply.
func (t *Turn) planAndApply(ctx context.Context) diag.List {
	where, ds := t.where(ctx)
	if ds.HasErrors() {
		return ds
	}
	skip := t.o.Plans.SkipRefresh
	if t.at.extra.Refresh != nil {
		skip = skip || !*t.at.extra.Refresh
	}
	op := &operation.Operation{
		Engine: t.engine, Env: t.at.Environ(), Values: t.values, Moves: t.at.Moves(), Stop: t.o.Stop,
		Reads: t.reads(), Choose: t.chooseMore,
	}
	done, more := op.Run(ctx, operation.Want{
		Plan: engine.PlanOptions{
			Mode: t.mode(), SkipRefresh: skip, Targets: t.o.Plans.Targets, Excludes: t.o.Plans.Excludes,
			Defer: t.o.Op == Plan, Time: t.approval.Time(),
		},
		Apply: t.o.Op == Apply, Every: t.o.Every, MovesFirst: true, Forget: t.o.Plans.Forget,
	}, operation.Steps{
		Locked: func(ctx context.Context) (statemgr.Options, diag.List) {
			if ds := t.claimState(ctx, where); ds.HasErrors() {
				return statemgr.Options{}, ds
			}
			return t.States.Options(ctx, where, t.lock(), t.lockedFor())
		},
		Taken: func(h *operation.Held, po *engine.PlanOptions) diag.List {
			t.States.Took()
			t.held, po.Replace = h, t.replaced(h.Current())
			if t.o.Op != Apply {
				return nil
			}
			return t.at.Note(ctx, where.Config, where.Workspace)
		},
		Planned: func(_ context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
			return t.planned(p, where.Encryption.Plan(ctx).PlanSealer(), ds)
		},
		Event: t.observe(), Watch: t.Changing, Span: t.span,
	})
	ds = append(ds, more...)
	t.res.Diags = append(t.res.Diags, done.Released...)
	if t.o.Op != Apply || t.held == nil {
		return ds
	}
	t.res.Counts = report.Counts(done.Counts)
	switch {
	case done.Applied:
		t.Made.Set(t.Unit.ID, t.made(done.Plan.Outputs))
		if t.o.Observe.Applied != nil {
			t.o.Observe.Applied(t.res, done.State)
		}
	case done.Began:
		t.Made.Set(t.Unit.ID, t.made(nil))
	}
	return ds
}

// where tells where the state is. A directory that was set up with another backend goes
// through init, which refuses that too unless what is added to it provides for it.
func (t *Turn) where(ctx context.Context) (states.Place, diag.List) {
	p, ds := t.at.where(ctx, t.at.dir, t.engine.Root(), t.engine, t.values)
	if t.Host.Init == nil || !slices.ContainsFunc(ds, states.Changed) {
		return p, ds
	}
	if ds = t.install(ctx); ds.HasErrors() {
		return p, ds
	}
	return t.at.where(ctx, t.at.dir, t.engine.Root(), t.engine, t.values)
}

// planned takes what came of planning, and says whether it may be carried out.
func (t *Turn) planned(p *plan.Plan, by planfile.Sealer, ds diag.List) (yes bool, left diag.List) {
	switch {
	case ds.HasErrors() && len(t.waits) > 0 && t.o.Op == Plan && workdir.NotKnownYet(ds):
		t.deferUnit(t.engine.Root(), report.Deferral{Reason: "what must be known before anything is planned is not known yet", At: ds.Errors()[0].At, Waits: t.allWaits()})
		return false, ds.Warnings()
	case ds.HasErrors():
		return false, ds
	}
	t.notePlan(p, by)
	if t.o.Op == Plan {
		t.Made.Set(t.Unit.ID, t.outputs(p))
		return false, ds
	}
	yes, more := t.approved(p)
	if ds = append(ds, more...); !yes && !more.HasErrors() {
		t.res.Break("run error", "what had been deferred was not approved")
	}
	return yes, ds
}

// claimState notes that the unit has its state in a place.
func (t *Turn) claimState(ctx context.Context, where states.Place) diag.List {
	st, ds := t.States.Open(ctx, where)
	if ds.HasErrors() {
		return ds
	}
	if p, ok := st.(backend.Placer); ok {
		ds = append(ds, t.claims.Add(p.Place(), t.claim())...)
	}
	return ds
}

// replaced are those instances that are to be replaced which the unit has: an
// address is meant for the units that know it.
func (t *Turn) replaced(prev *state.State) []addr.Instance {
	var out []addr.Instance
	for _, a := range t.o.Plans.Replace {
		n := t.engine.Tree().Root
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

// mode is the engine's mode for the unit: of one that is no longer there
// everything is destroyed.
func (t *Turn) mode() plan.Mode {
	if t.Unit.Removed {
		return plan.Destroy
	}
	return t.o.Plans.mode()
}

// outputs are those that other units of a plan see.
func (t *Turn) outputs(p *plan.Plan) cty.Value {
	if t.o.Plans.Destroy || t.o.Plans.RefreshOnly || t.Inputs.Mocks {
		return outputs.Stored(t.held.Current())
	}
	return outputs.Planned(p, t.engine.Root())
}

// notePlan takes the unit's plan, which by encrypts where it is saved.
func (t *Turn) notePlan(p *plan.Plan, by planfile.Sealer) {
	t.res.Plan, t.res.Changes, t.res.Deferred, t.res.Counts, t.res.Reads = p, p.HasChanges(), t.deferrals(p), report.CountsOf(p), p.Reads
	if t.o.Saving != nil {
		t.o.Saving.Take(t.Unit.Name, t.digest(), by, p)
	}
	if t.o.Observe.Planned != nil {
		t.o.Observe.Planned(t.Unit, t.engine, p)
	}
	if t.o.Op == Apply || t.o.DropPlans || t.o.Saving != nil {
		t.res.Plan = nil // plans are large
	}
	if t.o.Op == Apply {
		t.res.Counts = report.Counts{} // what counts is what will be done
	}
}

// made are the outputs that there are after an apply: of a unit without any, none.
// State does not keep outputs that are null: those that were computed and are not in
// it are null.
func (t *Turn) made(computed []*plan.OutputChange) cty.Value {
	v := outputs.Stored(t.held.Current())
	if t.mode() == plan.Destroy {
		return v
	}
	m := map[string]cty.Value{}
	if v != cty.NilVal {
		m = v.AsValueMap()
	}
	for _, c := range computed {
		o := t.engine.Root().Outputs[c.Name]
		if _, stored := m[c.Name]; o != nil && !stored && !c.Left {
			m[c.Name] = outputs.Hide(cty.NilVal, o.Sensitive)
		}
	}
	return cty.ObjectVal(m)
}

// claim says whose state it is.
func (t *Turn) claim() states.Claim {
	mine := states.Claim{Unit: t.Unit.Name}
	if t.at.dir.Remote != nil {
		mine.At = t.at.dir.Remote.At
	}
	return mine
}

// digest tells the configuration of the unit from any other.
func (t *Turn) digest() string {
	return t.digests.Do(t.at.dir.Parsed, func() string { return saved.Digest(t.engine.Tree()) })
}
