// Package state is the model of a state: resources with their instances and objects, outputs,
// and results of checks.
//
// Main types: State, an immutable snapshot; Draft, which builds a new snapshot from an old one;
// Object, the record of one real object. The one rule: a State and everything in it is
// immutable once it is returned, so that any number of goroutines may read it. To change it,
// use Edit.
package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/terrace-iac/terrace/addr"
	"github.com/zclconf/go-cty/cty"
)

// A State is an immutable snapshot. A State without a lineage was never written.
type State struct {
	Lineage          string // UUID assigned at the first write; "" before
	Serial           uint64 // increases by one with each write of changed content
	TerraformVersion string // language version of the program that wrote the state
	Outputs          map[string]*Output
	Resources        map[addr.AbsResource]*Resource
	Checks           []CheckResult // sorted; nil is written as null

	sorted atomic.Pointer[[]*Resource] // cache of Sorted
}

// An Output is the value of an output of the root module.
type Output struct {
	Value      cty.Value // wholly known and without marks
	Sensitive  bool
	Deprecated string // deprecation message; "" if the output is not deprecated
}

// A Resource contains the instances of one resource in one module instance.
type Resource struct {
	Addr      addr.AbsResource
	Provider  addr.ProviderConfig // Key is zero: keys belong to instances
	Instances map[addr.Key]*Instance
}

// An Instance contains the objects of one resource instance.
type Instance struct {
	ProviderKey addr.Key // key of a provider configuration with for_each; otherwise zero
	Current     *Object  // nil if only deposed objects remain
	Deposed     map[addr.DeposedKey]*Object
}

// Config returns the provider configuration of one instance of the resource.
func (r *Resource) Config(i *Instance) addr.ProviderConfig {
	p := r.Provider
	p.Key = i.ProviderKey
	return p
}

// Keys returns the keys of the instances: no key first, then sorted numbers, then sorted
// strings.
func (r *Resource) Keys() []addr.Key {
	keys := make([]addr.Key, 0, len(r.Instances))
	for k := range r.Instances {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, addr.Key.Compare)
	return keys
}

// DeposedKeys returns the keys of the deposed objects in order.
func (i *Instance) DeposedKeys() []addr.DeposedKey {
	if len(i.Deposed) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(i.Deposed))
}

// LanguageVersion is the OpenTofu language version that this program implements. Every state
// that it writes contains it.
const LanguageVersion = "1.12.6"

// New returns a State without content and lineage.
func New() *State { return &State{} }

// WithMeta returns the same content with another lineage, serial and version. It shares all
// content with s.
func (s *State) WithMeta(lineage string, serial uint64, version string) *State {
	out := &State{Lineage: lineage, Serial: serial, TerraformVersion: version,
		Outputs: s.Outputs, Resources: s.Resources, Checks: s.Checks}
	out.sorted.Store(s.sorted.Load())
	return out
}

// Empty reports whether there are neither resources nor outputs. A nil State is empty. Check
// results are ignored, because they can be computed again.
func (s *State) Empty() bool {
	return s == nil || len(s.Resources) == 0 && len(s.Outputs) == 0
}

// Resource returns a resource, or nil if it does not exist. A nil State has no resources.
func (s *State) Resource(a addr.AbsResource) *Resource {
	if s == nil {
		return nil
	}
	return s.Resources[a]
}

// Instance returns a resource instance, or nil if it does not exist.
func (s *State) Instance(a addr.Instance) *Instance {
	if r := s.Resource(a.Abs()); r != nil {
		return r.Instances[a.Key]
	}
	return nil
}

// Object returns a current or deposed object and its provider configuration, including the key.
func (s *State) Object(a addr.Object) (*Object, addr.ProviderConfig, bool) {
	r := s.Resource(a.Instance.Abs())
	if r == nil {
		return nil, addr.ProviderConfig{}, false
	}
	i := r.Instances[a.Instance.Key]
	if i == nil {
		return nil, addr.ProviderConfig{}, false
	}
	o := i.Current
	if a.Deposed != "" {
		o = i.Deposed[a.Deposed]
	}
	if o == nil {
		return nil, addr.ProviderConfig{}, false
	}
	return o, r.Config(i), true
}

// Sorted returns the resources sorted by module, mode, type and name. The slice is shared and
// must not be modified.
func (s *State) Sorted() []*Resource {
	if s == nil {
		return nil
	}
	if p := s.sorted.Load(); p != nil {
		return *p
	}
	out := sortResources(s.Resources)
	s.sorted.Store(&out)
	return out
}

// Instances yields every instance, sorted by resource and key.
func (s *State) Instances() iter.Seq2[addr.Instance, *Instance] {
	return func(yield func(addr.Instance, *Instance) bool) {
		for _, r := range s.Sorted() {
			for _, k := range r.Keys() {
				if !yield(r.Addr.Instance(k), r.Instances[k]) {
					return
				}
			}
		}
	}
}

// Objects yields every object with its provider configuration. Within an instance the current
// object comes first, then the deposed ones sorted by key.
func (s *State) Objects() iter.Seq2[addr.Object, *Object] {
	return func(yield func(addr.Object, *Object) bool) {
		for a, i := range s.Instances() {
			if i.Current != nil && !yield(addr.Object{Instance: a}, i.Current) {
				return
			}
			for _, k := range i.DeposedKeys() {
				if !yield(addr.Object{Instance: a, Deposed: k}, i.Deposed[k]) {
					return
				}
			}
		}
	}
}

// sortResources sorts by module, mode, type and name. It parses every module path once, since
// comparing two paths would parse both each time.
func sortResources(rs map[addr.AbsResource]*Resource) []*Resource {
	type module struct {
		steps []addr.Step
		rs    []*Resource
	}
	byPath := make(map[addr.ModuleInstance]*module)
	for a, r := range rs {
		m := byPath[a.Module]
		if m == nil {
			m = &module{steps: a.Module.Steps()}
			byPath[a.Module] = m
		}
		m.rs = append(m.rs, r)
	}
	modules := slices.SortedFunc(maps.Values(byPath), func(a, b *module) int {
		return slices.CompareFunc(a.steps, b.steps, compareSteps)
	})
	out := make([]*Resource, 0, len(rs))
	for _, m := range modules {
		slices.SortFunc(m.rs, func(a, b *Resource) int { return a.Addr.Resource.Compare(b.Addr.Resource) })
		out = append(out, m.rs...)
	}
	return out
}

func compareSteps(a, b addr.Step) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), a.Key.Compare(b.Key))
}
