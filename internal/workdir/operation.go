package workdir

import (
	"context"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/plan/readlog"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// An Operation is what is done with one directory and its state.
type Operation struct {
	Engine *engine.Engine
	Env    sys.Env
	Values map[string]engine.InputValue // of the root variables
	Unit   Unit                         // the unit that the values come from; nil outside of units
	State  *OpenState                   // nil: nothing is written, and plans are made from From
	From   *state.State                 // nil for none
	Host   Host                         // nil means Silent
	Moves  Moves                        // between units; nil for none
	Reads  *Reads                       // what a plan does not read; nil: as its options say
	Stop   <-chan struct{}              // when closed, what runs ends and nothing more begins; nil: never
	// Choose finds the packages of the providers that configuration and states need; nil:
	// they are there.
	Choose func(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List

	chosen bool         // providers were chosen
	of     *state.State // for this state
}

// Ready finds the providers that configuration and states need: before anything else, where
// what is missing is to be said first, else before a plan is made.
func (o *Operation) Ready(ctx context.Context, states ...*state.State) diag.List {
	if o.Choose == nil {
		return nil
	}
	o.chosen, o.of = true, nil
	if len(states) > 0 {
		o.of = states[0]
	}
	return o.Choose(ctx, Required(o.Engine, o.Env, states...))
}

// current is the state that there is; nil for none.
func (o *Operation) current() *state.State {
	if o.State == nil {
		return o.From
	}
	return o.State.Current()
}

// host returns the Host.
func (o *Operation) host() Host {
	if o.Host == nil {
		return Silent{}
	}
	return o.Host
}

// Moves are those between units that the state of one has a part in.
type Moves interface {
	// Moved is the state as it will be when they are made, and what they are.
	Moved(ctx context.Context, own *state.State) (*state.State, []plan.Transfer, diag.List)
	// Transfer makes them. own is the state, which the caller does not hold.
	Transfer(ctx context.Context, own statemgr.Options) diag.List
}

// Plan plans from the state as it will be when moves are made.
func (o *Operation) Plan(ctx context.Context, po engine.PlanOptions) (*plan.Plan, diag.List) {
	from, transfers, ds := o.moved(ctx, po.Mode)
	if ds.HasErrors() {
		return nil, ds
	}
	if !o.chosen || o.of != from {
		if ds = append(ds, o.Ready(ctx, from)...); ds.HasErrors() {
			return nil, ds
		}
	}
	if o.Reads != nil {
		o.Reads.set(&po, from)
	}
	po.Variables, po.Stop = o.Values, o.Stop
	p, more := o.Engine.Plan(ctx, Translate(o.Engine, o.Env, from), po)
	if p != nil {
		p.Transfers = transfers
		if po.Causes {
			more = append(more, o.addCauses(ctx, p)...)
		}
	}
	if ds = append(ds, more...); !ds.HasErrors() {
		o.Reads.keep(p, nil)
	}
	return p, ds
}

// addCauses adds the causes to the changes of a plan.
func (o *Operation) addCauses(ctx context.Context, p *plan.Plan) diag.List {
	given := engine.ExplainOptions{Variables: o.Values, State: p.Prior}
	if o.Unit != nil {
		o.Unit.Explain(&given)
	}
	return o.Engine.AddCauses(ctx, p, given)
}

// moved is the state as it will be when moves are made, and what they are.
func (o *Operation) moved(ctx context.Context, mode plan.Mode) (*state.State, []plan.Transfer, diag.List) {
	own := o.current()
	if o.Moves == nil || mode == plan.RefreshOnly { // which changes nothing but what it reads
		return own, nil, nil
	}
	return o.Moves.Moved(ctx, own)
}

// Transfer makes the moves that a plan was made with, if they are those that are still to be
// made. It comes before Apply.
func (o *Operation) Transfer(ctx context.Context, p *plan.Plan) diag.List {
	expected, transfers, ds := o.moved(ctx, p.Mode)
	switch {
	case ds.HasErrors():
		return ds
	case !slices.Equal(p.Transfers, transfers):
		return diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is stale", "The given plan file can no longer be applied because the moves between units that it was made with are not those that are still to be made.")
	case len(transfers) == 0:
		return nil
	}
	return o.State.Between(ctx, func(own statemgr.Options) diag.List { return o.Moves.Transfer(ctx, own) }, expected)
}

// Resume makes ready for a plan that was saved: it must have been made from the state that
// there is.
func (o *Operation) Resume(ctx context.Context, p *plan.Plan) diag.List {
	if Stale(p.PrevRun, o.current()) {
		return diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is stale", "The given plan file can no longer be applied because the state was changed by another operation after the plan was created.")
	}
	ds := o.Ready(ctx, o.current(), p.Prior)
	if !ds.HasErrors() && p.PrevRun == p.Prior {
		p.Prior = Translate(o.Engine, o.Env, p.Prior)
		p.PrevRun = p.Prior
	}
	return ds
}

// Stale reports whether a state is another one than that which a plan was made from.
func Stale(planned, now *state.State) bool {
	if planned == nil || now == nil {
		return (planned == nil || planned.Lineage == "") != (now == nil)
	}
	return planned.Lineage != now.Lineage || planned.Serial != now.Serial
}

// Import takes an object into the state.
func (o *Operation) Import(ctx context.Context, io engine.ImportOptions) diag.List {
	ds := o.Ready(ctx, o.current())
	if ds.HasErrors() {
		return ds
	}
	io.Variables = o.Values
	next, more := o.Engine.Import(ctx, Translate(o.Engine, o.Env, o.current()), io)
	if ds = append(ds, more...); ds.HasErrors() {
		return ds
	}
	return append(ds, o.State.Write(context.WithoutCancel(ctx), next)...)
}

// Apply carries a plan out, to its end even where ctx ends. The whole state is written
// every so often, 0 means as often as usual. An apply that was stopped is an error. One
// without changes has no journal, since nothing is asked for that it would have to tell of.
func (o *Operation) Apply(ctx context.Context, p *plan.Plan, every time.Duration) (engine.ApplyResult, diag.List) {
	ctx = context.WithoutCancel(ctx)
	ao := engine.ApplyOptions{Variables: o.Values, Every: every, Stop: o.Stop}
	if p.HasChanges() {
		ao.State = o.State
	}
	var begun time.Time
	if o.Reads != nil {
		begun = o.Reads.Now()
	}
	res, ds := o.Engine.Apply(ctx, p, ao)
	if ao.State == nil && res.Started {
		ds = append(ds, o.State.Write(ctx, res.State)...)
	}
	if res.Started {
		o.Reads.keep(p, &readlog.Applied{State: o.current(), Begun: begun, Failed: ds.HasErrors() || res.Stopped, Providers: res.Providers})
	}
	if res.Started && res.Stopped && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(diag.CodeCLIInterrupted, nil, "Apply was interrupted", "Not everything that was planned was done, since the run was interrupted. What was done is in the state.")...)
	}
	return res, ds
}

// Translate gives providers in a state, which may be nil, the addresses that configuration
// means.
func Translate(e *engine.Engine, env sys.Env, s *state.State) *state.State {
	named := map[addr.Provider]bool{}
	for a := range e.Requirements() {
		named[a] = true
	}
	return s.TranslateProviders(named, env.Get("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") != "0")
}

// Required are the providers that configuration and states need, with the constraints on
// their versions. A state may be nil.
func Required(e *engine.Engine, env sys.Env, states ...*state.State) map[addr.Provider][]config.Constraint {
	req := e.Requirements()
	for _, s := range states {
		if s == nil {
			continue
		}
		for _, r := range Translate(e, env, s).Resources {
			if _, ok := req[r.Provider.Provider]; !ok {
				req[r.Provider.Provider] = nil
			}
		}
	}
	return req
}
