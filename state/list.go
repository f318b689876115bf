package state

import (
	"slices"

	"github.com/terrace-iac/terrace/addr"
)

// A Listed is an object with its address and provider.
type Listed struct {
	Addr     addr.Object
	Object   *Object
	Provider addr.ProviderConfig
}

// List returns the objects in the order in which states are shown: sorted by module; within a
// module, data sources first; within an instance, the current object before the deposed ones.
func (s *State) List() []Listed {
	n := 0
	for _, r := range s.Resources {
		n += len(r.Instances)
	}
	out := make([]Listed, 0, n)
	for _, r := range s.Sorted() {
		for _, k := range r.Keys() {
			i := r.Instances[k]
			a := addr.Object{Instance: r.Addr.Instance(k)}
			if i.Current != nil {
				out = append(out, Listed{a, i.Current, r.Config(i)})
			}
			for _, d := range i.DeposedKeys() {
				a.Deposed = d
				out = append(out, Listed{a, i.Deposed[d], r.Config(i)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Listed) int {
		x, y := a.Addr.Instance, b.Addr.Instance
		if x.Module != y.Module {
			return x.Module.Compare(y.Module)
		}
		return int(y.Resource.Mode) - int(x.Resource.Mode)
	})
	return out
}
