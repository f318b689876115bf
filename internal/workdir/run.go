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

// # Plan and apply
//
// Run takes the same steps in a directory, in a unit and in each of many units:
//
//  1. It locks and reads the state, and merges the journal of a killed run.
//  2. It selects the providers and makes a plan, or checks that a saved plan was made from this
//     state.
//  3. It passes the plan to the caller, who shows it and approves it, or compares it with an
//     approved plan.
//  4. It carries out the moves between units that the plan lists.
//  5. It applies the plan, even a plan without changes, because the results of checks and the
//     dependencies in the state may change. The engine writes the journal and the state.
//  6. It releases the state.
//
// Want configures the steps, and Steps contains the functions that Run calls.

// A Want configures Run.
type Want struct {
	Plan  plan.Options
	Saved *plan.Plan    // plan to apply; nil makes a new plan
	Apply bool          // apply the plan
	Every time.Duration // interval between writes of the whole state during an apply; 0 means the default
	// ShowSensitive shows the output of provisioners whose configuration contains secrets.
	ShowSensitive bool
	// MovesFirst carries out the moves between units before an apply makes its plan, while the
	// state is not locked. Otherwise two units that run at the same time could deadlock, each
	// waiting for the state of the other.
	MovesFirst bool
	// Lenient keeps the outputs in the state whose new values are unknown after a refresh.
	Lenient bool
}

// Steps contains the functions that Run calls. All except Locked may be nil.
type Steps struct {
	// Locked returns the options that take the state.
	Locked func(ctx context.Context) (statemgr.Options, diag.List)
	// Taken is called with the state after it is read. It may change the options of the plan.
	Taken func(h *OpenState, po *plan.Options) diag.List
	// Planned is called with the plan and all messages so far. If they contain errors, the plan
	// may be nil. yes approves the plan. left contains the messages that Run returns.
	Planned func(ctx context.Context, p *plan.Plan, ds diag.List) (yes bool, left diag.List)
	// Applying is called when an apply begins, after the state is ready.
	Applying func(p *plan.Plan)
	// Span starts a tracing span for the phase "plan" or "apply". The returned function ends it.
	Span func(ctx context.Context, phase string) (context.Context, func(diag.List))
}

// Done is the result of Run.
type Done struct {
	Plan    *plan.Plan // nil if there is none
	Applied bool       // the plan was applied without errors
	Began   bool       // the apply began
	Counts  plan.Counts
	State   *state.State
	// Released contains the messages of releasing the state. Errors in it do not make the
	// operation fail.
	Released diag.List
}

// Run makes a plan, and applies it if w.Apply is set. It returns the messages that Steps.Planned
// returned, and all later ones.
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
		o.Moves = nil // already carried out
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

// phase starts the span of a phase.
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
	if !p.HasChanges() { // Apply does not call Start in this case
		h.began()
	}
	ctx, end := s.phase(ctx, "apply")
	res, ds := o.Apply(ctx, p, w.Every, w.ShowSensitive)
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

// tellImports reports events for the imported objects of a plan. The plan has read them; the apply
// adds them to the state.
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

// notRepeated returns the messages of a plan that its apply does not report again, such as those of
// checks that fail in both. It omits messages about checks with unknown results, because the apply
// evaluates them. It keeps them for a refresh-only plan, whose apply evaluates no checks.
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
