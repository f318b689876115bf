package planning

import (
	"context"
	"maps"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
)

// checkRules checks the rules of the directory for a plan. An error means that the plan must not be
// applied.
func (r *run) checkRules(ctx context.Context, p *plan.Plan) diag.List {
	if p == nil || p.Errored || p.Mode == plan.RefreshOnly {
		return nil
	}
	set, ds := rulecheck.LoadForPlan(r.Call)
	if set == nil || ds.HasErrors() {
		return ds
	}
	given := engine.ExplainOptions{Variables: map[string]engine.InputValue{}}
	maps.Copy(given.Variables, r.Vars)
	maps.Copy(given.Variables, r.op.Values) // for a saved plan, these are only the ephemeral values
	if r.Unit != nil {
		r.Unit.Explain(&given)
	}
	res, more := set.Directory(ctx, r.Engine, rulecheck.Given{Explain: given, Plan: p, Schema: func(a addr.Provider) *schema.Provider {
		s, ds := r.Engine.Schema(ctx, a)
		if ds.HasErrors() {
			return nil
		}
		return s
	}})
	return append(append(ds, more...), rulecheck.Messages(res)...)
}
