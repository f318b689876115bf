package planner

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// putOff notes that something is put off.
func (p *planner) putOff(what string, why plan.DeferReason, d *eval.Deferral) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deferred = append(p.deferred, &plan.Deferred{Addr: what, Reason: why, At: d.At, Variables: d.Variables})
}

// putOffInstance notes that one instance is put off. Its value is what its
// configuration says, and unknown for the rest.
func (p *planner) putOffInstance(t *demand.Task, ip *instancePlan, why plan.DeferReason, wait *eval.Deferral) (cty.Value, diag.List) {
	d := ip.d
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	pre, ds := d.Preconditions(t)
	ip.pre, ip.checked = pre, true
	config, sensitive, more := resourceclient.ConfigValue(t, d, s)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); ds.HasErrors() {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	p.putOff(d.Addr().String(), why, wait)
	ip.deferred = true
	planned := s.Block.SetUnknowns(config)
	return resourceclient.WithSensitive(planned, resourceclient.Present(planned, sensitive), s), ds
}

// pending reports whether an instance is to change, or may be when it can be planned.
func (ip *instancePlan) pending() bool {
	return ip != nil && (ip.deferred || ip.change != nil && ip.change.Op != plan.NoOp)
}

// sortDeferred orders what is put off by address.
func sortDeferred(all []*plan.Deferred) []*plan.Deferred {
	slices.SortFunc(all, func(a, b *plan.Deferred) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}
