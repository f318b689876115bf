package plan

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/terrace-iac/terrace/internal/state"
	"github.com/zclconf/go-cty/cty"
)

// orphanPlan is what planning found out about objects in state that nothing in
// configuration wants.
type orphanPlan struct {
	addr      addr.Instance
	provider  addr.ProviderConfig
	change    *Change
	drift     *Change
	refreshed *state.Object
	touched   bool
	deposed   []*Change
}

// planDestroy plans the end of an instance that configuration knows, in destroy mode.
func (p *planner) planDestroy(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, prov provider.Provider, old, now object) (cty.Value, diag.List) {
	if now.value.IsNull() {
		return cty.UnknownVal(s.Block.ImpliedType()), nil
	}
	skip := d.Resource.Config().Lifecycle.Destroy != nil && !*d.Resource.Config().Lifecycle.Destroy
	c, ds := p.planDelete(d.Addr(), ip.provider, s, prov, now, skip)
	if c != nil && skip {
		c.Reason = ForgotDestroyConfig
	}
	ip.change = c
	if ds.HasErrors() {
		return withSensitive(now.value, storedSensitive(now.stored), s), ds
	}
	ds = append(ds, p.preventReplace(t, d, c)...)
	return withSensitive(now.value, storedSensitive(now.stored), s), ds
}

// planDelete plans a delete, or a forget where the object must not be destroyed.
func (p *planner) planDelete(a addr.Instance, pc addr.ProviderConfig, s *schema.Resource, prov provider.Provider, now object, skip bool) (*Change, diag.List) {
	null := cty.NullVal(s.Block.ImpliedType())
	c := &Change{Addr: a, Prev: p.prev(a), Provider: pc, Op: Delete, Before: now.value, After: null, Private: now.private, BeforeIdentity: now.identity}
	c.BeforeSensitive = sensitivePaths(s, now.value, storedSensitive(now.stored))
	if skip {
		c.Op, c.SkipDestroy = Forget, true
		return c, nil
	}
	ps, ds := prov.Schema(p.ctx)
	if ds.HasErrors() || !ps.Capabilities.PlanDestroy {
		return c, ds
	}
	done := p.call()
	resp, more := prov.Plan(p.ctx, provider.PlanRequest{Type: a.Resource.Type, Prior: now.value, Proposed: null, Config: null, Private: now.private, PriorIdentity: now.identity, Meta: p.meta(a, prov)})
	done()
	ds = append(ds, more...)
	if !more.HasErrors() {
		if resp.Planned != cty.NilVal && !resp.Planned.IsNull() {
			return c, append(ds, diag.Errorf(nil, "Provider produced invalid plan", "The provider planned a value for %s, which is to be destroyed. This is a bug in the provider, which should be reported in the provider's own issue tracker.", a)...)
		}
		c.Private = resp.Private
	}
	return c, ds
}

// planDeposed plans the end of the deposed objects of an instance.
func (p *planner) planDeposed(a addr.Instance, s *schema.Resource, prov provider.Provider, pc addr.ProviderConfig) ([]*Change, diag.List) {
	inst := p.prior.Instance(a)
	if inst == nil || len(inst.Deposed) == 0 || p.in.Mode == RefreshOnly {
		return nil, nil
	}
	var out []*Change
	var ds diag.List
	for _, k := range inst.DeposedKeys() {
		o, more := p.storedObject(a, inst.Deposed[k], s, prov)
		ds = append(ds, more...)
		if more.HasErrors() {
			continue
		}
		if !p.in.SkipRefresh {
			now, more := p.refresh(addr.Object{Instance: a, Deposed: k}, s, prov, o)
			ds = append(ds, more...)
			if more.HasErrors() {
				continue
			}
			now.stored = o.stored
			o = now
		}
		if o.value.IsNull() {
			o.value = cty.NullVal(s.Block.ImpliedType())
			out = append(out, &Change{Addr: a, Prev: a, Deposed: k, Provider: pc, Op: Forget, Before: o.value, After: o.value})
			continue
		}
		c, more := p.planDelete(a, pc, s, prov, o, inst.Deposed[k].SkipDestroy)
		ds = append(ds, more...)
		c.Deposed, c.Prev = k, a
		out = append(out, c)
	}
	return out, ds
}

// walkOrphans plans the end of everything in state that was not wanted.
func (p *planner) walkOrphans(w *par.Work[job]) {
	done := make(map[addr.Instance]bool, len(p.plans))
	for _, ip := range p.plans {
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
			if !done[a] && p.scope.wantsInstance(a) && p.scope.allows(a) {
				rest = append(rest, k)
			}
		}
		if len(rest) > 0 {
			w.Add(func(t *demand.Task) {
				for _, k := range rest {
					p.orphan(t, r, k)
				}
			})
		}
	}
}

// orphan plans the end of one instance that nothing wants.
func (p *planner) orphan(t *demand.Task, r *state.Resource, k addr.Key) {
	a := r.Addr.Instance(k)
	inst := r.Instances[k]
	why, wanted := p.whyOrphan(t, a)
	if wanted {
		return // its expansion failed or is put off, or the check it stands in was not run: nothing is known
	}
	op := &orphanPlan{addr: a, provider: r.Config(inst)}
	p.mu.Lock()
	p.orphans = append(p.orphans, op)
	p.mu.Unlock()
	if a.Resource.Mode == addr.Data {
		return // data sources that nothing reads any more are dropped without a word
	}
	p.graph.Report(p.planOrphan(t, op, inst, why).About(a.String()))
}

func (p *planner) planOrphan(t *demand.Task, op *orphanPlan, inst *state.Instance, why Reason) diag.List {
	a := op.addr
	ps, ds := p.shell.Schema(op.provider.Provider)
	if ds.HasErrors() {
		return ds
	}
	s := ps.Resource(addr.Managed, a.Resource.Type)
	if s == nil {
		return append(ds, diag.Errorf(nil, "No schema available for resource", "State holds %s, but the provider %s no longer has the resource type %q, so it cannot be refreshed or destroyed. Remove it with a removed block, or use an older version of the provider.", a, op.provider.Provider.Display(), a.Resource.Type)...)
	}
	forget, fromBlock := p.removal(a)
	pc, more := p.ev.ProviderAt(t, op.provider, a)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	if wait := pc.Deferral(t); wait != nil {
		p.putOff(a.String(), ProviderConfigUnknown, wait)
		return ds
	}
	prov, more := p.configured(t, pc, nil)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	op.deposed, more = p.planDeposed(a, s, prov, pc.Addr)
	ds = append(ds, more...)
	if inst.Current == nil {
		return ds
	}
	old, more := p.storedObject(a, inst.Current, s, prov)
	ds = append(ds, more...)
	if more.HasErrors() {
		return ds
	}
	now := old
	op.refreshed = inst.Current
	if !p.in.SkipRefresh {
		if now, more = p.refresh(addr.Object{Instance: a}, s, prov, old); more.HasErrors() {
			return append(ds, more...)
		}
		op.refreshed, op.touched, more = p.storeRefreshed(a, s, old, now, more)
		ds = append(ds, more...)
		now.stored = old.stored
		if op.touched {
			op.drift = p.driftChange(a, op.provider, s, old, now)
		}
	}
	if now.value.IsNull() || p.in.Mode == RefreshOnly {
		return ds
	}
	skip := forget || inst.Current.SkipDestroy && !fromBlock
	c, more := p.planDelete(a, op.provider, s, prov, now, skip)
	ds = append(ds, more...)
	op.change = c
	c.Reason = why
	if skip && !forget {
		c.Reason = ForgotDestroyState
	}
	if p.in.Mode == Destroy && c.Op == Delete {
		c.Reason = ""
	}
	if c.Op == Forget && p.in.Mode == Normal {
		ds = append(ds, diag.Warnf(nil, "Resource will be removed from the state", "After this plan is applied, Terrace will no longer manage these objects: %s. They go on existing; to manage them again, import them.", a)...)
	}
	return ds
}

// whyOrphan says why nothing wants an instance. wanted is true where that
// cannot be said because computing what is wanted failed.
func (p *planner) whyOrphan(t *demand.Task, a addr.Instance) (why Reason, wanted bool) {
	m := p.ev.Root
	for _, step := range a.Module.Steps() {
		call := m.Call(step.Name)
		if call == nil || call.Node == nil {
			return DeleteNoResourceConfig, false
		}
		ch, ok := call.Children(t)
		if !ok || ch.Deferred != nil {
			return "", true
		}
		if m = ch.Get(step.Key); m == nil {
			return DeleteNoModule, false
		}
	}
	r := m.Resource(a.Resource)
	if r == nil {
		return DeleteNoResourceConfig, false
	}
	in, ok := r.Instances(t)
	if !ok || in.Deferred != nil {
		return "", true
	}
	if in.Get(a.Key) != nil && in.Form != eval.Disabled {
		return "", true
	}
	switch {
	case in.Form == eval.Disabled:
		return DeleteEnabledFalse, false
	case in.Form == eval.Counted && a.Key.Kind == addr.IntKey:
		return DeleteCountIndex, false
	case in.Form == eval.Keyed && a.Key.Kind == addr.StringKey:
		return DeleteEachKey, false
	default:
		return DeleteWrongRepetition, false
	}
}
