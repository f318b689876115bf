package apply

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/checks"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// value returns the value of an instance: the new value if one was produced, otherwise the
// value in state when the apply began.
func (a *applier) value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	i := d.Addr()
	if i.Resource.Mode == addr.Ephemeral {
		v, ds := a.open(t, d)
		return v, ds.About(i.String())
	}
	a.mu.Lock()
	v, made := a.values[i]
	if !made {
		v, made = a.tainted[i]
	}
	_, planned := a.made[i]
	a.mu.Unlock()
	if made {
		return v, nil
	}
	if !planned && a.waits(i) {
		if s, ds := d.Resource.Schema(t); !ds.HasErrors() {
			return cty.UnknownVal(s.Block.ImpliedType()), nil
		}
		return cty.DynamicVal, nil
	}
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	if planned && d.Resource.Config().Check != "" {
		return cty.UnknownVal(s.Block.ImpliedType()), ds // the error of reading it was reported
	}
	if planned { // its action failed or was skipped
		return cty.UnknownVal(s.Block.ImpliedType()), demand.Fail()
	}
	obj, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: i})
	if !ok {
		if a.in.Plan.Mode == plan.Destroy || d.Resource.Config().Check != "" {
			return cty.UnknownVal(s.Block.ImpliedType()), ds
		}
		if a.in.Plan.Mode == plan.RefreshOnly { // destroyed or not created yet
			if i.Module == "" && i.Resource.Mode == addr.Managed {
				return cty.DynamicVal, ds // an output that reads it has a dynamic type, as in OpenTofu
			}
			return cty.UnknownVal(s.Block.ImpliedType()), ds
		}
		return cty.UnknownVal(s.Block.ImpliedType()), demand.Fail()
	}
	v, more := a.client.Decode(i, obj, s, d.Resource.Provider())
	return resourceclient.WithSensitive(v, obj.Sensitive, s), append(ds, more...)
}

// waits reports whether an instance is not part of the plan because it is deferred. An instance
// that the plan contains, or a data source that it read, exists whatever other instances its
// block or module has.
func (a *applier) waits(i addr.Instance) bool {
	switch {
	case len(a.in.Plan.Deferred) == 0 || !a.later(i) || a.certain[i]:
		return false
	case i.Resource.Mode == addr.Data && !slices.ContainsFunc(a.in.Plan.Deferred, func(d *plan.Deferred) bool { return d.Addr == i.String() }):
		_, _, stored := a.in.Plan.Prior.Object(addr.Object{Instance: i})
		return !stored
	}
	return true
}

// here reports whether outputs that read a whole resource see an instance. In a plan with
// targets or exclusions it must be planned or in state.
func (a *applier) here(_ *demand.Task, d *eval.Desired) bool {
	i := d.Addr()
	if _, planned := a.made[i]; planned {
		return true
	}
	_, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: i})
	return ok
}

// inState reports whether state contains an instance of the configuration. When a refresh-only
// plan is applied, only these instances count.
func (a *applier) inState(_ *demand.Task, d *eval.Desired) bool {
	if d.Key() == (addr.Key{}) && d.Resource.Config().Repeat.Enabled == nil || d.Addr().Resource.Mode != addr.Managed {
		return true
	}
	_, _, ok := a.in.Plan.Prior.Object(addr.Object{Instance: d.Addr()})
	return ok
}

// notWanted returns the instances that are in state but not in the configuration.
func (a *applier) notWanted(t *demand.Task, r *eval.Resource, in *eval.Instances) []eval.NotWanted {
	had := a.in.Plan.Prior.Resource(r.Addr())
	if had == nil || r.Config().Addr.Mode != addr.Managed {
		return nil
	}
	s, ds := r.Schema(t)
	if ds.HasErrors() {
		return nil
	}
	var out []eval.NotWanted
	for _, k := range had.Keys() {
		o := had.Instances[k].Current
		if in.Get(k) != nil || o == nil {
			continue
		}
		v, ds := a.client.Decode(r.Addr().Instance(k), o, s, r.Provider())
		out = append(out, eval.NotWanted{Key: k, Value: resourceclient.WithSensitive(v, o.Sensitive, s), OK: !ds.HasErrors()})
	}
	return out
}

// open opens an ephemeral resource for this apply.
func (a *applier) open(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	report := func(out []eval.Outcome) { a.outcomes(d, out) }
	return a.client.Open(t, a.ev, d, resourceclient.Opening{
		Before: report, After: report,
		Wait: func(config cty.Value, _ *eval.ProviderConfig) bool { return !config.IsWhollyKnown() },
	})
}

// keep makes the new value of an instance available to other objects.
func (a *applier) keep(x *target, v cty.Value) {
	a.keepValue(x.c.Addr, resourceclient.WithSensitive(v, x.sensitive(v), x.sub.Schema))
}

func (a *applier) keepValue(i addr.Instance, v cty.Value) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values[i] = v
}

func (a *applier) outcomes(d *eval.Desired, out []eval.Outcome) {
	if len(out) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome = append(a.outcome, checks.Of(d, out))
}
