package workdir

import (
	"context"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// # How a plan and an apply go
//
// In a directory, in a unit and in each of many units the same steps are taken, by Run:
//
//  1. The state is locked and read, and what the journal of a killed run holds is brought in.
//  2. Providers are found for configuration and state, and the plan is made; or a saved one
//     is taken up, if it was made from this state.
//  3. The plan is shown, and approved or held against what was approved, by the caller.
//  4. Moves between units are made, if they are those that the plan has.
//  5. The plan is carried out, also one that changes nothing, since what checks came to and
//     what objects depend on may be other than the state has. The engine keeps the journal
//     and writes the state.
//  6. The state is given up.
//
// What differs is said by Want, and who hears of it by Steps.

// A Want says what is to come of an operation.
type Want struct {
	Plan  plan.Options
	Saved *plan.Plan    // is applied, and no plan is made; nil: one is made
	Apply bool          // the plan is carried out
	Every time.Duration // how often the whole state is written in an apply; 0: as usual
	// MovesFirst has the moves between units made before the plan of an apply: where many
	// units have their turns at once, none may wait for the state of another that waits for
	// its own.
	MovesFirst bool
	// Lenient has outputs left alone that a refresh cannot compute.
	Lenient bool
}

// Steps are what others have a part in. All but Locked may be nil.
type Steps struct {
	// Locked says where the state is and how it is taken.
	Locked func(ctx context.Context) (statemgr.Options, diag.List)
	// Taken is called with the state once it was read, and may change what is planned.
	Taken func(h *OpenState, po *plan.Options) diag.List
	// Planned is called with what came of planning and all messages so far; with errors
	// the plan may be nil. It says whether the plan may be carried out, and returns the
	// messages that are still to be reported.
	Planned func(ctx context.Context, p *plan.Plan, ds diag.List) (yes bool, left diag.List)
	// Applying is called when an apply begins: the state is ready for it.
	Applying func(p *plan.Plan)
	// Span begins a span for a phase, plan or apply, which the returned function ends.
	Span func(ctx context.Context, phase string) (context.Context, func(diag.List))
}

// Done is what came of an operation.
type Done struct {
	Plan    *plan.Plan // nil if there is none
	Applied bool       // the plan was carried out, without errors
	Began   bool       // the apply began
	Counts  plan.Counts
	State   *state.State
	// Released is what came up when the state was given up: that does not make a failure of
	// what was done before.
	Released diag.List
}

// Run plans, and carries the plan out if that is wanted. The messages are those that were
// not given to Steps.Planned, and those that it returned.
func (o *Operation) Run(ctx context.Context, w Want, s Steps) (out Done, ds diag.List) {
	options, ds := s.Locked(ctx)
	if ds.HasErrors() {
		return out, ds
	}
	first := w.Apply && w.MovesFirst && o.Moves != nil && w.Plan.Mode != plan.RefreshOnly
	if first {
		more := o.Moves.Transfer(ctx, options)
		if ds = append(ds, more...); more.HasErrors() {
			return out, ds
		}
		o.Moves = nil // they are made
	}
	h, more := Take(ctx, options, func() { o.host().Waiting(nil) })
	if ds = append(ds, more...); h == nil {
		return out, ds
	}
	o.State = h
	defer func() {
		out.State = h.Current()
		out.Released = h.Release()
	}()
	if s.Taken != nil {
		if more = s.Taken(h, &w.Plan); more.HasErrors() {
			return out, append(ds, more...)
		}
		ds = append(ds, more...)
	}
	if w.Saved != nil {
		out.Plan, more = w.Saved, o.Resume(ctx, w.Saved)
	} else {
		out.Plan, more = o.plan(ctx, w, s)
	}
	ds = append(ds, more...)
	yes := true
	if s.Planned != nil {
		yes, ds = s.Planned(ctx, out.Plan, ds)
	}
	if !w.Apply || !yes || more.HasErrors() || ds.HasErrors() || out.Plan == nil || out.Plan.Errored {
		return out, ds
	}
	if !first {
		if more = o.Transfer(ctx, out.Plan); more.HasErrors() {
			return out, append(ds, more...)
		}
	}
	more = o.apply(ctx, w, s, h, &out)
	return out, append(notRepeated(out.Plan, ds, more), more...)
}

// phase begins the span of a phase.
func (s *Steps) phase(ctx context.Context, name string) (context.Context, func(diag.List)) {
	if s.Span == nil {
		return ctx, func(diag.List) {}
	}
	return s.Span(ctx, name)
}

func (o *Operation) plan(ctx context.Context, w Want, s Steps) (*plan.Plan, diag.List) {
	ctx, end := s.phase(ctx, "plan")
	p, ds := o.Plan(ctx, engine.PlanOptions{Options: w.Plan})
	end(ds)
	if p != nil && w.Lenient {
		p.Outputs = slices.DeleteFunc(p.Outputs, func(c *plan.OutputChange) bool { return c.Op != plan.Delete && !c.After.IsWhollyKnown() })
	}
	return p, ds
}

func (o *Operation) apply(ctx context.Context, w Want, s Steps, h *OpenState, out *Done) diag.List {
	p := out.Plan
	h.host, h.began = o.host(), func() {
		if s.Applying != nil {
			s.Applying(p)
		}
		tellImports(p, o.host().Event)
	}
	if !p.HasChanges() { // there is nothing that must be ready for it
		h.began()
	}
	ctx, end := s.phase(ctx, "apply")
	res, ds := o.Apply(ctx, p, w.Every)
	if res.Started {
		ds = append(ds, engine.Incomplete(p)...)
	}
	out.Began, out.Counts = res.Started, res.Counts
	if !ds.HasErrors() && w.Plan.Mode == plan.Destroy && res.Counts.Forget > 0 && !w.Plan.Forget && slices.ContainsFunc(p.Changes, (*plan.Change).Outlives) {
		ds = append(ds, diag.Errorf(diag.CodeCLILeftBehind, nil, "Destroy was successful but left behind forgotten instances", "As requested, Terrace has not deleted some remote objects that are no longer managed by this configuration. Those objects continue to exist in their remote system and so may continue to incur charges. Refer to the original plan for more information.\n\nTo suppress this error for the future 'destroy' runs, you can add the CLI flag \"-suppress-forget-errors\".")...)
	}
	end(ds)
	out.Applied = res.Started && !ds.HasErrors()
	return ds
}

// tellImports reports the objects that a plan takes over: they were read while it was
// made, and enter the state now.
func tellImports(p *plan.Plan, sink event.Sink) {
	for _, c := range p.Changes {
		if c.Import == nil {
			continue
		}
		e := event.Event{Kind: event.ImportStart, Object: addr.Object{Instance: c.Addr}}
		if e.IDKey, e.IDValue = "id", c.Import.ID; e.IDValue == "" {
			e.IDKey, e.IDValue = resourceclient.Identify(c.Import.Identity)
		}
		sink(e)
		e.Kind = event.ImportDone
		sink(e)
	}
}

// notRepeated are the messages of a plan that its apply did not come to as well, such as
// those of checks that still fail. What the plan left open was evaluated by the apply, but
// for that of a refresh-only plan, which evaluates no checks.
func notRepeated(p *plan.Plan, planned, applied diag.List) diag.List {
	type same struct{ summary, detail, address, at string }
	key := func(m *diag.Message) same {
		at := ""
		if m.At != nil {
			at = m.At.String()
		}
		return same{m.Summary, m.Detail, m.Address, at}
	}
	again := make(map[same]bool, len(applied))
	for _, m := range applied {
		again[key(m)] = true
	}
	var out diag.List
	for _, m := range planned {
		if !again[key(m)] && (m.Code != engine.CodeCheckOpen || p.Mode == plan.RefreshOnly) {
			out = append(out, m)
		}
	}
	return out
}
