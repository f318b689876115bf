package planner

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// postpone records that an object is deferred.
func (p *planner) postpone(what string, why plan.DeferReason, d *eval.Deferral) {
	add(&p.found, &p.found.deferred, &plan.Deferred{Addr: what, Reason: why, At: d.At, Variables: d.Variables})
}

// deferInstance defers one instance. Its value has the configured arguments; all other
// attributes are unknown.
func (p *planner) deferInstance(t *demand.Task, d *eval.Desired, why plan.DeferReason, wait *eval.Deferral) (*instancePlan, cty.Value, diag.List) {
	ip := newInstancePlan(d)
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ip, cty.DynamicVal, ds
	}
	ip.pre, ds = d.Preconditions(t)
	ip.checked = true
	config, sensitive, more := resourceclient.ConfigValue(t, d, s)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); ds.HasErrors() {
		return ip, cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	p.postpone(d.Addr().String(), why, wait)
	ip.deferred = true
	planned := s.Block.SetUnknowns(config)
	return ip, resourceclient.WithSensitive(planned, resourceclient.Present(planned, sensitive), s), ds
}

// sortDeferred sorts deferred objects by address.
func sortDeferred(all []*plan.Deferred) []*plan.Deferred {
	slices.SortFunc(all, func(a, b *plan.Deferred) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}
