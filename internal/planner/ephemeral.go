package planner

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/exchange"
	"github.com/zclconf/go-cty/cty"
)

// ephemeral opens an ephemeral resource, or leaves it unknown where its
// arguments are not known yet.
func (p *planner) ephemeral(t *demand.Task, ip *instancePlan) (cty.Value, diag.List) {
	d := ip.d
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() {
		return cty.DynamicVal, ds
	}
	unknown := exchange.NotOpen(s)
	pc, more := d.Provider(t)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	ip.provider, ip.checked = pc.Addr, true
	pre, more := d.Preconditions(t)
	ip.pre = pre
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	v, more := d.Config(t, s)
	if ds = append(ds, exchange.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	config, _ := v.UnmarkDeep()
	if why := p.ephemeralWaits(t, d, config, pc); why != "" {
		p.exchange.Waits(d.Addr(), why)
		return unknown, ds
	}
	prov, more := p.exchange.Configured(t, pc, &d.Resource.Config().At)
	if ds = append(ds, more...); more.HasErrors() {
		return unknown, ds
	}
	o, out, more := p.exchange.Subject(p.ev, d.Addr(), pc.Addr, s, prov).Open(config, &d.Resource.Config().At)
	if ds = append(ds, exchange.Blame(d, s, more)...); more.HasErrors() {
		return unknown, ds
	}
	p.mu.Lock()
	p.opened = append(p.opened, o)
	p.mu.Unlock()
	ip.post, more = d.Postconditions(t, out)
	return out, append(ds, more...)
}

// ephemeralWaits says why an ephemeral resource cannot be opened yet; "": it can.
func (p *planner) ephemeralWaits(t *demand.Task, d *eval.Desired, config cty.Value, pc *eval.ProviderConfig) string {
	switch {
	case !config.IsWhollyKnown():
		return "unknown configuration"
	case p.pendingBefore(t, d):
		return "pending dependencies"
	case pc.Deferral(t) != nil:
		return "unknown provider configuration"
	}
	return ""
}

// closeEphemeral closes in the reverse order of opening.
func (p *planner) closeEphemeral() {
	for i := len(p.opened) - 1; i >= 0; i-- {
		p.graph.Report(p.opened[i].Close())
	}
}
