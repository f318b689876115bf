package planner

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
)

// Reads say which objects a plan does not ask their providers about.
type Reads struct {
	// Minimal plans an object from what state holds of it. Only where that gives a change
	// is it read and planned again, and where the provider has another version of its
	// schema. What nothing wants any more is not read. The option is Terraform 1.17's
	// -minimal-refresh.
	Minimal bool
}

// spares reports whether an object is planned from state before it is read.
func (m *managedPlan) spares(old resourceclient.Object) bool {
	p := m.p
	if !p.in.Reads.Minimal || p.in.Mode != plan.Normal || old.Stored == nil || old.Moved {
		return false
	}
	s := m.sub.Schema
	upgraded := old.Stored.SchemaVersion != s.Version || old.Stored.Identity != nil && s.Identity != nil && old.Stored.IdentityVersion != s.IdentityVersion
	return !upgraded && !old.Stored.Tainted && !p.replace[m.sub.Addr]
}

// readsOrphan reports whether an object that nothing wants is read before its end is
// planned.
func (p *planner) readsOrphan(a addr.Instance) bool {
	return p.refreshes(a) && !p.in.Reads.Minimal
}

// reads counts what was read of the objects that configuration wants and state has.
func (p *planner) reads() plan.Reads {
	var n plan.Reads
	if !p.in.Reads.Minimal {
		return n
	}
	for _, ip := range p.found.plans {
		if !ip.looked || ip.d.Addr().Resource.Mode != addr.Managed {
			continue
		}
		if _, _, ok := p.prior.Object(addr.Object{Instance: ip.d.Addr()}); !ok {
			continue
		}
		n.Objects++
		if ip.spared {
			n.Spared++
		}
	}
	for _, op := range p.found.orphans {
		if op.addr.Resource.Mode == addr.Managed && op.change != nil {
			n.Objects++
			n.Spared++
		}
	}
	return n
}
