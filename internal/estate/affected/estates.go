package affected

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/outline"
)

// A Revision is one revision of an estate.
type Revision struct {
	Estate *estate.Estate
	estate.OutlineOptions
}

// Estates returns the units that differ between two revisions of an estate, sorted by name.
func Estates(ctx context.Context, base, head Revision) ([]*Unit, diag.List) {
	pairs := pair(base, head)
	before, after := base.Estate.Outlines(base.OutlineOptions), head.Estate.Outlines(head.OutlineOptions)
	compare := func(p *unitPair) ([]*Object, diag.List) {
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
		side := &Side{Outlined: old.Outlined, Show: old.Show}
		if p.base.Name != p.head.Name {
			side.Moved = func(file string) string {
				if rest, ok := strings.CutPrefix(file, base.Show(p.base.Dir)+"/"); ok {
					return head.Show(p.head.Dir) + "/" + rest
				}
				return file
			}
		}
		return Compare(side, &Side{Outlined: now.Outlined, Show: now.Show}), nil
	}
	type result struct {
		unit *Unit
		ds   diag.List
	}
	results := parallel.Map(len(pairs), 0, func(i int) result {
		p := pairs[i]
		switch {
		case p.base == nil:
			return result{unit: &Unit{Name: p.head.Name, Action: Added, id: p.head.ID}}
		case p.head == nil:
			return result{unit: &Unit{Name: p.base.Name, Action: Removed}}
		}
		u := &Unit{Name: p.head.Name, id: p.head.ID}
		var ds diag.List
		u.Objects, ds = compare(p)
		switch {
		case ds.HasErrors():
			return result{ds: ds}
		case p.base.Name != p.head.Name:
			u.Action, u.Was = Moved, p.base.Name
		case len(u.Objects) == 0:
			return result{ds: ds}
		default:
			u.Action = Action(u.Objects)
		}
		return result{u, ds}
	})
	var out []*Unit
	var ds diag.List
	for _, r := range results {
		ds = append(ds, r.ds...)
		if r.unit != nil {
			out = append(out, r.unit)
		}
	}
	follow(out)
	return out, ds.Once()
}

// A unitPair is a unit in both revisions. One of them is nil if the unit was added or removed.
type unitPair struct{ base, head *discovery.Unit }

// pair returns the units of both revisions, sorted by name. A removed unit and an added one whose
// files have the same text are one unit that was moved.
func pair(base, head Revision) []*unitPair {
	all := map[string]*unitPair{}
	for _, u := range base.Estate.Found.Units {
		all[u.Name] = &unitPair{base: u}
	}
	for _, u := range head.Estate.Found.Units {
		if p := all[u.Name]; p != nil {
			p.head = u
		} else {
			all[u.Name] = &unitPair{head: u}
		}
	}
	removed := map[string][]string{} // names by the text of the unit file
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		if u := all[name].base; u != nil && all[name].head == nil {
			if text, ok := base.Estate.Text(u); ok {
				removed[text] = append(removed[text], name)
			}
		}
	}
	for _, name := range names {
		u := all[name].head
		if u == nil || all[name].base != nil || len(removed) == 0 {
			continue
		}
		text, ok := head.Estate.Text(u)
		if !ok || len(removed[text]) == 0 {
			continue
		}
		best := slices.MaxFunc(removed[text], func(a, b string) int {
			return cmp.Or(cmp.Compare(commonEnd(a, name), commonEnd(b, name)), cmp.Compare(b, a))
		})
		all[name].base = all[best].base
		delete(all, best)
		removed[text] = slices.DeleteFunc(removed[text], func(n string) bool { return n == best })
	}
	out := make([]*unitPair, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// commonEnd returns the number of elements that two paths have in common at their ends.
func commonEnd(a, b string) (n int) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

// follow sets the causes of differences that come from an output of another unit: the cause of the
// difference in that output.
func follow(all []*Unit) {
	outputs := map[explanation.UnitOutput]*Change{}
	var open []*Change
	for _, u := range all {
		for _, o := range u.Objects {
			name, isOutput := strings.CutPrefix(o.Address, "output.")
			for _, c := range o.Changes {
				if len(c.reads) > 0 {
					open = append(open, c)
				}
				if at := (explanation.UnitOutput{Unit: u.id, Name: name}); isOutput && o.Kind == outline.Output && outputs[at] == nil {
					outputs[at] = c
				}
			}
		}
	}
	for more := true; more; {
		more = false
		open = slices.DeleteFunc(open, func(c *Change) bool {
			for _, r := range c.reads {
				if from := outputs[r]; from != nil && from != c && len(from.reads) == 0 && from.cause != nil {
					c.cause, c.reads, more = from.cause, nil, true
					return true
				}
			}
			return false
		})
	}
}
