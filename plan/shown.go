package plan

import (
	"cmp"
	"slices"

	"github.com/terrace-iac/terrace/addr"
)

// Shown returns changes in the order in which they are shown and written to JSON output. cs
// must be sorted by address and is not modified. As in OpenTofu, deeper modules come last, and
// within a module data sources come first.
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
