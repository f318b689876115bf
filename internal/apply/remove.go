package apply

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// remove destroys a current or deposed object.
func (a *applier) remove(t *demand.Task, id int, act plan.Action, c *plan.Change) diag.List {
	obj := addr.Object{Instance: c.Addr, Deposed: c.Deposed}
	if c.Op == plan.CreateThenDelete {
		key, ok := a.deposedOf(act.Change)
		if !ok {
			return nil
		}
		obj.Deposed = key
	}
	stored, pcAddr, ok := a.objectNow(obj)
	if !ok {
		return nil
	}
	pc, ds := a.ev.ProviderAt(t, pcAddr, c.Addr)
	if ds.HasErrors() {
		return ds
	}
	prov, ds := a.configured(t, pc)
	if ds.HasErrors() {
		return ds
	}
	ps, ds := a.shell.Schema(pcAddr.Provider)
	if ds.HasErrors() {
		return ds
	}
	s := ps.Resource(addr.Managed, c.Addr.Resource.Type)
	null := cty.NullVal(s.Block.ImpliedType())
	if obj.Deposed == "" && c.Op != plan.CreateThenDelete {
		if d := a.ev.Desired(t, c.Addr); d != nil {
			ds = append(ds, a.provision(t, d, c.Before, true)...)
		} else {
			ds = append(ds, a.provisionOrphan(t, c)...)
		}
		if ds.HasErrors() {
			return ds
		}
	}
	run := a.begin(id, a.deleteEvent(obj, c))
	if a.in.Journal != nil {
		if err := a.in.Journal.Begin(id, obj.String(), plan.Delete.String()); err != nil {
			return append(ds, diag.Errorf(nil, "Failed to write the journal", "%s was not destroyed, because Terrace could not record that it was about to: %s.", obj, err)...)
		}
	}
	done := a.call()
	resp, more := prov.Apply(a.ctx, provider.ApplyRequest{Type: c.Addr.Resource.Type, Prior: c.Before, Planned: null, Config: null, Private: c.Private, PlannedIdentity: cty.NilVal, Meta: cty.NilVal})
	done()
	ds = append(ds, more...)
	if resp.State == cty.NilVal || more.HasErrors() && !resp.State.IsNull() || resp.State.IsNull() && !more.HasErrors() {
		ds = append(ds, a.removed(id, obj, pcAddr, stored, s, resp, more.HasErrors())...)
	} else if resp.State.IsNull() {
		a.change(id, state.Change{Object: obj, Provider: pcAddr})
	} else {
		ds = append(ds, a.removed(id, obj, pcAddr, stored, s, resp, false)...)
		ds = append(ds, diag.Errorf(nil, "Provider returned invalid result object after apply", "After applying the destroy of %s, the provider returned an object and no error. Destroying must always produce a null value, so this is a bug in the provider, which should be reported in the provider's own issue tracker.", obj)...)
	}
	kind := event.ApplyDone
	if ds.HasErrors() {
		kind = event.ApplyError
	}
	a.end(id, run, kind, cty.NilVal)
	if !ds.HasErrors() {
		a.count(func(r *Result) { r.Destroyed++ })
	}
	if len(ds) > 0 {
		if d := a.ev.Desired(t, c.Addr); d != nil {
			ds = plan.Blame(d, s, ds)
		}
	}
	return ds
}

func (a *applier) deleteEvent(obj addr.Object, c *plan.Change) event.Event {
	e := event.Event{Kind: event.ApplyStart, Object: obj, Op: plan.Delete}
	e.IDKey, e.IDValue = plan.Identify(c.Before)
	return e
}

// removed records the answer to a destroy: gone, or what is left of the object.
func (a *applier) removed(id int, obj addr.Object, pc addr.ProviderConfig, stored *state.Object, s *schema.Resource, resp provider.ApplyResponse, failed bool) diag.List {
	left := resp.State != cty.NilVal && !resp.State.IsNull() && resp.State.IsWhollyKnown()
	switch {
	case !failed && !left:
		a.change(id, state.Change{Object: obj, Provider: pc})
	case left:
		next, err := plan.NewObject(resp.State, s, resp.Private, resp.Identity)
		if err != nil {
			a.change(id)
			return diag.Errorf(nil, "Provider produced invalid object", "What is left of %s cannot be stored: %s.", obj, err)
		}
		next.Sensitive, next.Dependencies, next.Tainted = stored.Sensitive, stored.Dependencies, stored.Tainted
		next.CreateBeforeDestroy, next.SkipDestroy = stored.CreateBeforeDestroy, stored.SkipDestroy
		a.change(id, state.Change{Object: obj, Provider: pc, New: next})
	default:
		a.change(id) // answered: nothing changed
	}
	return nil
}

// adopt writes an imported object that needs no change into state.
func (a *applier) adopt(id int, t *demand.Task, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	a.change(id, a.stored(x, c.After, c.Private, c.AfterIdentity, false))
	a.keep(x, c.After)
	a.count(func(r *Result) { r.Imported++ })
	return ds
}

// readPlanned reads a data source that had to wait. What a check finds wrong
// with its own does not stop the apply.
func (a *applier) readPlanned(t *demand.Task, id int, c *plan.Change) diag.List {
	ds := a.read(t, id, c)
	d := a.ev.Desired(t, c.Addr)
	if d == nil || d.Resource.Config().Check == "" || !ds.HasErrors() {
		return ds
	}
	failure := plan.SoftenCheck(ds)
	a.change(id, state.Change{Object: addr.Object{Instance: c.Addr}, Provider: c.Provider})
	a.mu.Lock()
	a.unread[c.Addr] = failure
	a.mu.Unlock()
	return ds
}

// read reads a data source that had to wait.
func (a *applier) read(t *demand.Task, id int, c *plan.Change) diag.List {
	x, ds := a.wanted(t, id, c)
	if ds.HasErrors() {
		return ds
	}
	if !x.config.IsWhollyKnown() {
		return append(ds, diag.Errorf(&x.d.Resource.Config().At, "Configuration not known", "The configuration of %s holds values that are still not known. This is a bug in Terrace.", c.Addr)...)
	}
	v, more := plan.ReadData(a.shell, x.d, x.s, x.prov, x.config, x.meta, a.in.Observe, a.call)
	if ds = append(ds, plan.Blame(x.d, x.s, more)...); more.HasErrors() {
		return ds
	}
	obj := a.stored(x, v, nil, cty.NilVal, false)
	obj.New.Sensitive = plan.Present(v, x.marks)
	obj.New.Dependencies = nil
	a.change(id, obj)
	a.keep(x, v)
	post, more := x.d.Postconditions(t, a.valueOf(c.Addr))
	a.outcomes(x.d, post)
	return append(ds, more...)
}

// Schema implements eval.Phase.
func (a *applier) Schema(_ *demand.Task, p addr.Provider) (*schema.Provider, diag.List) {
	return a.shell.Schema(p)
}

// Value implements eval.Phase: new values where something was made, else what
// state had when the apply began.
func (a *applier) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
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
	v, more := a.shell.Decode(i, obj, s, d.Resource.Provider(), a.call)
	return plan.WithSensitive(v, obj.Sensitive, s), append(ds, more...)
}

// open opens an ephemeral resource for this apply.
func (a *applier) open(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType()).Mark(value.Ephemeral)
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
	if ds = append(ds, plan.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	config, _ := v.UnmarkDeep()
	if !config.IsWhollyKnown() {
		return unknown, ds
	}
	prov, more := a.configured(t, pc)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	o, out, more := plan.Open(a.shell, d, s, prov, config, a.in.Observe)
	if ds = append(ds, plan.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	a.mu.Lock()
	a.opened = append(a.opened, o)
	a.mu.Unlock()
	post, more := d.Postconditions(t, out)
	a.outcomes(d, post)
	return out, append(ds, more...)
}

// configured returns the provider of a configuration, started with its final value.
func (a *applier) configured(t *demand.Task, pc *eval.ProviderConfig) (provider.Provider, diag.List) {
	a.mu.Lock()
	c := a.live[pc]
	if c == nil {
		c = demand.NewCell[provider.Provider](demand.Subject(pc), nil, func(t *demand.Task) (provider.Provider, diag.List) {
			return a.shell.Configure(t, pc)
		})
		a.live[pc] = c
	}
	a.mu.Unlock()
	prov, ok := c.Get(t, nil)
	if !ok {
		return nil, demand.Fail()
	}
	return prov, nil
}

// Function implements eval.Phase.
func (a *applier) Function(t *demand.Task, p addr.Provider, pc *eval.ProviderConfig, name string) (function.Function, diag.List) {
	var prov provider.Provider
	var ds diag.List
	if pc != nil {
		prov, ds = a.configured(t, pc)
	} else {
		prov, ds = a.in.Providers.Any(a.ctx, p)
	}
	if ds.HasErrors() {
		return function.Function{}, ds
	}
	return plan.ProviderFunction(a.ctx, prov, p, name, pc != nil)
}
