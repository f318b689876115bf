package planner

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// orphanPlan is the plan for the objects of an instance that is in state but not in the
// configuration.
type orphanPlan struct {
	addr      addr.Instance
	provider  addr.ProviderConfig
	change    *plan.Change
	drift     *plan.Change
	refreshed *state.Object
	touched   bool
	how       reading
	with      state.Digest // digest of the inputs of the read
	failed    bool
	deposed   []*plan.Change
}

// planDestroy plans the destruction of an instance of the configuration, in destroy mode.
func (m *managedPlan) planDestroy(now resourceclient.Object) (cty.Value, diag.List) {
	if now.Value.IsNull() {
		return cty.UnknownVal(m.sub.Schema.Block.ImpliedType()), nil
	}
	if !m.p.scope.goes(m.sub.Addr) {
		return resourceclient.WithSensitive(now.Value, now.Sensitive(), m.sub.Schema), nil // the instance is only refreshed
	}
	life := m.d.Resource.Config().Lifecycle
	skip := life.Destroy != nil && !*life.Destroy
	c, ds := m.p.planDelete(m.sub, now, skip)
	if skip {
		c.Reason = plan.ForgotDestroyConfig
	}
	m.found.change = c
	v := resourceclient.WithSensitive(now.Value, now.Sensitive(), m.sub.Schema)
	if ds.HasErrors() {
		return v, ds
	}
	return v, append(ds, m.preventReplace(c)...)
}

// planDelete plans a delete. It plans a forget if the object must not be destroyed.
func (p *planner) planDelete(sub *resourceclient.Subject, now resourceclient.Object, skip bool) (*plan.Change, diag.List) {
	c := &plan.Change{Addr: sub.Addr, Prev: p.prev(sub.Addr), Provider: sub.Of, Op: plan.Delete, Before: now.Value, After: sub.Null(), BeforeIdentity: now.Identity, Handling: plan.Handling{Private: now.Private}}
	c.BeforeSensitive = resourceclient.SensitivePaths(sub.Schema, now.Value, now.Sensitive())
	if skip {
		c.Op, c.SkipDestroy = plan.Forget, true
		return c, nil
	}
	var ds diag.List
	c.Private, ds = sub.PlanDelete(now)
	return c, ds
}

// planDeposed plans the deletes of the deposed objects of an instance. A deposed object that no
// longer exists needs no change, since apply starts from a state without it.
func (p *planner) planDeposed(sub *resourceclient.Subject) ([]*plan.Change, diag.List) {
	inst := p.prior.Instance(sub.Addr)
	if inst == nil || len(inst.Deposed) == 0 || p.in.Mode == plan.Destroy && !p.scope.goes(sub.Addr) {
		return nil, nil
	}
	var out []*plan.Change
	forget, fromBlock, ds := p.removed.Of(sub.Addr)
	if ds.HasErrors() {
		return nil, ds
	}
	written := p.keptByLifecycle(sub.Addr)
	for _, k := range inst.DeposedKeys() {
		o, more := sub.Stored(inst.Deposed[k])
		ds = append(ds, more...)
		if more.HasErrors() {
			continue
		}
		if p.readsOrphan(sub.Addr) {
			now, more := sub.Refresh(o, k)
			ds = append(ds, more...)
			if more.HasErrors() || now.Deferred != "" { // the object is kept until it can be read
				continue
			}
			now.Stored = o.Stored
			o = now
		}
		if o.Value.IsNull() {
			p.noteMissing(addr.Object{Instance: sub.Addr, Deposed: k})
			continue
		}
		if p.in.Mode == plan.RefreshOnly {
			continue
		}
		kept := inst.Deposed[k].SkipDestroy && !fromBlock
		c, more := p.planDelete(sub, o, forget || written || kept)
		ds = append(ds, more...)
		c.Deposed = k
		switch {
		case written:
			c.Reason = plan.ForgotDestroyConfig
		case kept:
			c.Reason = plan.ForgotDestroyState
		}
		out = append(out, c)
		ds = append(ds, p.forgotten(c, forget)...)
	}
	return out, ds
}

// forgotten warns about an object that continues to exist but is removed from state.
func (p *planner) forgotten(c *plan.Change, fromBlock bool) diag.List {
	if c.Op != plan.Forget || p.in.Mode != plan.Normal && !fromBlock {
		return nil
	}
	return diag.Warnf(diag.CodePlanForgotten, nil, "Resource will be removed from the state", "After this plan is applied, Terrace will no longer manage these objects: %s. They go on existing; to manage them again, import them.", addr.Object{Instance: c.Addr, Deposed: c.Deposed})
}

// noteMissing records that a deposed object no longer exists.
func (p *planner) noteMissing(o addr.Object) {
	add(&p.found, &p.found.vanished, o)
}

// walkOrphans plans the deletes of all objects in state that are not in the configuration.
func (p *driver) walkOrphans(w *parallel.Work[job]) {
	done := make(map[addr.Instance]bool, len(p.found.plans))
	for _, ip := range p.found.plans {
		done[ip.d.Addr()] = true
	}
	for _, r := range p.prior.Sorted() {
		if r.Addr.Resource.Mode == addr.Ephemeral {
			continue
		}
		keys := r.Keys()
		var rest []addr.Key
		for _, k := range keys {
			a := r.Addr.Instance(k)
			if !done[a] && p.scope.wantsOrphan(a) && p.scope.allows(a) {
				rest = append(rest, k)
			}
		}
		for part := range shares(rest, p.in.Providers.Parallelism) {
			w.Add(func(t *demand.Task) {
				for _, k := range part {
					if p.in.Mode == plan.RefreshOnly {
						p.refreshOrphan(t, r, k) // an output may have planned it already
					} else {
						p.orphan(t, r, k)
					}
				}
			})
		}
	}
}

// orphan plans the delete of one instance that is not in the configuration.
func (p *planner) orphan(t *demand.Task, r *state.Resource, k addr.Key) *orphanPlan {
	a := r.Addr.Instance(k)
	inst := r.Instances[k]
	why, wanted := p.whyOrphan(t, a)
	if why == plan.DeleteNoResourceConfig && p.prev(a) != a {
		why = plan.DeleteNoMoveTarget
	}
	if wanted {
		return nil // its count or for_each failed or is deferred, or its check was not run, so it may still be wanted
	}
	op := &orphanPlan{addr: a, provider: r.Config(inst)}
	add(&p.found, &p.found.orphans, op)
	if a.Resource.Mode == addr.Data {
		return op // unused data sources are removed without being shown
	}
	ds := p.planOrphan(t, op, inst, why)
	if op.failed = ds.HasErrors(); op.failed {
		p.unplanned.Store(true)
	}
	t.Report(ds.About(a.String()))
	return op
}

func (p *planner) planOrphan(t *demand.Task, op *orphanPlan, inst *state.Instance, why plan.Reason) diag.List {
	a := op.addr
	ps, ds := p.client.Schema(op.provider.Provider)
	if ds.HasErrors() {
		return ds
	}
	s := ps.Resource(addr.Managed, a.Resource.Type)
	if s == nil {
		return append(ds, diag.Errorf(diag.CodePlanNoSchema, nil, "No schema available for resource", "State holds %s, but the provider %s no longer has the resource type %q, so it cannot be refreshed or destroyed. Remove it with a removed block, or use an older version of the provider.", a, op.provider.Provider.Display(), a.Resource.Type)...)
	}
	pc, more := p.ev.ProviderAt(t, op.provider, a)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	if wait := pc.Deferral(t); wait != nil {
		p.postpone(&plan.Deferred{Addr: a.String(), Reason: plan.ProviderConfigUnknown}, wait)
		return ds
	}
	prov, more := p.client.Configured(t, pc, nil)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	forget, fromBlock, more := p.removed.Of(a)
	if ds = append(ds, more...); more.HasErrors() {
		return ds
	}
	op.with = p.client.Digest(t, pc)
	op.deposed, more = p.planDeposed(p.client.Subject(p.ev, a, pc.Addr, s, prov))
	ds = append(ds, more...)
	if inst.Current == nil {
		return ds
	}
	sub := p.client.Subject(p.ev, a, op.provider, s, prov)
	now, more := p.orphanNow(sub, op, inst.Current)
	ds = append(ds, more...)
	if now.Deferred != "" {
		p.postpone(&plan.Deferred{Addr: a.String(), Reason: plan.DeferReason(now.Deferred)}, &eval.Deferral{})
		return ds
	}
	if more.HasErrors() || now.Value.IsNull() || p.in.Mode == plan.RefreshOnly || p.in.Mode == plan.Destroy && !p.scope.goes(a) {
		return ds
	}
	written := p.keptByLifecycle(a)
	skip := forget || written || inst.Current.SkipDestroy && !fromBlock
	c, more := p.planDelete(sub, now, skip)
	ds = append(ds, more...)
	op.change = c
	c.Reason = why
	switch {
	case written:
		c.Reason = plan.ForgotDestroyConfig
	case skip && inst.Current.SkipDestroy:
		c.Reason = plan.ForgotDestroyState
	}
	if c.Op == plan.Delete {
		ds = append(ds, p.preventOrphan(t, c)...)
	}
	if p.in.Mode == plan.Destroy && c.Op == plan.Delete {
		c.Reason = ""
	}
	return append(ds, p.forgotten(c, forget)...)
}

// keptByLifecycle reports whether an instance that is not wanted still has a block, and that
// block's lifecycle forbids destroying it.
func (p *planner) keptByLifecycle(a addr.Instance) bool {
	n := p.in.Eval.Tree.Node(a.Module)
	if n == nil || n.Config.Resources[a.Resource] == nil {
		return false
	}
	destroy := n.Config.Resources[a.Resource].Lifecycle.Destroy
	return destroy != nil && !*destroy
}

// preventOrphan returns an error if prevent_destroy forbids deleting an instance that is not
// wanted but still has a block. If the instance's module instance is also destroyed, only a
// constant prevent_destroy counts.
func (p *planner) preventOrphan(t *demand.Task, c *plan.Change) diag.List {
	if p.in.IgnorePreventDestroy {
		return nil
	}
	n := p.in.Eval.Tree.Node(c.Addr.Module)
	if n == nil || n.Config.Resources[c.Addr.Resource] == nil {
		return nil
	}
	cfg := n.Config.Resources[c.Addr.Resource]
	if cfg.Lifecycle.PreventDestroy == nil {
		return nil
	}
	if r := p.blockOf(t, c.Addr); r != nil {
		prevent, at, ds := r.PreventDestroy(t)
		if prevent {
			ds = append(ds, prevented(c.Addr, cfg, at))
		}
		return ds
	}
	x := cfg.Lifecycle.PreventDestroy.Expr
	at := x.Range()
	v, more := x.Value(&hcl.EvalContext{Functions: p.in.Eval.Functions})
	switch {
	case more.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type() != cty.Bool:
		return diag.Errorf(eval.CodePreventDestroy, &at, "Invalid prevent_destroy argument", "Whether %s may be destroyed is not known: its module instance is gone, and the value of prevent_destroy depends on what is in there. Write true or false, or exclude this resource instance with -exclude=%s.", c.Addr, quoteAddr(c.Addr))
	case v.True():
		return diag.List{prevented(c.Addr, cfg, &at)}
	}
	return nil
}

// blockOf returns the resource block of an instance in its module instance. It is nil if one of
// the two no longer exists.
func (p *planner) blockOf(t *demand.Task, a addr.Instance) *eval.Resource {
	m := p.ev.Root
	for _, step := range a.Module.Steps() {
		call := m.Call(step.Name)
		if call == nil || call.Node == nil {
			return nil
		}
		ch, ok := call.Children(t)
		if !ok {
			return nil
		}
		if m = ch.Get(step.Key); m == nil {
			return nil
		}
	}
	return m.Resource(a.Resource)
}

// orphanNow reads the current object of an instance that is not in the configuration.
func (p *planner) orphanNow(sub *resourceclient.Subject, op *orphanPlan, stored *state.Object) (resourceclient.Object, diag.List) {
	old, ds := sub.Stored(stored)
	if ds.HasErrors() {
		return old, ds
	}
	op.refreshed = stored
	if !p.readsOrphan(sub.Addr) {
		return old, ds
	}
	now, known, more := p.recent(sub, old, op.with)
	if op.how = recent; !known {
		op.how = asked
		now, more = sub.Refresh(old, "")
	}
	if ds = append(ds, more...); more.HasErrors() || now.Deferred != "" {
		return now, ds
	}
	op.refreshed, op.touched, more = sub.Keep(old, now)
	now.Stored = old.Stored
	if op.touched {
		op.drift = p.driftChange(sub, old, now)
	}
	return now, append(ds, more...)
}

// whyOrphan returns the reason for which an instance is not wanted. wanted is true if the
// reason is unknown because evaluating the configuration failed. A plan to destroy does not
// need it, because it destroys all instances.
func (p *planner) whyOrphan(t *demand.Task, a addr.Instance) (why plan.Reason, wanted bool) {
	m := p.ev.Root
	for _, step := range a.Module.Steps() {
		call := m.Call(step.Name)
		if call == nil || call.Node == nil {
			return plan.DeleteNoResourceConfig, false
		}
		ch, ok := call.Children(t)
		if !ok || ch.Deferred != nil {
			return "", p.in.Mode != plan.Destroy
		}
		if m = ch.Get(step.Key); m == nil {
			return plan.DeleteNoModule, false
		}
	}
	r := m.Resource(a.Resource)
	if r == nil {
		return plan.DeleteNoResourceConfig, false
	}
	in, ok := r.Instances(t)
	if !ok || in.Deferred != nil {
		return "", p.in.Mode != plan.Destroy
	}
	if in.Get(a.Key) != nil && in.Form != eval.Disabled {
		return "", true
	}
	switch {
	case in.Form == eval.Disabled:
		return plan.DeleteEnabledFalse, false
	case in.Form == eval.Counted && a.Key.Kind == addr.IntKey:
		return plan.DeleteCountIndex, false
	case in.Form == eval.Keyed && a.Key.Kind == addr.StringKey:
		return plan.DeleteEachKey, false
	default:
		return plan.DeleteWrongRepetition, false
	}
}

// unneeded turns errors into warnings if they concern configuration that a plan to destroy does
// not need. It keeps errors about objects in state, and all errors if an object could not be
// planned.
func (p *driver) unneeded(ds diag.List) diag.List {
	if p.in.Mode != plan.Destroy || p.unplanned.Load() || p.ctx.Err() != nil {
		return ds
	}
	there := map[string]bool{}
	for a := range p.prior.Instances() {
		there[a.String()] = true
	}
	out := make(diag.List, 0, len(ds))
	for _, m := range ds {
		if there[m.Address] {
			out = append(out, m)
		} else {
			out = append(out, diag.List{m}.AsWarnings()...)
		}
	}
	return out
}
