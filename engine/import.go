package engine

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/planner"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// ImportOptions selects the object to import and its address.
type ImportOptions struct {
	Variables map[string]InputValue
	Addr      addr.Instance // of a managed resource instance
	ID        string        // the import ID that the provider expects
}

// Import adds an existing object to a state, which may be nil, without planning. It returns the
// new state, which the caller must write. With errors the state is nil.
func (e *Engine) Import(ctx context.Context, prev *state.State, o ImportOptions) (*state.State, diag.List) {
	e.ExpectStates(prev)
	vars, ds := e.inputs(o.Variables)
	if ds.HasErrors() {
		return nil, ds
	}
	now := e.o.Now().UTC()
	in := e.evaluation(vars, now, true, eval.DeferNothing)
	in.Compiled = &eval.Compiled{}
	next, more := planner.Import(ctx, planner.Input{
		Eval: in, Providers: e.providers(), State: prev, Options: plan.Options{Time: now},
		KeepHosts: e.getenv("OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION") == "0",
	}, o.Addr, o.ID)
	return next, append(ds, more...)
}
