package workdir

import (
	"context"
	"fmt"
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

// An Operation plans and applies one directory, or imports into its state. It is not safe for
// concurrent use.
type Operation struct {
	Engine *engine.Engine
	Env    sys.Env
	Values map[string]engine.InputValue // values of the root variables
	Unit   UnitSettings                 // the unit that the values come from; nil outside of units
	State  *OpenState                   // nil means that no state is written, and plans are made from From
	From   *state.State                 // used if State is nil; nil means no state
	Host   Host                         // nil means Silent
	Moves  Moves                        // moves between units; nil means none
	Reads  *Reads                       // earlier readings; nil means none
	Stop   <-chan struct{}              // when closed, running work ends and no more work starts; may be nil
	// Choose selects installed packages for the needed providers. nil means that they are
	// available without packages.
	Choose func(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List

	chosen bool         // Choose was called
	of     *state.State // state that was passed to Choose
}

// Ready selects the providers that the configuration and the states need. Plan calls it too. A caller
// that reports missing providers before other errors calls it first.
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

// current returns the current state, or nil if there is none.
func (o *Operation) current() *state.State {
	if o.State == nil {
		return o.From
	}
	return o.State.Current()
}

// host returns the Host, or Silent if it is nil.
func (o *Operation) host() Host {
	if o.Host == nil {
		return Silent{}
	}
	return o.Host
}

// Moves contains the moves between units from or to the state of one unit.
type Moves interface {
	// Moved returns the state after the moves, and the moves. It writes nothing.
	Moved(ctx context.Context, own *state.State) (*state.State, []plan.Transfer, diag.List)
	// Transfer carries out the moves. own are the options that take the unit's state, which the
	// caller must have released.
	Transfer(ctx context.Context, own statemgr.Options) diag.List
}

// Plan makes a plan from the state after the moves between units, which the plan lists in Transfers.
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
		if po.Causes || po.AllOrigins {
			o.addCauses(ctx, p, po.Options)
		}
	}
	if ds = append(ds, more...); !ds.HasErrors() {
		o.Reads.keep(p, nil)
	}
	return p, ds
}

// addCauses adds the causes and the origins to a plan as the options request, with the texts that their
// places had in another revision.
func (o *Operation) addCauses(ctx context.Context, p *plan.Plan, po plan.Options) {
	given := engine.ExplainOptions{Variables: o.Values, State: p.Prior}
	if o.Unit != nil {
		o.Unit.Explain(&given)
	}
	if po.Causes {
		o.Engine.AddCauses(ctx, p, given)
	}
	if po.AllOrigins {
		o.Engine.AddOrigins(ctx, p, given)
	}
	was := po.Was
	if len(was) == 0 {
		return
	}
	for _, c := range p.Changes {
		for i, x := range c.Causes {
			c.Causes[i].Was = was[fmt.Sprintf("%s:%d", x.File, x.Line)]
		}
		for i, x := range c.Origins {
			c.Origins[i].Was = was[fmt.Sprintf("%s:%d", x.File, x.Line)]
		}
	}
	for _, d := range p.DataRead {
		for i, x := range d.Origins {
			d.Origins[i].Was = was[fmt.Sprintf("%s:%d", x.File, x.Line)]
		}
	}
}

// moved returns the state after the moves between units, and the moves.
func (o *Operation) moved(ctx context.Context, mode plan.Mode) (*state.State, []plan.Transfer, diag.List) {
	own := o.current()
	if o.Moves == nil || mode == plan.RefreshOnly { // a refresh-only plan makes no moves
		return own, nil, nil
	}
	return o.Moves.Moved(ctx, own)
}

// Transfer carries out the moves between units that a plan lists. Call it before Apply. It returns an
// error if the pending moves are not the same as those of the plan.
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

// Resume prepares the apply of a saved plan. It returns an error if the state has changed since the
// plan was made.
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

// Stale reports whether the state has changed since a plan was made, by lineage and serial. planned is
// the state from which the plan was made, now the current state; nil means no state.
func Stale(planned, now *state.State) bool {
	if planned == nil || now == nil {
		return (planned == nil || planned.Lineage == "") != (now == nil)
	}
	return planned.Lineage != now.Lineage || planned.Serial != now.Serial
}

// Import imports an object and writes the state.
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

// Apply applies a plan. It ignores the cancellation of ctx; only Stop ends it early, which is an
// error. every is the interval between writes of the whole state; 0 means the default. reveal shows
// the output of provisioners whose configuration contains secrets. A plan without changes needs no journal, because it calls no provider that changes objects.
func (o *Operation) Apply(ctx context.Context, p *plan.Plan, every time.Duration, reveal bool) (engine.ApplyResult, diag.List) {
	ctx = context.WithoutCancel(ctx)
	ao := engine.ApplyOptions{Variables: o.Values, Every: every, Stop: o.Stop, ShowSensitive: reveal}
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

// Translate returns the state with the provider addresses that the configuration uses: Terraform and
// OpenTofu have different default registries. OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION=0
// disables that. s may be nil.
func Translate(e *engine.Engine, env sys.Env, s *state.State) *state.State {
	named := map[addr.Provider]bool{}
	for a := range e.Requirements() {
		named[a] = true
	}
	return s.TranslateProviders(named, env.Get("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") != "0")
}

// Required returns the providers that the configuration and the states need, with their version
// constraints. A state may be nil.
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
