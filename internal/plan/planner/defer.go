package planner

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// # Deferred objects
//
// An object is deferred if its instances, its provider configuration or the object to import
// are unknown, or if its provider defers it. With eval.DeferUnknown, everything that depends on
// a deferred object is deferred too, unless its plan has no changes: the plan then contains no
// action that needs a deferred object, and can be applied. An object in state that is deferred
// keeps what is stored. So do the objects that it depends on according to state and that would
// be destroyed (holdBack): it may still use them.

// deferral is the reason for which an instance is deferred, with what it waits for.
type deferral struct {
	reason plan.DeferReason
	wait   *eval.Deferral
}

// postpone records that an object is deferred.
func (p *planner) postpone(d *plan.Deferred, wait *eval.Deferral) {
	d.At, d.Variables, d.Objects = wait.At, wait.Variables, wait.Objects
	add(&p.found, &p.found.deferred, d)
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
	planned := s.Block.SetUnknowns(config)
	given := resourceclient.Present(planned, sensitive)
	entry := &plan.Deferred{Addr: d.Addr().String(), Reason: why}
	if pc, more := d.Provider(t); !more.HasErrors() && p.in.Eval.Deferring == eval.DeferUnknown && p.in.Mode == plan.Normal {
		entry.Change = p.guess(t, d, pc, s, planned, given)
	}
	p.postpone(entry, wait)
	ip.deferred = true
	return ip, resourceclient.WithSensitive(planned, given, s), ds
}

// guess returns the change of a deferred instance without the provider's plan. It is a
// replacement if -replace or replace_triggered_by requests that.
func (p *planner) guess(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig, s *schema.Resource, planned cty.Value, given []cty.Path) *plan.Change {
	null := cty.NullVal(s.Block.ImpliedType())
	c := &plan.Change{Addr: d.Addr(), Prev: p.prev(d.Addr()), Provider: pc.Addr, Op: plan.Create, Before: null, After: planned}
	if d.Addr().Resource.Mode == addr.Data {
		c.Op, c.Reason = plan.Read, plan.ReadConfigUnknown
	} else if obj, _, ok := p.prior.Object(addr.Object{Instance: d.Addr()}); ok {
		if v, ds := p.client.Decode(d.Addr(), obj, s, d.Resource.Provider()); !ds.HasErrors() {
			c.Op, c.Before, c.BeforeSensitive = plan.Update, v, resourceclient.SensitivePaths(s, v, obj.Sensitive)
		}
		c.Reason = p.replace[d.Addr()]
		if hit, ds := p.triggered(t, d); hit && !ds.HasErrors() {
			c.Reason = plan.ReplaceByTriggers
		}
		if c.Reason != "" {
			c.Op = plan.DeleteThenCreate
		}
	}
	c.AfterSensitive = resourceclient.SensitivePaths(s, planned, given)
	return c
}

// deferData defers a data source whose arguments were evaluated. The stored object is kept.
func (p *planner) deferData(t *demand.Task, ip *instancePlan, d *eval.Desired, pc *eval.ProviderConfig, config cty.Value, sensitive []cty.Path, why deferral) *instancePlan {
	ip.deferred = true
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ip
	}
	planned := s.Block.SetUnknowns(config)
	c := p.guess(t, d, pc, s, planned, resourceclient.Present(planned, sensitive))
	if why.reason == plan.PrereqDeferred && config.IsWhollyKnown() {
		c.Reason = plan.ReadDependencyPending
	}
	p.postpone(&plan.Deferred{Addr: d.Addr().String(), Reason: why.reason, Change: c}, why.wait)
	return ip
}

// deferInstances records that the instances of a resource are unknown, and plans the
// placeholder that represents them.
func (p *planner) deferInstances(t *demand.Task, r *eval.Resource, in *eval.Instances) {
	entry := &plan.Deferred{Addr: r.Addr().String(), Reason: plan.InstancesUnknown}
	if d := in.Placeholder; d != nil && p.in.Eval.Deferring == eval.DeferUnknown && p.in.Mode == plan.Normal {
		entry.Change = p.placeholder(t, d)
	}
	p.postpone(entry, in.Deferred)
	if entry.Change != nil && len(in.Placeholder.Triggers()) > 0 {
		p.deferTriggered(t, r, in)
	}
}

// deferTriggered records the existing instances of a resource with unknown instances that
// replace_triggered_by replaces. Another plan would not find the reason, because the objects
// that trigger it have no changes then.
func (p *planner) deferTriggered(t *demand.Task, r *eval.Resource, in *eval.Instances) {
	had := p.prior.Resource(r.Addr())
	if had == nil {
		return
	}
	s, ds := r.Schema(t)
	if ds.HasErrors() {
		return
	}
	for _, k := range had.Keys() {
		if in.Get(k) != nil || had.Instances[k].Current == nil {
			continue
		}
		d := r.Existing(k)
		pc, ds := d.Provider(t)
		if ds.HasErrors() {
			continue
		}
		c := p.guess(t, d, pc, s, cty.UnknownVal(s.Block.ImpliedType()), nil)
		if !c.Op.IsReplace() {
			continue
		}
		p.postpone(&plan.Deferred{Addr: d.Addr().String(), Reason: plan.InstancesUnknown, Change: c}, in.Deferred)
	}
}

// placeholder returns the change that represents the unknown instances of a resource; nil if
// its configuration has errors, which are reported for the instances when they are known.
func (p *planner) placeholder(t *demand.Task, d *eval.Desired) *plan.Change {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return nil
	}
	config, sensitive, ds := resourceclient.ConfigValue(t, d, s)
	pc, more := d.Provider(t)
	if ds.HasErrors() || more.HasErrors() {
		return nil
	}
	planned := s.Block.SetUnknowns(config)
	return p.guess(t, d, pc, s, planned, resourceclient.Present(planned, sensitive))
}

// deferModule records the objects of the module that represents unknown instances of a call,
// with those of the modules that it calls.
func (p *driver) deferModule(t *demand.Task, m *eval.Module, wait *eval.Deferral) {
	for _, r := range m.Resources() {
		if !p.scope.wants(r) || r.Config().Check != "" || r.Config().Addr.Mode == addr.Ephemeral {
			continue
		}
		in, ok := r.Instances(t)
		if !ok {
			continue
		}
		all := in.All
		if in.Placeholder != nil {
			all = append(slices.Clone(all), in.Placeholder)
		}
		for _, d := range all {
			p.postpone(&plan.Deferred{Addr: d.Addr().String(), Reason: plan.InstancesUnknown, Change: p.placeholder(t, d)}, wait)
		}
	}
	for _, c := range m.Calls() {
		if !p.scope.wantsCall(c.Node) {
			continue
		}
		ch, ok := c.Children(t)
		if !ok {
			continue
		}
		for _, child := range ch.All {
			p.deferModule(t, child, wait)
		}
		if ch.Placeholder != nil {
			p.deferModule(t, ch.Placeholder, wait)
		}
	}
}

// prereq returns the reason for which the instance that is being computed must be deferred
// because of the deferred objects that it depends on; nil if there are none.
func (p *planner) prereq(t *demand.Task, d *eval.Desired) *eval.Deferral {
	if objects := p.deferredBefore(demand.ReadsOf(t), d.Repeats); objects != nil {
		return &eval.Deferral{At: d.Resource.Config().At, Objects: objects}
	}
	return nil
}

// deferredBefore returns the addresses of the deferred objects that reads lead to, sorted. It
// does not look behind an instance, which is deferred itself if it depends on a deferred object
// and has changes, nor at nodes that skip returns true for, which may be nil: an instance exists
// whatever other instances its block has. It returns nil unless objects are deferred for any
// unknown value.
func (p *planner) deferredBefore(reads []demand.Read, skip func(*demand.Node) bool) []string {
	if p.in.Eval.Deferring != eval.DeferUnknown || p.in.Mode != plan.Normal {
		return nil
	}
	var out []string
	seen := map[*demand.Node]bool{}
	for stack := reads; len(stack) > 0; {
		n := stack[len(stack)-1].Node
		stack = stack[:len(stack)-1]
		if _, ok := p.ready.Load(n); ok || seen[n] || skip != nil && skip(n) {
			continue
		}
		seen[n] = true
		if p.ev.Deferred(n) {
			name, _ := n.What.Describe()
			out = append(out, name)
			continue
		}
		if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
			if ip := p.found.instance(d); ip != nil && ip.deferred {
				out = append(out, d.Addr().String())
			}
			continue
		}
		stack = append(stack, n.Reads()...)
	}
	if out == nil {
		for n := range seen {
			p.ready.Store(n, true)
		}
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// holdBack defers the destruction of objects that deferred objects in state depend on, directly
// or through other objects that would be destroyed.
func (p *driver) holdBack() {
	if p.in.Eval.Deferring != eval.DeferUnknown || p.in.Mode != plan.Normal || len(p.found.deferred) == 0 {
		return
	}
	waits := plan.DeferredInstances(p.found.deferred)
	held := map[addr.ConfigResource]string{} // blocks with a dependent that is deferred, and the address of one
	var todo []addr.Object
	for o := range p.prior.Objects() {
		if o.Instance.Resource.Mode == addr.Managed && waits(o.Instance) {
			todo = append(todo, o)
		}
	}
	hold := func(user addr.Object) {
		obj, _, ok := p.prior.Object(user)
		if !ok {
			return
		}
		for _, c := range obj.Dependencies {
			if held[c] == "" {
				held[c] = user.Instance.String()
			}
		}
	}
	for _, o := range todo {
		hold(o)
	}
	for again := len(held) > 0; again; {
		again = false
		for _, op := range p.found.orphans {
			by := held[op.addr.Config()]
			if by == "" || op.change == nil && op.deposed == nil {
				continue
			}
			for _, c := range append(op.deposed, op.change) {
				p.keepUntil(c, by)
			}
			op.change, op.deposed = nil, nil
			hold(addr.Object{Instance: op.addr})
			again = true
		}
	}
	p.found.keepOld = map[*plan.Change]bool{}
	for _, ip := range p.found.plans {
		by := held[ip.d.Addr().Config()]
		if by == "" {
			continue
		}
		for _, c := range ip.deposed {
			p.keepUntil(c, by)
		}
		ip.deposed = nil
		if c := ip.change; c != nil && c.Op == plan.CreateThenDelete {
			p.found.keepOld[c] = true
			p.postpone(&plan.Deferred{Addr: c.Addr.String() + " (replaced object)", Reason: plan.PrereqDeferred}, &eval.Deferral{Objects: []string{by}})
		}
	}
}

// keepUntil defers a change that destroys an object until another object is no longer deferred.
func (p *planner) keepUntil(c *plan.Change, user string) {
	if c == nil {
		return
	}
	p.postpone(&plan.Deferred{Addr: addr.Object{Instance: c.Addr, Deposed: c.Deposed}.String(), Reason: plan.PrereqDeferred, Change: c}, &eval.Deferral{Objects: []string{user}})
}

// sortDeferred sorts deferred objects by address.
func sortDeferred(all []*plan.Deferred) []*plan.Deferred {
	slices.SortFunc(all, func(a, b *plan.Deferred) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}
