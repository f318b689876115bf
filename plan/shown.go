package plan

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
)

// Shown puts changes that are sorted by address into the order in which they are
// shown, to people and to programs, as OpenTofu does: modules that are nested
// deeper behind the others, and in each the data sources first. cs is not changed.
func Shown(cs []*Change) []*Change {
	depths := map[addr.ModuleInstance]int{}
	other := false
	for _, c := range cs {
		m := c.Addr.Module
		if _, seen := depths[m]; !seen {
			depths[m] = len(m.Steps())
		}
		other = other || depths[m] > 1 || c.Addr.Resource.Mode == addr.Data
	}
	if !other {
		return cs
	}
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b *Change) int {
		x, y := a.Addr, b.Addr
		if x.Module != y.Module {
			return cmp.Or(cmp.Compare(depths[x.Module], depths[y.Module]), x.Module.Compare(y.Module))
		}
		return int(y.Resource.Mode) - int(x.Resource.Mode)
	})
	return cs
}
