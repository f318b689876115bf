package planner

import (
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/zclconf/go-cty/cty"
)

// ephemeral opens an ephemeral resource. If its arguments are unknown, its value is unknown.
func (p *planner) ephemeral(t *demand.Task, d *eval.Desired) (*instancePlan, cty.Value, diag.List) {
	ip := newInstancePlan(d)
	v, ds := p.client.Open(t, p.ev, d, resourceclient.Opening{
		Before: func(out []eval.Outcome) { ip.pre, ip.checked = out, true },
		After:  func(out []eval.Outcome) { ip.post = out },
		Wait: func(config cty.Value, pc *eval.ProviderConfig) bool {
			why := p.ephemeralWaits(t, d, config, pc)
			if why != "" {
				p.client.Waits(d.Addr(), why)
			}
			return why != ""
		},
	})
	return ip, v, ds
}

// ephemeralWaits returns the reason for which an ephemeral resource cannot be opened yet, or
// "".
func (p *planner) ephemeralWaits(t *demand.Task, d *eval.Desired, config cty.Value, pc *eval.ProviderConfig) string {
	switch {
	case !config.IsWhollyKnown():
		return "unknown configuration"
	case p.pendingBefore(t, d, false):
		return "pending dependencies"
	case pc.Deferral(t) != nil:
		return "unknown provider configuration"
	}
	return ""
}
