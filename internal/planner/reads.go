package planner

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Reads say which objects a plan does not ask their providers about, although it is to
// find out what there is.
type Reads struct {
	// Minimal plans an object from what state holds of it. Only where that gives a change
	// is it read and planned again, and where the provider has another version of its
	// schema. What nothing wants any more is not read. The option is Terraform 1.17's
	// -minimal-refresh.
	Minimal bool
	// MinimalData reads a data source only where its arguments are not those that it was
	// read with last, or where something that it depends on changes.
	MinimalData bool
	// Recent are readings that are recent enough to stand for new ones, if state still
	// holds what it held then.
	Recent map[addr.Object]plan.Reading
	// Args are those that data sources were read with last; what is not there is compared
	// with what state holds of it.
	Args map[addr.Instance]plan.Digest
	// Expected reports whether a change that was planned with a recent reading is one that
	// is known already, so that there is no reason to read again. nil: none is.
	Expected func(*plan.Change) bool
	// Note has the plan tell its readings.
	Note bool
}

// how an object came to be known.
type reading uint8

const (
	asked  reading = iota // its provider was asked, or is not to be
	spared                // state holds it, and the plan does not change it
	recent                // there is a reading that is recent enough
)

// upgraded reports whether an object was stored with another version of its schema.
func upgraded(o *state.Object, s *schema.Resource) bool {
	return o.SchemaVersion != s.Version || o.Identity != nil && s.Identity != nil && o.IdentityVersion != s.IdentityVersion
}

// spares reports whether an object is planned from state before it is read.
func (m *managedPlan) spares(old resourceclient.Object) bool {
	p := m.p
	return p.in.Reads.Minimal && p.in.Mode == plan.Normal && !old.Moved && !upgraded(old.Stored, m.sub.Schema) && !old.Stored.Tainted && !p.replace[m.sub.Addr]
}

// readsOrphan reports whether an object that nothing wants is read before its end is
// planned.
func (p *planner) readsOrphan(a addr.Instance) bool {
	return p.refreshes(a) && !p.in.Reads.Minimal
}

// recent finds what is known of an object by a recent reading.
func (p *planner) recent(sub *resourceclient.Subject, old resourceclient.Object) (now resourceclient.Object, ok bool, ds diag.List) {
	r, ok := p.in.Reads.Recent[addr.Object{Instance: sub.Addr}]
	if !ok || p.in.Mode == plan.RefreshOnly || old.Moved || upgraded(old.Stored, sub.Schema) || r.Stored != plan.DigestOf(old.Stored) {
		return old, false, nil
	}
	switch {
	case r.Gone:
		return sub.None(), true, nil
	case r.Found == nil:
		return old, true, nil
	}
	now, ds = sub.Stored(r.Found)
	now.Stored = old.Stored
	return now, !ds.HasErrors(), ds
}

// keepsData finds what a data source said when it was read last, if it would say that
// again: its arguments are the same.
func (p *planner) keepsData(t *demand.Task, d *eval.Desired, config cty.Value, sensitive []cty.Path) (obj *state.Object, v cty.Value, ok bool) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() || p.in.Mode != plan.Normal || d.Resource.Config().Check != "" {
		return nil, cty.NilVal, false
	}
	stored, pc, _ := p.prior.Object(addr.Object{Instance: d.Addr()})
	r, known := p.in.Reads.Recent[addr.Object{Instance: d.Addr()}]
	switch {
	case known && r.Args == plan.DigestArgs(config) && r.Found != nil:
		obj = r.Found
	case known && r.Args == plan.DigestArgs(config) && r.Stored == plan.DigestOf(stored):
		obj = stored
	case p.in.Reads.MinimalData && stored != nil && pc.Provider == d.Resource.Provider() && stored.SchemaVersion == s.Version:
		obj = stored
	}
	if obj == nil {
		return nil, cty.NilVal, false
	}
	v, ds = p.client.Decode(d.Addr(), obj, s, d.Resource.Provider())
	if ds.HasErrors() {
		return nil, cty.NilVal, false
	}
	if obj == stored && !known {
		args, noted := p.in.Reads.Args[d.Addr()]
		if noted && args != plan.DigestArgs(config) || !noted && !sameArguments(s.Block, v, config) {
			return nil, cty.NilVal, false
		}
	}
	return obj, resourceclient.WithSensitive(v, obj.Sensitive, s), true
}

// sameArguments reports whether an object was surely read with a configuration. Of an
// argument that is left out and that the provider may fill in, it is not known whether it
// was left out then.
func sameArguments(b *schema.Block, v, config cty.Value) bool {
	v, _ = v.UnmarkDeep()
	if !b.ProposedNew(v, config).RawEquals(v) {
		return false
	}
	for name, a := range b.Attributes {
		if a.Optional && a.Computed && config.GetAttr(name).IsNull() && !v.GetAttr(name).IsNull() {
			return false
		}
	}
	return true
}

// reads counts what was read of the objects that configuration wants and state has.
func (p *planner) reads() plan.Reads {
	var n plan.Reads
	if !p.in.Reads.Minimal && !p.in.Reads.MinimalData && len(p.in.Reads.Recent) == 0 {
		return n
	}
	count := func(how reading) {
		n.Objects++
		switch how {
		case spared:
			n.Spared++
		case recent:
			n.Recent++
		}
	}
	for _, ip := range p.found.plans {
		switch {
		case ip.d.Addr().Resource.Mode == addr.Data:
			if ip.args != (plan.Digest{}) {
				n.Data++
			}
			if ip.how != asked {
				n.Kept++
			}
		case ip.looked:
			if _, _, ok := p.prior.Object(addr.Object{Instance: ip.d.Addr()}); ok {
				count(ip.how)
			}
		}
	}
	for _, op := range p.found.orphans {
		switch {
		case op.change == nil || op.addr.Resource.Mode != addr.Managed:
		case p.in.Reads.Minimal:
			count(spared)
		default:
			count(op.how)
		}
	}
	return n
}

// readings are what providers said of objects, or what recent readings say.
func (p *planner) readings() []plan.Reading {
	if !p.in.Reads.Note || p.in.SkipRefresh {
		return nil
	}
	var out []plan.Reading
	note := func(a addr.Instance, refreshed *state.Object, touched bool) {
		o := addr.Object{Instance: a}
		stored, pc, ok := p.prior.Object(o)
		if !ok || pc.Provider.IsBuiltIn() { // they cost nothing
			return
		}
		r := plan.Reading{Object: o, Stored: plan.DigestOf(stored)}
		if touched {
			r.Found, r.Gone = refreshed, refreshed == nil
		}
		out = append(out, r)
	}
	for _, ip := range p.found.plans {
		switch {
		case ip.how != asked:
		case ip.d.Addr().Resource.Mode == addr.Managed && ip.looked:
			note(ip.d.Addr(), ip.refreshed, ip.touched)
		case ip.d.Addr().Resource.Mode == addr.Data && ip.args != (plan.Digest{}) && ip.refreshed != nil && !ip.provider.Provider.IsBuiltIn():
			out = append(out, plan.Reading{Object: addr.Object{Instance: ip.d.Addr()}, Stored: plan.DigestOf(ip.refreshed), Found: ip.refreshed, Args: ip.args})
		}
	}
	for _, op := range p.found.orphans {
		if op.how == asked && !op.failed && op.addr.Resource.Mode == addr.Managed && p.readsOrphan(op.addr) {
			note(op.addr, op.refreshed, op.touched)
		}
	}
	slices.SortFunc(out, func(a, b plan.Reading) int {
		if c := a.Object.Instance.Compare(b.Object.Instance); c != 0 {
			return c
		}
		return strings.Compare(string(a.Object.Deposed), string(b.Object.Deposed))
	})
	return out
}
