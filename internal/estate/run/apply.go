package run

import (
	"context"

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
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// planAndApply is the turn of a unit in a plan and an apply.
func (t *Turn) planAndApply(ctx context.Context) diag.List {
	u := t.Unit
	where, about := t.at.where(ctx, t.at.dir, t.engine.Root(), t.engine, t.values)
	if about.HasErrors() {
		return about
	}
	skip := t.o.Plans.SkipRefresh
	if t.at.extra.Refresh != nil {
		skip = skip || !*t.at.extra.Refresh
	}
	if ds := t.claimState(ctx, where); ds.HasErrors() {
		return ds
	}
	if t.o.Op == Apply && t.mode() != plan.RefreshOnly {
		own, more := t.States.Options(ctx, where, t.lock(), "OperationTypeApply")
		if !more.HasErrors() {
			more = append(more, t.at.Moves().Transfer(ctx, own)...)
		}
		if more.HasErrors() {
			return append(about, more...)
		}
	}
	h, ds := t.take(ctx, where)
	if ds = append(about, ds...); ds.HasErrors() {
		return ds
	}
	t.held = h
	if t.o.Op == Apply {
		if err := t.noteState(ctx, where); err != nil {
			return diag.Errorf(nil, "Failed to note where the state is", "%s.", err)
		}
	}
	op := &operation.Operation{
		Engine: t.engine, Env: t.at.Environ(), Values: t.values, State: states.Manager{Held: h, Changing: t.Changing}, Stop: t.o.Stop,
		Reads: t.reads(), Choose: t.chooseMore,
	}
	if t.o.Op == Plan { // an apply has made them
		op.Moves = t.at.Moves()
	}
	planning, s := t.phase(ctx, "plan")
	p, more := op.Plan(planning, engine.PlanOptions{
		Mode: t.mode(), SkipRefresh: skip, Targets: t.o.Plans.Targets, Excludes: t.o.Plans.Excludes, Replace: t.replaced(h.Current()),
		Defer: t.o.Op == Plan, Time: t.approval.Time(),
	})
	ended(s, more)
	if more.HasErrors() && len(t.waits) > 0 && t.o.Op == Plan && workdir.NotKnownYet(more) {
		t.deferUnit(t.engine.Root(), report.Deferral{Reason: "what must be known before anything is planned is not known yet", At: more.Errors()[0].At, Waits: t.allWaits()})
		return append(ds, more.Warnings()...)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	t.notePlan(p, where.Encryption.Plan(ctx).PlanSealer())
	if t.o.Op == Plan {
		t.Made.Set(u.ID, t.planned(p))
		return ds
	}
	yes, more := t.approved(p)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	if !yes {
		t.res.Break("run error", "what had been deferred was not approved")
		return ds
	}
	return append(ds, t.apply(ctx, op, p)...)
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

// planned are the outputs that other units of a plan see.
func (t *Turn) planned(p *plan.Plan) cty.Value {
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

// apply carries the plan out.
func (t *Turn) apply(ctx context.Context, op *operation.Operation, p *plan.Plan) diag.List {
	h := t.held
	if !p.HasChanges() && p.Prior.Equal(p.PrevRun) && !h.Migrating() { // else what was read or refreshed goes into state
		t.applied(p)
		return nil
	}
	ctx, s := t.phase(ctx, "apply")
	got, ds := op.Apply(ctx, p, t.o.Every)
	ended(s, ds)
	if !got.Started {
		return ds
	}
	t.res.Counts = report.Counts(operation.Counts(got))
	if ds.HasErrors() {
		t.Made.Set(t.Unit.ID, t.made(nil))
		return ds
	}
	t.applied(p)
	return ds
}

// applied says that the apply of a plan has ended without errors.
func (t *Turn) applied(p *plan.Plan) {
	t.Made.Set(t.Unit.ID, t.made(p.Outputs))
	if t.o.Observe.Applied != nil {
		t.o.Observe.Applied(t.res, t.held.Current())
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
