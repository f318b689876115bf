package planner

import (
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// readsLess reports whether an option allows skipping reads.
func (in *Input) readsLess() bool {
	return in.MinimalRefresh || in.MinimalData || len(in.Readings.Recent) > 0
}

// reading is the source of the current data of an object.
type reading uint8

const (
	asked  reading = iota // the provider was called, or need not be
	spared                // from state, because the plan does not change the object
	recent                // from a recent reading
	ending                // not read, because the object is not wanted and such objects need not be read
)

// upgraded reports whether an object was stored with another version of its schema.
func upgraded(o *state.Object, s *schema.Resource) bool {
	return o.SchemaVersion != s.Version || o.Identity != nil && s.Identity != nil && o.IdentityVersion != s.IdentityVersion
}

// spares reports whether an object is planned from state before it is read.
func (m *managedPlan) spares(old resourceclient.Object) bool {
	p := m.p
	return p.in.MinimalRefresh && p.in.Mode == plan.Normal && !old.Moved && !upgraded(old.Stored, m.sub.Schema) && !old.Stored.Tainted && p.replace[m.sub.Addr] == ""
}

// readsOrphan reports whether an object that is not in the configuration is read before its
// delete is planned.
func (p *planner) readsOrphan(a addr.Instance) bool {
	return p.refreshes(a) && !p.in.MinimalRefresh
}

// recent returns the object of a recent reading, if there is one.
func (p *planner) recent(sub *resourceclient.Subject, old resourceclient.Object, with state.Digest) (now resourceclient.Object, ok bool, ds diag.List) {
	r, ok := p.in.Readings.Recent[addr.Object{Instance: sub.Addr}]
	if !ok || with == (state.Digest{}) || r.With != with || p.in.Mode == plan.RefreshOnly || old.Moved || upgraded(old.Stored, sub.Schema) || r.Stored != state.DigestOf(old.Stored) {
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

// keepsData returns the last result of a data source if reading it again would give the same:
// the arguments and provider configuration are equal, and the objects that it depends on have
// not changed.
func (p *planner) keepsData(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig, config cty.Value, sensitive []cty.Path, with dataWith) (*state.Object, cty.Value, bool) {
	s, ds := d.Resource.Schema(t)
	if ds.HasErrors() || p.in.Mode != plan.Normal || d.Resource.Config().Check != "" {
		return nil, cty.NilVal, false
	}
	a := addr.Object{Instance: d.Addr()}
	stored, of, _ := p.prior.Object(a)
	r, known := p.in.Readings.Recent[a]
	if !known && p.in.MinimalData {
		r, known = p.in.Readings.Data[a]
	}
	var obj *state.Object
	switch {
	case known && (with.digest == state.Digest{} || r.With != with.digest):
	case known && r.Found != nil:
		obj = r.Found
	case stored == nil || of.Provider != d.Resource.Provider() || stored.SchemaVersion != s.Version:
	case known && r.Stored == state.DigestOf(stored), !known && p.in.MinimalData && with.alone && p.takesNothing(pc):
		obj = stored
	}
	if obj == nil {
		return nil, cty.NilVal, false
	}
	v, ds := p.client.Decode(d.Addr(), obj, s, d.Resource.Provider())
	if ds.HasErrors() || !known && !sameArguments(s.Block, v, config) {
		return nil, cty.NilVal, false
	}
	kept := *obj
	kept.Sensitive = resourceclient.Present(v, sensitive) // variables may have become sensitive since then
	return &kept, resourceclient.WithSensitive(v, kept.Sensitive, s), true
}

// takesNothing reports whether a provider has no configuration, so that its data sources depend
// on their arguments only.
func (p *planner) takesNothing(pc *eval.ProviderConfig) bool {
	ps, ds := p.client.Schema(pc.Addr.Provider)
	return !ds.HasErrors() && len(ps.Config.Attributes)+len(ps.Config.Blocks) == 0
}

// dataWith is a digest of the inputs of a data source.
type dataWith struct {
	digest state.Digest // digest of arguments, provider configuration and dependencies; zero if unknown
	alone  bool         // the data source depends on no object
}

// readsWith returns the inputs of a data source. The dependencies are the reads of the task.
func (p *planner) readsWith(t *demand.Task, d *eval.Desired, pc *eval.ProviderConfig, config cty.Value) dataWith {
	objects := map[addr.Instance]state.Digest{}
	managed := func(d *eval.Desired) {
		a := d.Addr()
		if _, met := objects[a]; met || a.Resource.Mode != addr.Managed {
			return
		}
		objects[a] = state.Digest{}
		if ip := p.found.instance(d); ip != nil {
			objects[a] = p.found.digest(ip.refreshed)
		}
	}
	whole := func(n *demand.Node) bool {
		r, ok := n.What.(*eval.Resource)
		if !ok || r.Config().Addr.Mode != addr.Managed {
			return ok
		}
		if in, ok := r.Instances(t); ok {
			for _, d := range in.All {
				managed(d)
			}
		}
		return true
	}
	for _, read := range append(demand.ReadsOf(t), d.Resource.CountNode().Reads()...) {
		whole(read.Node)
	}
	if d.Resource.HasDependsOn() {
		var stack []*demand.Node
		for _, read := range d.Resource.DependsOn(t).Reads() {
			stack = append(stack, read.Node)
		}
		for seen := map[*demand.Node]bool{}; len(stack) > 0; {
			n := stack[len(stack)-1]
			if stack = stack[:len(stack)-1]; seen[n] {
				continue
			}
			seen[n] = true
			if d, ok := n.What.(*eval.Desired); ok && n == d.Node() {
				managed(d)
			} else {
				whole(n)
			}
			for _, r := range n.Reads() {
				stack = append(stack, r.Node)
			}
		}
	}
	with := p.client.Digest(t, pc)
	if digest := state.DigestArgs(config); digest != (state.Digest{}) {
		with = with.With(digest[:])
	}
	for _, a := range slices.SortedFunc(maps.Keys(objects), addr.Instance.Compare) {
		o := objects[a]
		with = with.With(append([]byte(a.String()+"\n"), o[:]...))
	}
	return dataWith{with, len(objects) == 0}
}

// sameArguments reports whether an object was certainly read with a configuration. For an
// optional argument that the provider may compute, it is not known whether the argument was
// omitted then.
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

// reads counts how the objects in state became known.
func (p *planner) reads() plan.Reads {
	var n plan.Reads
	if !p.in.readsLess() {
		return n
	}
	count := func(how reading) {
		n.Objects++
		switch how {
		case spared:
			n.Spared++
		case recent:
			n.Recent++
		case ending:
			n.Ending++
		}
	}
	end := func(how reading) reading { // for objects that the plan removes
		if p.in.MinimalRefresh {
			return ending
		}
		return how
	}
	for _, ip := range p.found.plans {
		for range ip.deposed {
			count(end(asked))
		}
		switch {
		case ip.d.Addr().Resource.Mode == addr.Data:
			if ip.with != (state.Digest{}) {
				n.Data++
			}
			if ip.how != asked {
				n.Kept++
			}
		case !ip.looked:
		case p.in.Mode == plan.Destroy && ip.change != nil:
			count(end(ip.how))
		default:
			if _, _, ok := p.prior.Object(addr.Object{Instance: ip.d.Addr()}); ok {
				count(ip.how)
			}
		}
	}
	for _, op := range p.found.orphans {
		for range op.deposed {
			count(end(asked))
		}
		if op.change != nil && op.addr.Resource.Mode == addr.Managed {
			count(end(op.how))
		}
	}
	return n
}

// readings returns the new and reused readings of this plan.
func (p *planner) readings() []plan.Reading {
	if !p.in.Readings.Note || p.in.SkipRefresh {
		return nil
	}
	var out []plan.Reading
	note := func(a addr.Instance, refreshed *state.Object, touched bool, with state.Digest) {
		o := addr.Object{Instance: a}
		stored, pc, ok := p.prior.Object(o)
		if !ok || pc.Provider.IsBuiltIn() { // reading them costs nothing
			return
		}
		r := plan.Reading{Object: o, Stored: state.DigestOf(stored), With: with}
		if touched {
			r.Found, r.Gone = refreshed, refreshed == nil
		}
		out = append(out, r)
	}
	for _, ip := range p.found.plans {
		switch {
		case ip.how != asked:
		case ip.d.Addr().Resource.Mode == addr.Managed && ip.looked:
			note(ip.d.Addr(), ip.refreshed, ip.touched, ip.with)
		case ip.d.Addr().Resource.Mode == addr.Data && ip.with != (state.Digest{}) && ip.refreshed != nil && !ip.provider.Provider.IsBuiltIn():
			out = append(out, plan.Reading{Object: addr.Object{Instance: ip.d.Addr()}, Stored: state.DigestOf(ip.refreshed), Found: ip.refreshed, With: ip.with})
		}
	}
	for _, op := range p.found.orphans {
		if op.how == asked && !op.failed && op.addr.Resource.Mode == addr.Managed && p.readsOrphan(op.addr) {
			note(op.addr, op.refreshed, op.touched, op.with)
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
