package affected

import (
	"context"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
)

// A Revision is one revision of an estate.
type Revision struct {
	Estate *estate.Estate
	// Rename converts strings in values before they are compared; see engine.OutlineOptions.
	Rename func(string) string
	// Show returns the name of a file as it is shown.
	Show func(file string) string
}

// Estates returns the units that differ between two revisions of an estate, sorted by name.
func Estates(ctx context.Context, base, head Revision) ([]*Unit, diag.List) {
	type pair struct{ base, head *discovery.Unit }
	all := map[string]pair{}
	for _, u := range base.Estate.Found.Units {
		all[u.Name] = pair{base: u}
	}
	for _, u := range head.Estate.Found.Units {
		all[u.Name] = pair{all[u.Name].base, u}
	}
	before, after := base.Estate.Outlines(base.Rename, base.Show), head.Estate.Outlines(head.Rename, head.Show)
	compare := func(p pair) ([]*Object, diag.List) {
		old, ds := before.Of(ctx, p.base)
		now, more := after.Of(ctx, p.head)
		defer old.Release()
		defer now.Release()
		if ds = append(ds, more...); !ds.HasErrors() {
			ds = old.Move(now)
		}
		if ds.HasErrors() {
			return nil, ds
		}
		return Compare(&Side{Outlined: old.Outlined, Show: old.Show}, &Side{Outlined: now.Outlined, Show: now.Show}), nil
	}
	type result struct {
		unit *Unit
		ds   diag.List
	}
	names := slices.Sorted(maps.Keys(all))
	results := parallel.Map(len(names), 0, func(i int) result {
		p, u := all[names[i]], &Unit{Name: names[i]}
		switch {
		case p.base == nil:
			u.Action = Added
		case p.head == nil:
			u.Action = Removed
		default:
			var ds diag.List
			if u.Objects, ds = compare(p); len(u.Objects) == 0 {
				return result{ds: ds}
			}
			u.Action = Action(u.Objects)
		}
		return result{unit: u}
	})
	var out []*Unit
	var ds diag.List
	for _, r := range results {
		ds = append(ds, r.ds...)
		if r.unit != nil {
			out = append(out, r.unit)
		}
	}
	return out, ds.Once()
}
