package planner

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
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
	later := resourceclient.WithSensitive(s.Block.SetUnknowns(config), sensitive, s) // its value if it is deferred
	conditions := d.Conditions(t)
	ip.ends = p.readsDestroyed(t, d, conditions)
	if wait := p.prereq(t, d); wait != nil {
		return p.deferData(t, ip, d, pc, config, sensitive, deferral{plan.PrereqDeferred, wait}), later, ds
	}
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
		ip.touched = true                   // the stored object is outdated and dropped until the data source is read again
		if reason == plan.ReadCheckNested { // shown with its current value, and read again at the end of the apply
			obj, now, _, more := p.readData(t, d, pc, config, sensitive)
			ip.refreshed = obj
			if ds = append(ds, more...); obj != nil {
				planned, _ = now.UnmarkDeep()
			}
		}
		c := &plan.Change{Addr: d.Addr(), Prev: d.Addr(), Provider: pc.Addr, Op: plan.Read, Reason: reason, Before: cty.NullVal(s.Block.ImpliedType()), After: planned}
		given := resourceclient.Present(planned, sensitive)
		c.AfterSensitive = resourceclient.SensitivePaths(s, planned, given)
		c.Undeclared = resourceclient.BySchema(c.AfterSensitive, given)
		ip.change = c
		if wait := p.ev.Wait(demand.ReadsOf(t), d.Resource.Config().At); wait != nil && len(wait.Variables) > 0 && reason == plan.ReadConfigUnknown {
			p.postpone(&plan.Deferred{Addr: d.Addr().String(), Reason: plan.ConfigUnknown}, wait)
		}
		out := resourceclient.WithSensitive(planned, c.AfterSensitive, s)
		ip.post, more = d.Postconditions(t, out) // postconditions that do not depend on the result are evaluated now
		return ip, out, append(ds, more...)
	}
	if reason != "" { // it cannot be read, but some conditions may not depend on the result
		if reason == plan.ReadConfigUnknown && !p.in.SkipRefresh {
			ip.touched = true // the stored object is outdated
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
		var off provider.DeferReason
		obj, out, off, more = p.readData(t, d, pc, config, sensitive)
		if off != "" {
			wait := &eval.Deferral{At: d.Resource.Config().At, Objects: p.pendingObjects(t)}
			return p.deferData(t, ip, d, pc, config, sensitive, deferral{plan.DeferReason(off), wait}), later, append(ds, more...)
		}
	}
	ip.refreshed, ip.touched = obj, obj != nil
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	ip.post, more = d.Postconditions(t, out)
	return ip, out, append(ds, more...)
}

// readData reads a data source. config must not have marks. It returns the object to store, or
// nil if reading fails or if the provider defers it, with the reason.
func (p *planner) readData(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig, config cty.Value, sensitive []cty.Path) (*state.Object, cty.Value, provider.DeferReason, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil, cty.DynamicVal, "", ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	prov, ds := p.client.Configured(t, pc, &d.Resource.Config().At)
	if ds.HasErrors() {
		return nil, unknown, "", ds
	}
	if prov == nil {
		return nil, unknown, "", append(ds, demand.Fail()...)
	}
	sub := p.client.Subject(p.ev, d.Addr(), pc.Addr, s, prov)
	if more := p.validate(sub, d, config); len(more) > 0 {
		if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() {
			return nil, unknown, "", ds
		}
	}
	v, off, more := sub.Read(config, sensitive)
	if ds = append(ds, resourceclient.Blame(d, s, more)...); more.HasErrors() || off != "" {
		return nil, unknown, off, ds
	}
	obj, more := sub.Store(resourceclient.Object{Value: v})
	if ds = append(ds, more.Under(&d.Resource.Config().At)...); more.HasErrors() {
		return nil, unknown, "", ds
	}
	obj.Sensitive = resourceclient.Present(v, sensitive) // as in OpenTofu, paths that the schema marks are not stored for data sources
	return obj, resourceclient.WithSensitive(v, obj.Sensitive, s), "", ds
}

// dataForDestroy reads a data source before a destroy, since provider configurations may depend
// on its current value. If it cannot be read, the stored object is used and fresh is false.
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
			obj, v, _, more := p.readData(t, d, pc, config, sensitive) // a plan to destroy defers nothing
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

// pendingBefore reports whether an explicit dependency of the instance has pending changes. Of
// the resources in its own depends_on only managed ones count, without their dependencies, as
// in OpenTofu. A module in depends_on counts with everything that it depends on, and so does
// the depends_on of the instance's module call. If conditions is set, all dependencies count.
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

// pendingDirect reports whether a managed resource that the block refers to directly has
// pending changes. References through values count if they are known, as in OpenTofu. It is
// called while the instance is computed.
func (p *planner) pendingDirect(t *demand.Task, d *eval.Desired) bool {
	return slices.ContainsFunc(append(demand.ReadsOf(t), d.Resource.CountNode().Reads()...), func(read demand.Read) bool {
		r, ok := read.Node.What.(*eval.Resource)
		return ok && p.pendingBlock(t, r)
	})
}

// pendingBlock reports whether a managed resource has pending changes.
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

// pendingObjects returns the addresses of the nearest instances with pending changes on which
// the instance that is being computed depends, sorted.
func (p *planner) pendingObjects(t *demand.Task) []string {
	var out []string
	seen := map[*demand.Node]bool{}
	for stack := demand.ReadsOf(t); len(stack) > 0; {
		n := stack[len(stack)-1].Node
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
			if p.found.instance(d).pending() {
				out = append(out, d.Addr().String())
			}
			continue
		}
		stack = append(stack, n.Reads()...)
	}
	slices.Sort(out)
	return out
}

// pending searches the recorded reads for an object with pending changes.
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

// validate lets the provider validate a configuration, unless it has done so already.
func (p *planner) validate(sub *resourceclient.Subject, d *eval.Desired, config cty.Value) diag.List {
	if p.in.Validated != nil && p.in.Validated(d.Resource.Config(), config) {
		return nil
	}
	return sub.Validate(config)
}
