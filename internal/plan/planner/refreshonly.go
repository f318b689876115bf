package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A refresh-only plan creates and destroys nothing. References to a whole resource therefore
// return the instances in state, not those in the configuration.

// inState reports whether state contains an instance of the configuration.
func (p *planner) inState(t *demand.Task, d *eval.Desired) bool {
	if d.Key() == (addr.Key{}) && d.Resource.Config().Repeat.Enabled == nil || d.Addr().Resource.Mode != addr.Managed {
		return true
	}
	d.Value(t, nil)
	ip := p.found.instance(d)
	return ip == nil || ip.refreshed != nil || !ip.looked
}

// notWanted returns the instances that are in state but not in the configuration.
func (p *planner) notWanted(t *demand.Task, r *eval.Resource, in *eval.Instances) []eval.NotWanted {
	had := p.prior.Resource(r.Addr())
	if had == nil || r.Config().Addr.Mode != addr.Managed {
		return nil
	}
	var out []eval.NotWanted
	for _, k := range had.Keys() {
		stored := had.Instances[k].Current
		if in.Get(k) != nil || stored == nil {
			continue
		}
		a := r.Addr().Instance(k)
		ok := true
		if p.scope.target(a) && p.scope.allows(a) {
			op, done := p.refreshOrphan(t, had, k)
			if ok = done && op != nil && !op.failed; ok {
				stored = op.refreshed
			}
		}
		if stored == nil {
			continue
		}
		v, more := p.decoded(t, r, a, stored)
		out = append(out, eval.NotWanted{Key: k, Value: v, OK: ok && !more})
	}
	return out
}

// decoded returns the value of an object in state.
func (p *planner) decoded(t *demand.Task, r *eval.Resource, a addr.Instance, o *state.Object) (v cty.Value, failed bool) {
	s, ds := r.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, true
	}
	v, ds = p.client.Decode(a, o, s, r.Provider())
	return resourceclient.WithSensitive(v, o.Sensitive, s), ds.HasErrors()
}

// refreshOrphan refreshes an instance that is not in the configuration, once for all callers.
func (p *planner) refreshOrphan(t *demand.Task, r *state.Resource, k addr.Key) (*orphanPlan, bool) {
	a := r.Addr.Instance(k)
	cell, _ := p.unwanted.LoadOrStore(a, demand.NewCell(demand.Subject(unwanted(a)), nil, func(t *demand.Task) (*orphanPlan, diag.List) {
		return p.orphan(t, r, k), nil
	}))
	return cell.(*demand.Cell[*orphanPlan]).Get(t, nil)
}

// unwanted is the subject of an instance that is not in the configuration.
type unwanted addr.Instance

func (u unwanted) Describe() (string, *source.Range) { return addr.Instance(u).String(), nil }
