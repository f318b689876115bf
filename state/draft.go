package state

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
)

// A Change sets or removes one object in a state.
type Change struct {
	Object   addr.Object
	Provider addr.ProviderConfig // includes the Key; ignored if New is nil
	New      *Object             // nil removes the object
}

// A Draft builds a new snapshot from an existing one. It shares unchanged parts with the old
// snapshot: the first change copies the map of resources, and the first change in a resource
// copies its map of instances. It is not safe for concurrent use.
type Draft struct {
	s       *State
	own     bool // s was copied by this draft and not returned yet
	ownRes  bool
	ownOuts bool
	owned   map[*Resource]bool
}

// Edit returns a draft with the content, lineage, serial and version of s. A nil State is
// treated as an empty one.
func (s *State) Edit() *Draft {
	if s == nil {
		s = New()
	}
	return &Draft{s: s}
}

// Freeze returns the draft's content as a snapshot. The draft remains usable; later changes do
// not affect the snapshot. Without changes since the last call, Freeze returns the same
// snapshot.
func (d *Draft) Freeze() *State {
	d.own, d.ownRes, d.ownOuts, d.owned = false, false, false, nil
	return d.s
}

// Object returns an object with the draft's changes applied.
func (d *Draft) Object(a addr.Object) (*Object, addr.ProviderConfig, bool) { return d.s.Object(a) }

// state returns the draft's own copy of the State.
func (d *Draft) state() *State {
	if !d.own {
		d.s = &State{Lineage: d.s.Lineage, Serial: d.s.Serial, TerraformVersion: d.s.TerraformVersion,
			Outputs: d.s.Outputs, Resources: d.s.Resources, Checks: d.s.Checks}
		d.own = true
	}
	return d.s
}

// resources returns the draft's own map of resources.
func (d *Draft) resources() map[addr.AbsResource]*Resource {
	s := d.state()
	if !d.ownRes {
		s.Resources = maps.Clone(s.Resources)
		if s.Resources == nil {
			s.Resources = make(map[addr.AbsResource]*Resource)
		}
		d.ownRes = true
	}
	s.sorted.Store(nil)
	return s.Resources
}

// resource returns the draft's own copy of a resource. It creates the resource if there is
// none.
func (d *Draft) resource(a addr.AbsResource) *Resource {
	rs := d.resources()
	r := rs[a]
	if r != nil && d.owned[r] {
		return r
	}
	if r == nil {
		r = &Resource{Addr: a, Instances: make(map[addr.Key]*Instance, 1)}
	} else {
		r = &Resource{Addr: a, Provider: r.Provider, Instances: maps.Clone(r.Instances)}
		if r.Instances == nil {
			r.Instances = make(map[addr.Key]*Instance, 1)
		}
	}
	d.adopt(r)
	return r
}

func (d *Draft) adopt(r *Resource) {
	d.resources()[r.Addr] = r
	if d.owned == nil {
		d.owned = make(map[*Resource]bool)
	}
	d.owned[r] = true
}

// Apply sets or removes an object. It also removes an instance without objects and a resource
// without instances. Setting an object also sets the provider of its resource and the provider
// key of its instance.
func (d *Draft) Apply(c Change) {
	a := c.Object.Instance
	if c.New == nil {
		d.remove(c.Object)
		return
	}
	r := d.resource(a.Abs())
	r.Provider = c.Provider
	r.Provider.Key = addr.Key{}
	next := Instance{ProviderKey: c.Provider.Key}
	if old := r.Instances[a.Key]; old != nil {
		next.Current, next.Deposed = old.Current, old.Deposed
	}
	if c.Object.Deposed == "" {
		next.Current = c.New
	} else {
		next.Deposed = maps.Clone(next.Deposed)
		if next.Deposed == nil {
			next.Deposed = make(map[addr.DeposedKey]*Object, 1)
		}
		next.Deposed[c.Object.Deposed] = c.New
	}
	r.Instances[a.Key] = &next
}

func (d *Draft) remove(o addr.Object) {
	if _, _, ok := d.s.Object(o); !ok {
		return
	}
	r := d.resource(o.Instance.Abs())
	old := r.Instances[o.Instance.Key]
	next := *old
	if o.Deposed == "" {
		next.Current = nil
	} else {
		next.Deposed = maps.Clone(next.Deposed)
		delete(next.Deposed, o.Deposed)
	}
	if next.Current != nil || len(next.Deposed) > 0 {
		r.Instances[o.Instance.Key] = &next
		return
	}
	d.removeInstance(r, o.Instance.Key)
}

// removeInstance removes an instance of a resource that the draft owns. It removes the resource
// with its last instance.
func (d *Draft) removeInstance(r *Resource, k addr.Key) {
	delete(r.Instances, k)
	if len(r.Instances) == 0 {
		delete(d.resources(), r.Addr)
		delete(d.owned, r)
	}
}

// RemoveResource removes a resource with all its instances.
func (d *Draft) RemoveResource(a addr.AbsResource) {
	if d.s.Resource(a) != nil {
		delete(d.resources(), a)
	}
}

// SetProvider sets the provider configuration of a resource. The provider keys of instances are
// unchanged. It does nothing if the resource does not exist.
func (d *Draft) SetProvider(a addr.AbsResource, p addr.ProviderConfig) {
	p.Key = addr.Key{}
	if r := d.s.Resource(a); r != nil && r.Provider != p {
		d.resource(a).Provider = p
	}
}

// MoveResource moves a resource with all its instances to another address. It returns false and
// does nothing if from does not exist or to exists.
func (d *Draft) MoveResource(from, to addr.AbsResource) bool {
	r := d.s.Resource(from)
	if r == nil || from == to || d.s.Resource(to) != nil {
		return false
	}
	rs := d.resources()
	delete(rs, from)
	delete(d.owned, r)
	d.adopt(&Resource{Addr: to, Provider: r.Provider, Instances: maps.Clone(r.Instances)})
	return true
}

// MoveInstance moves an instance with all its objects to another address. It returns false and
// does nothing if from does not exist or to exists. A resource created for the target gets the
// provider of the source.
func (d *Draft) MoveInstance(from, to addr.Instance) bool {
	i := d.s.Instance(from)
	if i == nil || from == to || d.s.Instance(to) != nil {
		return false
	}
	old := d.resource(from.Abs())
	_, existed := d.s.Resources[to.Abs()]
	next := d.resource(to.Abs())
	if !existed {
		next.Provider = old.Provider
	}
	next.Instances[to.Key] = i
	d.removeInstance(old, from.Key)
	return true
}

// SetOutput sets an output of the root module; nil removes it.
func (d *Draft) SetOutput(name string, o *Output) {
	old, ok := d.s.Outputs[name]
	if o == nil && !ok || o != nil && ok && old.Equal(o) {
		return
	}
	s := d.state()
	if !d.ownOuts {
		s.Outputs = maps.Clone(s.Outputs)
		if s.Outputs == nil {
			s.Outputs = make(map[string]*Output)
		}
		d.ownOuts = true
	}
	if o == nil {
		delete(s.Outputs, name)
		return
	}
	s.Outputs[name] = o
}

// SetChecks replaces all check results. The draft takes ownership of cs and sorts it.
func (d *Draft) SetChecks(cs []CheckResult) {
	if len(cs) == 0 {
		cs = nil
	}
	SortChecks(cs)
	if !equalChecks(d.s.Checks, cs) {
		d.state().Checks = cs
	}
}

// Diff returns the changes that turn the objects of old into those of new, sorted by address.
// It ignores outputs, checks, and resources and instances without objects. nil means an empty
// State.
func Diff(old, new *State) []Change {
	differ := make(map[addr.AbsResource]*Resource)
	if old != nil {
		for a, r := range old.Resources {
			if new.Resource(a) != r {
				differ[a] = r
			}
		}
	}
	if new != nil {
		for a, r := range new.Resources {
			if old.Resource(a) == nil {
				differ[a] = r
			}
		}
	}
	var out []Change
	for _, r := range sortResources(differ) {
		out = diffResource(out, r.Addr, old.Resource(r.Addr), new.Resource(r.Addr))
	}
	return out
}

func diffResource(out []Change, a addr.AbsResource, old, new *Resource) []Change {
	if old == nil {
		old = &Resource{}
	}
	if new == nil {
		new = &Resource{}
	}
	moved := old.Provider != new.Provider
	var keys []addr.Key
	for k, i := range old.Instances {
		if i != new.Instances[k] || moved {
			keys = append(keys, k)
		}
	}
	for k := range new.Instances {
		if old.Instances[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, addr.Key.Compare)
	for _, k := range keys {
		out = diffInstance(out, a.Instance(k), old, new)
	}
	return out
}

func diffInstance(out []Change, a addr.Instance, oldRes, newRes *Resource) []Change {
	old, new := oldRes.Instances[a.Key], newRes.Instances[a.Key]
	if old == nil {
		old = &Instance{}
	}
	if new == nil {
		new = &Instance{}
	}
	from, to := oldRes.Config(old), newRes.Config(new)
	add := func(k addr.DeposedKey, was, is *Object) {
		switch {
		case is != nil && (from != to || !was.Equal(is)):
			out = append(out, Change{Object: addr.Object{Instance: a, Deposed: k}, Provider: to, New: is})
		case is == nil && was != nil:
			out = append(out, Change{Object: addr.Object{Instance: a, Deposed: k}})
		}
	}
	add("", old.Current, new.Current)
	keys := append(old.DeposedKeys(), new.DeposedKeys()...)
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		add(k, old.Deposed[k], new.Deposed[k])
	}
	return out
}
