package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/checks"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/exchange"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/zclconf/go-cty/cty"
)

// value is what an instance is worth: new values where something was made, else what
// state had when the apply began.
func (a *applier) value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	i := d.Addr()
	if i.Resource.Mode == addr.Ephemeral {
		v, ds := a.open(t, d)
		return v, ds.About(i.String())
	}
	a.mu.Lock()
	v, made := a.values[i]
	_, planned := a.made[i]
	a.mu.Unlock()
	if made {
		return v, nil
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	if planned && d.Resource.Config().Check != "" {
		return cty.UnknownVal(s.Block.ImpliedType()), ds // that it could not be read was told
	}
	if planned { // it failed, or something before it did
		return cty.UnknownVal(s.Block.ImpliedType()), demand.Fail()
	}
	obj, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: i})
	if !ok {
		if a.in.Plan.Mode == plan.Destroy || d.Resource.Config().Check != "" {
			return cty.UnknownVal(s.Block.ImpliedType()), ds
		}
		if a.in.Plan.Mode == plan.RefreshOnly {
			return cty.UnknownVal(s.Block.ImpliedType()), ds // gone, or not made yet
		}
		return cty.UnknownVal(s.Block.ImpliedType()), demand.Fail()
	}
	v, more := a.exchange.Decode(i, obj, s, d.Resource.Provider())
	return exchange.WithSensitive(v, obj.Sensitive, s), append(ds, more...)
}

// open opens an ephemeral resource for this apply.
func (a *applier) open(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := exchange.NotOpen(s)
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	pre, more := d.Preconditions(t)
	a.outcomes(d, pre)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := d.Config(t, s)
	if ds = append(ds, exchange.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	config, _ := v.UnmarkDeep()
	if !config.IsWhollyKnown() {
		return unknown, ds
	}
	prov, more := a.exchange.Configured(t, pc, nil)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	o, out, more := a.exchange.Subject(a.ev, d.Addr(), pc.Addr, s, prov).Open(config, &d.Resource.Config().At)
	if ds = append(ds, exchange.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	a.mu.Lock()
	a.opened = append(a.opened, o)
	a.mu.Unlock()
	post, more := d.Postconditions(t, out)
	a.outcomes(d, post)
	return out, append(ds, more...)
}

// keep makes a new value available to what reads the instance.
func (a *applier) keep(x *target, v cty.Value) {
	out := exchange.WithSensitive(v, x.sensitive(v), x.sub.Schema)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values[x.c.Addr] = out
}

func (a *applier) valueOf(i addr.Instance) cty.Value {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.values[i]
}

func (a *applier) outcomes(d *eval.Desired, out []eval.Outcome) {
	if len(out) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome = append(a.outcome, checks.Of(d, out))
}
