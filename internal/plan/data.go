package plan

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/event"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/terrace-iac/terrace/internal/schema"
	"github.com/zclconf/go-cty/cty"
)

// data reads one instance of a data source, or plans to read it during apply.
func (p *planner) data(t *demand.Task, d *eval.Desired, ip *instancePlan) (cty.Value, diag.List) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	ip.provider = pc.Addr
	ip.checked = true
	if wait := pc.Deferral(t); wait != nil {
		v, more := p.putOffInstance(t, d, ip, ProviderConfigUnknown, wait)
		return v, append(ds, more...)
	}
	if p.in.Mode == Destroy {
		v, more := p.dataForDestroy(t, d, ip, s, pc)
		return v, append(ds, more...)
	}
	pre, more := d.Preconditions(t)
	ip.pre = pre
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	config, sensitive, more := configValue(t, d, s)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	reason := Reason("")
	switch {
	case !config.IsWhollyKnown():
		reason = ReadConfigUnknown
	case p.pendingBefore(t, d) || p.pendingDirect(t):
		reason = ReadDependencyPending
	case d.Resource.Config().Check != "" && p.pendingAny(t, d):
		reason = ReadCheckNested
	}
	if reason != "" && p.in.Mode == Normal {
		planned := s.Block.SetUnknowns(config)
		c := &Change{Addr: d.Addr(), Prev: d.Addr(), Provider: pc.Addr, Op: Read, Reason: reason, Before: cty.NullVal(s.Block.ImpliedType()), After: planned}
		c.AfterSensitive = sensitivePaths(s, planned, present(planned, sensitive))
		ip.change = c
		if names := p.ev.WaitsFor(t.Reads()); names != nil && reason == ReadConfigUnknown {
			p.putOff(d.Addr().String(), ConfigUnknown, &eval.Deferral{At: d.Resource.Config().At, Variables: names})
		}
		return withSensitive(planned, c.AfterSensitive, s), ds
	}
	if reason != "" {
		return unknown, ds
	}
	out, more := p.readNow(t, d, ip, s, pc, dataConfig{config, sensitive})
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	ip.post, more = d.Postconditions(t, out)
	return out, append(ds, more...)
}

// dataConfig is the configuration of a data source without marks.
type dataConfig struct {
	value     cty.Value
	sensitive []cty.Path
}

// readNow reads a data source and keeps what was read for state.
func (p *planner) readNow(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, pc *eval.ProviderConfig, config dataConfig) (cty.Value, diag.List) {
	unknown := cty.UnknownVal(s.Block.ImpliedType())
	prov, ds := p.configured(t, pc, &d.Resource.Config().At)
	if ds.HasErrors() {
		return unknown, ds
	}
	if prov == nil {
		return unknown, append(ds, demand.Fail()...)
	}
	v, more := p.read(d, s, prov, config.value)
	if ds = append(ds, Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	obj, err := NewObject(v, s, nil, cty.NilVal)
	if err != nil {
		return unknown, append(ds, diag.Errorf(&d.Resource.Config().At, "Provider produced invalid object", "What the provider returned for %s cannot be stored: %s.", d.Addr(), err)...)
	}
	obj.Sensitive = present(v, config.sensitive) // the schema's own are not stored for data sources, as upstream
	ip.refreshed, ip.touched = obj, true
	return withSensitive(v, obj.Sensitive, s), ds
}

// dataForDestroy reads a data source anew before a destroy, since providers may
// be configured with what it says now. Where that cannot be, what state holds
// has to do.
func (p *planner) dataForDestroy(t *demand.Task, d *eval.Desired, ip *instancePlan, s *schema.Resource, pc *eval.ProviderConfig) (cty.Value, diag.List) {
	var ds diag.List
	stored, _, known := p.prior.Object(addr.Object{Instance: d.Addr()})
	if !p.in.SkipRefresh && d.Resource.Config().Check == "" {
		config, sensitive, more := configValue(t, d, s)
		if more.HasErrors() {
			return cty.UnknownVal(s.Block.ImpliedType()), Blame(d, s, more)
		}
		if config.IsWhollyKnown() {
			v, more := p.readNow(t, d, ip, s, pc, dataConfig{config, sensitive})
			if !more.HasErrors() || !known {
				return v, more
			}
			for _, m := range more {
				m.Severity = diag.Warning
			}
			ds = more
		}
	}
	if !known {
		return cty.UnknownVal(s.Block.ImpliedType()), ds
	}
	ip.refreshed = stored
	v, more := p.shell.Decode(d.Addr(), stored, s, d.Resource.Provider(), p.call)
	return withSensitive(v, stored.Sensitive, s), append(ds, more...)
}

// read asks the provider for a data source and holds the answer to its schema.
func (p *planner) read(d *eval.Desired, s *schema.Resource, prov provider.Provider, config cty.Value) (cty.Value, diag.List) {
	return ReadData(p.shell, d, s, prov, config, p.meta(d.Addr(), prov), p.in.Observe, p.call)
}

// ReadData reads a data source; plan and apply do it alike.
func ReadData(sh *Shell, d *eval.Desired, s *schema.Resource, prov provider.Provider, config, meta cty.Value, observe event.Sink, call func() func()) (cty.Value, diag.List) {
	a := d.Addr()
	e := event.Event{Kind: event.ReadStart, Object: addr.Object{Instance: a}, Op: Read}
	observe.Send(e)
	done := call()
	ds := prov.ValidateResource(sh.Context, addr.Data, a.Resource.Type, config)
	var v cty.Value
	if !ds.HasErrors() {
		var more diag.List
		v, more = prov.ReadData(sh.Context, a.Resource.Type, config, meta)
		ds = append(ds, more...)
	}
	done()
	null := cty.NullVal(s.Block.ImpliedType())
	if ds.HasErrors() {
		return null, ds
	}
	if v == cty.NilVal || v.IsNull() {
		return null, append(ds, diag.Errorf(nil, "Provider produced null object", "Provider %q produced a null value for %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", d.Resource.Provider().String(), a)...)
	}
	if err := schema.AssertUsable(s.Block, v, true); err != nil {
		return null, append(ds, diag.Errorf(nil, "Provider produced invalid object", "Provider %q produced an invalid value for %s: %s. This is a bug in the provider, which should be reported in the provider's own issue tracker.", d.Resource.Provider().String(), a, err)...)
	}
	e.Kind = event.ReadDone
	e.IDKey, e.IDValue = identify(v)
	observe.Send(e)
	return v, ds
}

// pendingBefore reports whether anything that the instance explicitly depends
// on, directly or through others, is to change.
func (p *planner) pendingBefore(t *demand.Task, d *eval.Desired) bool {
	if !d.Resource.HasAfter() {
		return false
	}
	return p.pending(d.Resource.After(t), map[*demand.Node]bool{})
}

// pendingDirect reports whether a managed resource that the configuration being
// computed refers to, itself or through values, is to change.
func (p *planner) pendingDirect(t *demand.Task) bool {
	seen := map[*demand.Node]bool{}
	stack := t.Reads()
	for len(stack) > 0 {
		n := stack[len(stack)-1].Node
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		r, ok := n.What.(*eval.Resource)
		if !ok {
			if _, instance := n.What.(*eval.Desired); !instance {
				stack = append(stack, n.Reads()...)
			}
			continue
		}
		if r.Config().Addr.Mode != addr.Managed {
			continue
		}
		in, ok := r.Instances(t)
		if !ok {
			continue
		}
		if in.Deferred != nil {
			return true
		}
		for _, other := range in.All {
			if ip, _ := other.Memo.(*instancePlan); ip.pending() {
				return true
			}
		}
	}
	return false
}

// pendingAny reports whether anything that the instance's module tree plans is to change.
func (p *planner) pendingAny(_ *demand.Task, d *eval.Desired) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ip := range p.plans {
		if ip.d != d && ip.pending() {
			return true
		}
	}
	return len(p.deferred) > 0
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
		if p.ev.PutOff(n) {
			return true
		}
		if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
			if ip, _ := d.Memo.(*instancePlan); ip.pending() {
				return true
			}
		}
		for _, r := range n.Reads() {
			stack = append(stack, r.Node)
		}
	}
	return false
}
