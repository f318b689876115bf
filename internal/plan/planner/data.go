package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// data reads one instance of a data source, or plans to read it during apply.
func (p *planner) data(t *demand.Task, d *eval.Desired) (*instancePlan, cty.Value, diag.List) {
	ip := newInstancePlan(d)
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ip, cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	ip.provider = pc.Addr
	ip.checked = true
	if wait := pc.Deferral(t); wait != nil {
		off, v, more := p.deferInstance(t, d, plan.ProviderConfigUnknown, wait)
		ip.pre, ip.checked, ip.deferred = off.pre, off.checked, off.deferred
		return ip, v, append(ds, more...)
	}
	if p.in.Mode == plan.Destroy {
		obj, fresh, v, more := p.dataForDestroy(t, d, pc)
		ip.refreshed, ip.touched = obj, fresh
		return ip, v, append(ds, more...)
	}
	pre, more := d.Preconditions(t)
	ip.pre = pre
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	config, sensitive, more := resourceclient.ConfigValue(t, d, s)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() {
		return ip, unknown, ds
	}
	conditions := d.Conditions(t)
	ip.ends = p.readsDestroyed(t, d, conditions)
	reason := plan.Reason("")
	switch {
	case !config.IsWhollyKnown():
		reason = plan.ReadConfigUnknown
	case len(ip.ends) > 0 || p.pendingBefore(t, d, conditions != nil) || p.pendingDirect(t, d) || conditions != nil && p.pending(conditions, map[*demand.Node]bool{}):
		reason = plan.ReadDependencyPending
	case p.in.Mode == plan.Normal && d.Resource.Config().Check != "" && p.changes:
		reason = plan.ReadCheckNested
	}
	if reason != "" && p.in.Mode == plan.Normal {
		planned := s.Block.SetUnknowns(config)
		ip.touched = true                   // what state has is what was read before: until it is read again there is nothing
		if reason == plan.ReadCheckNested { // shown as it is now, and read again when all is done
			obj, now, more := p.readData(t, d, pc, config, sensitive)
			ip.refreshed = obj
			if ds = append(ds, more...); !more.HasErrors() {
				planned, _ = now.UnmarkDeep()
			}
		}
		c := &plan.Change{Addr: d.Addr(), Prev: d.Addr(), Provider: pc.Addr, Op: plan.Read, Reason: reason, Before: cty.NullVal(s.Block.ImpliedType()), After: planned}
		given := resourceclient.Present(planned, sensitive)
		c.AfterSensitive = resourceclient.SensitivePaths(s, planned, given)
		c.Undeclared = resourceclient.BySchema(c.AfterSensitive, given)
		ip.change = c
		if names := p.ev.WaitsFor(demand.ReadsOf(t)); names != nil && reason == plan.ReadConfigUnknown {
			p.postpone(d.Addr().String(), plan.ConfigUnknown, &eval.Deferral{At: d.Resource.Config().At, Variables: names})
		}
		out := resourceclient.WithSensitive(planned, c.AfterSensitive, s)
		ip.post, more = d.Postconditions(t, out) // those that need nothing of what is read show now
		return ip, out, append(ds, more...)
	}
	if reason != "" { // it cannot be read, but conditions may need nothing of it
		if reason == plan.ReadConfigUnknown && !p.in.SkipRefresh {
			ip.touched = true // what was read before says nothing any more
		}
		ip.post, more = d.Postconditions(t, resourceclient.WithSensitive(s.Block.SetUnknowns(config), sensitive, s))
		return ip, unknown, append(ds, more...)
	}
	var with dataWith
	if p.in.Readings.Note || p.in.readsLess() {
		with = p.readsWith(t, d, pc, config)
		ip.with = with.digest
	}
	obj, out, kept := p.keepsData(t, d, pc, config, sensitive, with)
	if kept {
		ip.how, more = recent, nil
	} else {
		obj, out, more = p.readData(t, d, pc, config, sensitive)
	}
	ip.refreshed, ip.touched = obj, obj != nil
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	ip.post, more = d.Postconditions(t, out)
	return ip, out, append(ds, more...)
}

// readData reads a data source with a configuration without marks. The object is what state
// keeps of it, nil if it cannot be read.
func (p *planner) readData(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig, config cty.Value, sensitive []cty.Path) (*state.Object, cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	prov, ds := p.client.Configured(t, pc, &d.Resource.Config().At)
	if ds.HasErrors() {
		return nil, unknown, ds
	}
	if prov == nil {
		return nil, unknown, append(ds, demand.Fail()...)
	}
	sub := p.client.Subject(p.ev, d.Addr(), addr.ProviderConfig{Provider: d.Resource.Provider()}, s, prov)
	if more := p.validate(sub, d, config); len(more) > 0 {
		if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() {
			return nil, unknown, ds
		}
	}
	v, more := sub.Read(config, sensitive)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() {
		return nil, unknown, ds
	}
	obj, more := sub.Store(resourceclient.Object{Value: v})
	if ds = append(ds, more.Under(&d.Resource.Config().At)...); more.HasErrors() {
		return nil, unknown, ds
	}
	obj.Sensitive = resourceclient.Present(v, sensitive) // the schema's own are not stored for data sources, as upstream
	return obj, resourceclient.WithSensitive(v, obj.Sensitive, s), ds
}

// dataForDestroy reads a data source anew before a destroy, since providers may
// be configured with what it says now. Where that cannot be, what state holds
// has to do, and fresh is false.
func (p *planner) dataForDestroy(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig) (obj *state.Object, fresh bool, v cty.Value, ds diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, false, cty.DynamicVal, ds
	}
	stored, _, known := p.prior.Object(addr.Object{Instance: d.Addr()})
	if p.refreshes(d.Addr()) && d.Resource.Config().Check == "" {
		config, sensitive, more := resourceclient.ConfigValue(t, d, s)
		if more.HasErrors() {
			return nil, false, cty.UnknownVal(s.Block.ImpliedType()), resourceclient.Blame(d, s, more)
		}
		if config.IsWhollyKnown() {
			obj, v, more := p.readData(t, d, pc, config, sensitive)
			if !more.HasErrors() || !known {
				return obj, obj != nil, v, more
			}
			for _, m := range more {
				m.Severity = diag.Warning
			}
			ds = more
		}
	}
	if !known {
		return nil, false, cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	v, more := p.client.Decode(d.Addr(), stored, s, d.Resource.Provider())
	return stored, false, resourceclient.WithSensitive(v, stored.Sensitive, s), append(ds, more...)
}

// pendingBefore reports whether anything that the instance explicitly depends on is to
// change. A resource in depends_on of its own block counts alone, and a data source there
// does not count, as in OpenTofu. A module in it counts with everything that it depends on,
// and so does depends_on of the call of the module that the instance is in. Where the
// instance has conditions, everything counts.
func (p *planner) pendingBefore(t *demand.Task, d *eval.Desired, conditions bool) bool {
	if !d.Resource.HasDependsOn() {
		return false
	}
	seen := map[*demand.Node]bool{}
	for _, read := range d.Resource.DependsOn(t).Reads() {
		if r, ok := read.Node.What.(*eval.Resource); ok && !conditions {
			if p.ev.Deferred(read.Node) || p.pendingBlock(t, r) {
				return true
			}
		} else if p.pending(read.Node, seen) {
			return true
		}
	}
	return false
}

// pendingDirect reports whether a managed resource is to change that the block of the
// instance, which is being computed, refers to by itself. What it takes from values
// counts as far as it is known, as in OpenTofu.
func (p *planner) pendingDirect(t *demand.Task, d *eval.Desired) bool {
	return slices.ContainsFunc(append(demand.ReadsOf(t), d.Resource.CountNode().Reads()...), func(read demand.Read) bool {
		r, ok := read.Node.What.(*eval.Resource)
		return ok && p.pendingBlock(t, r)
	})
}

// pendingBlock reports whether a managed resource is to change.
func (p *planner) pendingBlock(t *demand.Task, r *eval.Resource) bool {
	if r.Config().Addr.Mode != addr.Managed {
		return false
	}
	in, ok := r.Instances(t)
	if !ok {
		return false
	}
	return in.Deferred != nil || slices.ContainsFunc(in.All, func(other *eval.Desired) bool { return p.found.instance(other).pending() })
}

// pending looks for a change over recorded reads.
func (p *planner) pending(n *demand.Node, seen map[*demand.Node]bool) bool {
	stack := []*demand.Node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		if p.ev.Deferred(n) {
			return true
		}
		if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
			if ip := p.found.instance(d); ip.pending() {
				return true
			}
		}
		for _, r := range n.Reads() {
			stack = append(stack, r.Node)
		}
	}
	return false
}

// validate asks the provider about a configuration, unless it was asked already.
func (p *planner) validate(sub *resourceclient.Subject, d *eval.Desired, config cty.Value) diag.List {
	if p.in.Validated != nil && p.in.Validated(d.Resource.Config(), config) {
		return nil
	}
	return sub.Validate(config)
}
