package run

import (
	"context"
	"slices"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/plan"
)

// ruled are the rules of a run, with the parts of plans that they need. Without rules, it stores
// nothing.
type ruled struct {
	rules *rulecheck.Rules // nil means that there are no rules
	wants func(subject.Kind, string) bool
	mu    sync.Mutex
	plans map[*estate.Unit]*plan.Plan
}

// loadRules reads the rules for a command that plans.
func (r *estateRun) loadRules() diag.List {
	if r.op.Plan.Mode == plan.RefreshOnly || r.name != "plan" && r.name != "apply" && r.name != "destroy" {
		return nil
	}
	set, ds := rulecheck.Load(r.Call)
	r.ruled.rules, r.ruled.plans = set, map[*estate.Unit]*plan.Plan{}
	if set != nil {
		r.ruled.wants = set.Wants(true)
	}
	return ds
}

// take stores the changes of a unit's plan that rules need.
func (x *ruled) take(u *estate.Unit, p *plan.Plan) {
	if x.rules == nil {
		return
	}
	n := *p
	n.Changes = slices.DeleteFunc(slices.Clone(p.Changes), func(c *plan.Change) bool {
		kind := subject.Resource
		if c.Addr.Resource.Mode == addr.Data {
			kind = subject.Data
		}
		return !x.wants(kind, c.Addr.Resource.Type)
	})
	n.Prior, n.PrevRun, n.Actions, n.Drift = nil, nil, nil, nil // plans are large
	x.mu.Lock()
	defer x.mu.Unlock()
	x.plans[u] = &n
}

// checkRules checks the rules for the plans of a run and reports the failures. It returns false if
// one of the level error failed, so that the plan must not be applied.
func (r *estateRun) checkRules(ctx context.Context, results []*estate.Result) bool {
	if r.ruled.rules == nil || results == nil {
		return true
	}
	plans := r.ruled.plans
	if r.f.On != "" { // the plans are on the workers
		plans = nil
	}
	res, ds := r.ruled.rules.Estate(ctx, r.estate, plans)
	ds = append(ds, rulecheck.Messages(res)...)
	r.tellEstate(ds)
	return !ds.HasErrors()
}
