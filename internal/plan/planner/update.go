package planner

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// planUpdate plans the change of an instance of the configuration.
func (m *managedPlan) planUpdate(now resourceclient.Object, imp *plan.Import) (cty.Value, diag.List) {
	s := m.sub.Schema
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	written, sensitive, ds := resourceclient.ConfigValue(m.t, m.d, s)
	if ds.HasErrors() {
		return unknown, ds
	}
	if ds = append(ds, m.p.validate(m.sub, m.d, written)...); ds.HasErrors() {
		return unknown, ds
	}
	ds = append(ds, m.touchTriggers()...)
	prior := now
	if now.Stored != nil && now.Stored.Tainted {
		prior = m.sub.None()
	}
	ignore, more := resourceclient.IgnoreChanges(m.t, m.d, s, prior.Value)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	config := ignore(written)
	why := m.why()
	resp, more := m.sub.Plan(prior, config)
	if resp.Deferred != "" {
		why = &deferral{plan.DeferReason(resp.Deferred), m.waitForProvider()}
	}
	if why != nil && (more.HasErrors() || resp.Deferred != "") { // what a provider reports about an object that cannot be planned yet is not reported
		return m.postpone(why, nil, written, sensitive), ds
	}
	ds = append(ds, more...)
	if more.HasErrors() {
		return resourceclient.WithSensitive(resp.Planned, sensitive, s), ds
	}
	if resp.Legacy {
		resp.Planned = ignore(resp.Planned)
	}
	life := m.d.Resource.Config().Lifecycle
	c := &plan.Change{
		Addr: m.sub.Addr, Prev: m.p.prev(m.sub.Addr), Provider: m.sub.Of, Import: imp, Before: now.Value, After: resp.Planned,
		BeforeIdentity: now.Identity, AfterIdentity: resp.Identity,
		Handling: plan.Handling{Private: resp.Private, SkipDestroy: life.Destroy != nil && !*life.Destroy, ConfigKnown: config.IsWhollyKnown()},
	}
	c.BeforeSensitive = resourceclient.SensitivePaths(s, now.Value, now.Sensitive())
	if len(sensitive) > 0 || s.Block.HasSensitive() {
		c.AfterSensitive = resourceclient.SensitivePaths(s, resp.Planned, resourceclient.Present(resp.Planned, sensitive))
	}
	more = m.decide(c, now, prior, resp, written)
	if why != nil && more.HasErrors() {
		return m.postpone(why, nil, written, sensitive), ds
	}
	ds = append(ds, more...)
	if c.Op.IsReplace() && !prior.Value.IsNull() { // planned again: paths that the schema marks are not included, as in OpenTofu
		given := resourceclient.Present(c.After, sensitive)
		c.AfterSensitive = resourceclient.SensitivePaths(s, c.After, given)
		c.Undeclared = resourceclient.BySchema(c.AfterSensitive, given)
	}
	if why != nil && (c.Op != plan.NoOp || c.Import != nil || c.Moved()) {
		return m.postpone(why, c, written, sensitive), ds
	}
	m.found.change = c
	if ds.HasErrors() {
		return unknown, ds
	}
	v := c.After
	if len(c.AfterSensitive) > 0 {
		v = resourceclient.MarkSensitive(v, c.AfterSensitive)
	}
	return v, append(ds, m.preventReplace(c)...)
}

// why returns the reason for which the instance is deferred if it has changes; nil if it is not.
func (m *managedPlan) why() *deferral {
	if wait := m.p.prereq(m.t, m.d); wait != nil {
		return &deferral{plan.PrereqDeferred, wait}
	}
	return nil
}

// waitForProvider returns what an instance waits for that its provider deferred: the objects
// with changes that it depends on.
func (m *managedPlan) waitForProvider() *eval.Deferral {
	return &eval.Deferral{At: m.d.Resource.Config().At, Objects: m.p.pendingObjects(m.t)}
}

// postpone defers the instance and returns its value. c is its change as far as it can be
// planned, or nil.
func (m *managedPlan) postpone(why *deferral, c *plan.Change, written cty.Value, sensitive []cty.Path) cty.Value {
	s := m.sub.Schema
	planned := s.Block.SetUnknowns(written)
	if c != nil {
		planned = c.After
	}
	given := resourceclient.Present(planned, sensitive)
	if pc, ds := m.d.Provider(m.t); c == nil && !ds.HasErrors() {
		c = m.p.guess(m.t, m.d, pc, s, planned, given)
	}
	if m.p.imports.Of(m.t, m.sub.Addr) != nil && m.p.prior.Instance(m.sub.Addr) == nil { // it is imported when it is planned again
		m.found.refreshed, m.found.touched = nil, false
	}
	m.found.deferred = true
	m.deferred, m.wait = &plan.Deferred{Addr: m.sub.Addr.String(), Reason: why.reason, Change: c}, why.wait
	return resourceclient.WithSensitive(planned, given, s)
}

// decide chooses the operation. For a replacement it plans the new object with the
// configuration as written, without ignore_changes.
func (m *managedPlan) decide(c *plan.Change, now, prior resourceclient.Object, resp resourceclient.Planned, written cty.Value) diag.List {
	if now.Value.IsNull() {
		c.Op = plan.Create
		hit, ds := m.p.triggered(m.t, m.d)
		if hit {
			c.Reason = plan.ReplaceByTriggers // also reported for a new object, as in OpenTofu
		}
		return ds
	}
	reason, paths, ds := m.replaceReason(now, prior, resp)
	if ds.HasErrors() {
		return ds
	}
	if reason == "" {
		c.Op = plan.Update
		same := value.Same(resp.Planned, prior.Value)
		if same {
			c.After = prior.Value
		}
		if (same || unchanged(resp.Planned, prior.Value)) && resourceclient.SamePaths(c.BeforeSensitive, c.AfterSensitive) {
			c.Op = plan.NoOp
		}
		return ds
	}
	c.Op, c.Reason, c.ReplacePaths = plan.DeleteThenCreate, reason, paths
	if c.SkipDestroy {
		c.Op = plan.ForgetThenCreate
	}
	if !prior.Value.IsNull() { // plan again as a create
		fresh, more := m.sub.Plan(m.sub.None(), written)
		ds = append(ds, more...)
		if more.HasErrors() {
			return ds
		}
		c.After, c.Private, c.AfterIdentity = fresh.Planned, fresh.Private, fresh.Identity
		c.ConfigKnown = written.IsWhollyKnown()
	}
	return ds
}

// unchanged reports whether two objects of a type are equal. Null arguments of dynamic type are
// equal whatever type the null has, since some providers do not keep it.
func unchanged(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() || !a.IsKnown() || !b.IsKnown() || !a.Type().IsObjectType() || !b.Type().IsObjectType() {
		return false
	}
	for name := range a.Type().AttributeTypes() {
		if !b.Type().HasAttribute(name) {
			return false
		}
		x, y := a.GetAttr(name), b.GetAttr(name)
		if !value.Same(x, y) && !(x.IsNull() && y.IsNull()) {
			return false
		}
	}
	return true
}

// replaceReason returns the reason for replacing an object, or "", and the arguments that force
// the replacement. If there are several reasons, replace_triggered_by wins, as in OpenTofu.
func (m *managedPlan) replaceReason(now, prior resourceclient.Object, resp resourceclient.Planned) (plan.Reason, []cty.Path, diag.List) {
	tainted := now.Stored != nil && now.Stored.Tainted
	var paths []cty.Path
	if !tainted {
		paths = m.sub.Replacing(resp, prior.Value)
	}
	hit, ds := m.p.triggered(m.t, m.d)
	switch {
	case hit:
		return plan.ReplaceByTriggers, paths, ds
	case tainted:
		return plan.ReplaceTainted, nil, ds
	case m.p.replace[m.sub.Addr] != "":
		return m.p.replace[m.sub.Addr], paths, ds
	case len(paths) > 0:
		return plan.ReplaceCannotUpdate, paths, ds
	}
	return "", nil, ds
}

// touchTriggers records reads of the references in replace_triggered_by, so that they count for
// the order of actions and the dependencies in state.
func (m *managedPlan) touchTriggers() diag.List {
	t, d := m.t, m.d
	var ds diag.List
	for _, x := range d.Triggers() {
		target, _, more := d.TriggerTarget(t, x)
		ds = append(ds, more...)
		for _, other := range target {
			other.Resource.Value(t)
		}
	}
	return ds
}

// triggered reports whether a reference in replace_triggered_by of an instance has changes.
func (p *planner) triggered(t *demand.Task, d *eval.Desired) (bool, diag.List) {
	var ds diag.List
	for _, x := range d.Triggers() {
		target, rest, more := d.TriggerTarget(t, x)
		ds = append(ds, more...)
		if more.HasErrors() {
			return false, ds
		}
		for _, other := range target {
			other.Value(t, nil)
			ip := p.found.instance(other)
			if ip == nil || ip.change == nil {
				continue
			}
			c := ip.change
			switch {
			case len(rest) == 0 && (c.Op == plan.Create || c.Op == plan.Update || c.Op.IsReplace()):
				return true, ds
			case len(rest) == 0 || c.Op == plan.NoOp:
				continue
			}
			if attrDiffers(rest, c.Before, c.After) {
				return true, ds
			}
		}
	}
	return false, ds
}

func attrDiffers(rest hcl.Traversal, before, after cty.Value) bool {
	if before.IsNull() || after.IsNull() {
		return before.IsNull() != after.IsNull()
	}
	b, bd := rest.TraverseRel(before)
	a, ad := rest.TraverseRel(after)
	if bd.HasErrors() || ad.HasErrors() {
		return bd.HasErrors() != ad.HasErrors()
	}
	return !value.Same(b, a)
}

// preventReplace returns an error if lifecycle.prevent_destroy forbids a replacement.
func (m *managedPlan) preventReplace(c *plan.Change) diag.List {
	t, d := m.t, m.d
	if m.p.in.IgnorePreventDestroy || c.Op != plan.DeleteThenCreate && c.Op != plan.CreateThenDelete && c.Op != plan.Delete {
		return nil
	}
	prevent, at, ds := d.Resource.PreventDestroy(t)
	if !prevent {
		return ds
	}
	return append(ds, prevented(c.Addr, d.Resource.Config(), at))
}

// prevented returns the error about a delete that prevent_destroy forbids.
func prevented(a addr.Instance, r *config.Resource, at *source.Range) *diag.Message {
	return &diag.Message{Code: diag.CodePlanPreventDestroy, Severity: diag.Error, Summary: "Resource instance cannot be destroyed", At: &r.At,
		Detail: fmt.Sprintf("Resource %s has lifecycle.prevent_destroy set, but the plan calls for this resource to be destroyed. To avoid this error and continue with the plan, either disable lifecycle.prevent_destroy or exclude this resource instance using the -exclude=%s option.", a, quoteAddr(a)),
		Notes:  []diag.Note{{Text: "prevent_destroy is set here", At: at}}}
}

func quoteAddr(a addr.Instance) string {
	s := a.String()
	if a.Key.Kind == addr.StringKey {
		return "'" + s + "'"
	}
	return s
}
