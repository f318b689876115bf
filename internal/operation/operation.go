// Package operation is what commands do with a folder and its state once both are open,
// however that was: a folder by itself, a unit alone, one of many units, or a folder that
// another program opened.
//
// Main types: Place, where a state is, which is taken or read there; Operation, an engine
// with the state that was taken, which plans and applies. The one rule: nothing is told
// here. Who shows an operation gets what came of each step.
package operation

import (
	"context"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// An Operation is plan or apply of one folder under way.
type Operation struct {
	Engine *engine.Engine
	Env    sys.Env
	Values map[string]engine.InputValue // of the root variables
	State  State
	Stop   <-chan struct{} // when closed, what runs ends and nothing more begins; nil: never
}

// A State is one that was taken, which an apply changes.
type State interface {
	engine.StateManager
	Current() *state.State
}

// Plan plans from a state: that which was taken, or what it will be.
func (o *Operation) Plan(ctx context.Context, from *state.State, po engine.PlanOptions) (*plan.Plan, diag.List) {
	po.Variables, po.Stop = o.Values, o.Stop
	return o.Engine.Plan(ctx, Translate(o.Engine, o.Env, from), po)
}

// Apply carries a plan out, to its end even where ctx ends. The whole state is written
// every so often, 0 means as often as usual. An apply that was stopped is an error.
func (o *Operation) Apply(ctx context.Context, p *plan.Plan, every time.Duration) (engine.ApplyResult, diag.List) {
	res, ds := o.Engine.Apply(context.WithoutCancel(ctx), p, engine.ApplyOptions{Variables: o.Values, State: o.State, Every: every, Stop: o.Stop})
	if res.Started && res.Stopped && !ds.HasErrors() {
		ds = append(ds, diag.Errorf(nil, "Apply was interrupted", "Not everything that was planned was done, since the run was interrupted. What was done is in the state.")...)
	}
	return res, ds
}

// Counts are what an apply did.
func Counts(res engine.ApplyResult) plan.Counts {
	return plan.Counts{Add: res.Added, Change: res.Changed, Destroy: res.Destroyed, Import: res.Imported, Forget: res.Forgotten}
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
