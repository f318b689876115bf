package planning

import (
	"context"
	"maps"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/plan"
)

// checkRules checks the rules of the directory for a plan. An error means that the plan must not be
// applied.
func (r *run) checkRules(ctx context.Context, p *plan.Plan) diag.List {
	if p == nil || p.Errored || p.Mode == plan.RefreshOnly {
		return nil
	}
	set, ds := rulecheck.Load(r.Call)
	if set == nil || ds.HasErrors() {
		return ds
	}
	given := engine.ExplainOptions{Variables: map[string]engine.InputValue{}}
	maps.Copy(given.Variables, r.Vars)
	maps.Copy(given.Variables, r.op.Values) // for a saved plan, these are only the ephemeral values
	if r.Unit != nil {
		r.Unit.Explain(&given)
	}
	res, more := set.Directory(ctx, r.Engine, given, p)
	return append(append(ds, more...), rulecheck.Messages(res)...)
}
