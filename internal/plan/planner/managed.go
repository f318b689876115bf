package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/imports"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

// managedPlan plans one instance of a managed resource, in one task.
type managedPlan struct {
	p     *planner
	t     *demand.Task
	d     *eval.Desired
	sub   *resourceclient.Subject
	found *instancePlan // added to the findings when the instance is planned
	// deferred is the instance as it is deferred, for wait; nil if it is not.
	deferred *plan.Deferred
	wait     *eval.Deferral
}

// managed plans one instance of a managed resource and returns its planned value.
func (p *planner) managed(t *demand.Task, d *eval.Desired) (*instancePlan, cty.Value, diag.List) {
	ip := newInstancePlan(d)
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return ip, cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	if p.in.Mode == plan.Destroy && p.prior.Instance(d.Addr()) == nil {
		return ip, unknown, ds // there is nothing to destroy, so that its provider need not be configured
	}
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	ip.provider = pc.Addr
	if wait := pc.Deferral(t); wait != nil {
		off, v, more := p.deferInstance(t, d, plan.ProviderConfigUnknown, wait)
		off.provider = pc.Addr
		return off, v, append(ds, more...)
	}
	prov, more := p.client.Configured(t, pc, &d.Resource.Config().At)
	if ds = append(ds, more...); more.HasErrors() {
		return ip, unknown, ds
	}
	if p.in.Mode != plan.Destroy {
		if more = p.removed.StillWanted(d.Addr(), d.Resource.Config().At); more.HasErrors() {
			return ip, unknown, append(ds, more...)
		}
	}
	ip.with = p.client.Digest(t, pc)
	m := &managedPlan{p: p, t: t, d: d, sub: p.client.Subject(p.ev, d.Addr(), pc.Addr, s, prov), found: ip}
	v, more := m.plan()
	if m.deferred != nil && !more.HasErrors() {
		p.postpone(m.deferred, m.wait)
	}
	return m.found, v, append(ds, more...)
}

// plan plans the instance after its provider has started.
func (m *managedPlan) plan() (cty.Value, diag.List) {
	p, t, d := m.p, m.t, m.d
	unknown := cty.UnknownVal(m.sub.Schema.Block.ImpliedType())
	old, ds := m.priorObject()
	if ds.HasErrors() {
		return unknown, m.blame(ds)
	}
	if wait := m.importDeferral(old); wait != nil {
		off, v, more := p.deferInstance(t, d, plan.ImportUnknown, wait)
		off.provider, m.found = m.found.provider, off
		return v, append(ds, more...)
	}
	now, imp, more := m.current(old)
	ds = append(ds, more...)
	if more.HasErrors() {
		return unknown, m.blame(ds)
	}
	if now.Deferred != "" {
		off, v, more := p.deferInstance(t, d, plan.DeferReason(now.Deferred), m.waitForProvider())
		off.provider, m.found = m.found.provider, off
		return v, append(ds, more...)
	}
	if it := p.imports.Of(m.t, m.sub.Addr); it != nil && !old.Value.IsNull() {
		if ds = append(ds, it.Check(t, m.sub.Schema)...); ds.HasErrors() {
			return unknown, ds
		}
	}
	m.found.looked = true
	m.found.deposed, more = p.planDeposed(m.sub)
	ds = append(ds, more...)
	switch p.in.Mode {
	case plan.RefreshOnly:
		return m.afterRefresh(now, ds)
	case plan.Destroy:
		v, more := m.planDestroy(now)
		return v, m.blame(append(ds, more...))
	}
	m.found.checked = true
	m.found.pre, more = d.Preconditions(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := m.update(now, imp)
	if m.found.how != asked && (more.HasErrors() || m.found.pending() && !m.expected()) {
		m.found.how, m.found.drift, m.found.touched = asked, nil, false
		m.found.deferred, m.deferred = false, nil
		now, more = m.refresh(old)
		if more = m.blame(more); !more.HasErrors() {
			m.found.change = nil
			var again diag.List
			v, again = m.update(now, imp)
			more = append(more, again...)
		}
	}
	return v, append(ds, more...)
}

// update plans the change of an instance and evaluates its postconditions.
func (m *managedPlan) update(now resourceclient.Object, imp *plan.Import) (cty.Value, diag.List) {
	v, ds := m.planUpdate(now, imp)
	if ds = m.blame(ds); ds.HasErrors() {
		return v, ds
	}
	post, more := m.d.Postconditions(m.t, v)
	m.found.post = post
	return v, append(ds, more...)
}

func (m *managedPlan) blame(ds diag.List) diag.List {
	return resourceclient.Blame(m.d, m.sub.Schema, ds)
}

// afterRefresh completes a refresh-only plan for an instance.
func (m *managedPlan) afterRefresh(now resourceclient.Object, ds diag.List) (cty.Value, diag.List) {
	m.found.checked = true
	pre, more := m.d.Preconditions(m.t)
	m.found.pre, ds = pre, append(ds, more...)
	v := cty.UnknownVal(m.sub.Schema.Block.ImpliedType()) // destroyed or not created yet: the value is unknown
	if !now.Value.IsNull() {
		v = resourceclient.WithSensitive(now.Value, now.Sensitive(), m.sub.Schema)
	}
	post, more := m.d.Postconditions(m.t, v)
	m.found.post, ds = post, append(ds, more...)
	return v, ds
}

// priorObject decodes the current object from state with the current schema.
func (m *managedPlan) priorObject() (resourceclient.Object, diag.List) {
	a := m.sub.Addr
	stored, pc, ok := m.p.prior.Object(addr.Object{Instance: a})
	if !ok {
		return m.sub.None(), nil
	}
	if from, ok := m.p.moved[a]; ok && from.Resource.Type != a.Resource.Type {
		return m.sub.TakeOver(from, pc.Provider, stored)
	}
	return m.sub.Stored(stored)
}

// current returns the real object: imported, refreshed, or as stored.
func (m *managedPlan) current(old resourceclient.Object) (resourceclient.Object, *plan.Import, diag.List) {
	p := m.p
	if old.Value.IsNull() {
		it := p.imports.Of(m.t, m.sub.Addr)
		if it == nil || p.in.Mode != plan.Normal {
			return old, nil, nil
		}
		return m.importObject(it)
	}
	if !p.refreshes(m.sub.Addr) && old.Moved {
		var ds diag.List
		m.found.refreshed, m.found.touched, ds = m.sub.Keep(old, old)
		return old, nil, ds
	}
	if !p.refreshes(m.sub.Addr) {
		m.found.refreshed = old.Stored
		return old, nil, nil
	}
	if now, ok, ds := p.recent(m.sub, old, m.found.with); ok || ds.HasErrors() {
		m.found.how = recent
		now, more := m.keep(old, now)
		return now, nil, append(ds, more...)
	}
	if m.spares(old) {
		m.found.how, m.found.refreshed = spared, old.Stored
		return old, nil, nil
	}
	now, ds := m.refresh(old)
	return now, nil, ds
}

// expected reports whether a change that was planned with a recent reading is already known.
func (m *managedPlan) expected() bool {
	return m.found.how == recent && m.found.change != nil && m.p.in.Readings.Expected != nil && m.p.in.Readings.Expected(m.found.change)
}

// refresh reads the current object from the provider.
func (m *managedPlan) refresh(old resourceclient.Object) (resourceclient.Object, diag.List) {
	now, ds := m.sub.Refresh(old, "")
	if ds.HasErrors() || now.Deferred != "" {
		return now, ds
	}
	now, more := m.keep(old, now)
	return now, append(ds, more...)
}

// keep records the result of reading an object.
func (m *managedPlan) keep(old, now resourceclient.Object) (resourceclient.Object, diag.List) {
	var ds diag.List
	m.found.refreshed, m.found.touched, ds = m.sub.Keep(old, now)
	now.Stored = old.Stored
	if m.found.touched || m.p.in.Mode == plan.RefreshOnly {
		m.found.drift = m.p.driftChange(m.sub, old, now)
	}
	return now, ds
}

// refreshes reports whether an instance is read from its provider.
func (p *planner) refreshes(a addr.Instance) bool {
	return !p.in.SkipRefresh && p.scope.looksAt(a)
}

// importObject imports an existing object.
func (m *managedPlan) importObject(it *imports.Instance) (resourceclient.Object, *plan.Import, diag.List) {
	imp, ds := it.ID(m.t, m.sub.Schema)
	if ds.HasErrors() {
		return m.sub.None(), nil, ds
	}
	obj, more := m.sub.Import(imp.ID, imp.Identity)
	if ds = append(ds, more...); more.HasErrors() || obj.Deferred != "" {
		return obj, nil, ds
	}
	stored, more := m.sub.Store(obj)
	if ds = append(ds, more.Under(&it.Block.At)...); more.HasErrors() {
		return m.sub.None(), nil, ds
	}
	obj.Stored = stored
	m.found.refreshed, m.found.touched = stored, true // apply starts with the object in state
	return obj, imp, ds
}

// importDeferral returns the reason for which it is unknown which object to import. It is nil if
// that is known, or if the import must not be deferred.
func (m *managedPlan) importDeferral(old resourceclient.Object) *eval.Deferral {
	it := m.p.imports.Of(m.t, m.sub.Addr)
	switch {
	case m.p.in.Eval.Deferring == eval.DeferNothing || m.p.in.Mode != plan.Normal || !old.Value.IsNull():
		return nil
	case it == nil:
		return m.p.imports.Unknown(m.sub.Addr)
	}
	return it.Deferral(m.t)
}

func (p *planner) driftChange(sub *resourceclient.Subject, old, now resourceclient.Object) *plan.Change {
	c := &plan.Change{Addr: sub.Addr, Prev: p.prev(sub.Addr), Provider: sub.Of, Op: plan.Update, Before: old.Value, After: now.Value, BeforeIdentity: old.Identity, AfterIdentity: now.Identity}
	c.BeforeSensitive = resourceclient.SensitivePaths(sub.Schema, old.Value, old.Sensitive())
	if now.Value.IsNull() {
		c.Op = plan.Delete
	} else {
		c.AfterSensitive = resourceclient.SensitivePaths(sub.Schema, now.Value, old.Sensitive())
		if value.Same(now.Value, old.Value) {
			if p.in.Mode != plan.RefreshOnly || c.Prev == c.Addr {
				return nil
			}
			c.Op = plan.NoOp // a move is the only change
		}
	}
	return c
}

// prev returns the address of an instance in the state before moves. A refresh before a destroy
// has applied the moves already.
func (p *planner) prev(a addr.Instance) addr.Instance {
	if from, ok := p.moved[a]; ok && (p.in.Mode != plan.Destroy || p.in.SkipRefresh) {
		return from
	}
	return a
}
