package estate

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/unit"
)

// An Entry is a unit or a stack in a listing.
type Entry struct {
	Name string
	Unit *Unit // nil for a stack
}

// Type is unit or stack.
func (x Entry) Type() string {
	if x.Unit == nil {
		return "stack"
	}
	return "unit"
}

// Entries lists the units and stacks by name, or in waves: those that need none of
// the others, those that need these alone, and so on, the other way round if
// reverse is set.
func (e *Estate) Entries(waves, reverse bool) []Entry {
	level := map[*Unit]int{}
	if waves {
		before := func(u *Unit) []*Unit { return u.Needs }
		if reverse {
			before = func(u *Unit) []*Unit { return u.NeededBy }
		}
		for _, u := range e.Order(reverse) {
			for _, n := range before(u) {
				level[u] = max(level[u], level[n]+1)
			}
		}
	}
	out := make([]Entry, 0, len(e.Units)+len(e.Stacks))
	for _, u := range e.Units {
		out = append(out, Entry{u.Name, u})
	}
	for _, name := range e.Stacks {
		out = append(out, Entry{Name: name})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(level[a.Unit], level[b.Unit]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type(), b.Type()))
	})
	return out
}

// NeedNames are the names of what a unit's dependencies lead to, in their order.
func (e *Estate) NeedNames(u *Unit) []string {
	var out []string
	for _, edge := range u.edges {
		if name := e.name(edge.ID); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ExcludeBlock is the exclude block of a unit, nil if it has none or it cannot be
// computed.
func (e *Estate) ExcludeBlock(ctx context.Context, u *Unit) *unit.Exclude {
	x, ds := u.Exclude(e.task(ctx))
	if ds.HasErrors() {
		return nil
	}
	return x
}

// Included tells the files that a unit's own file includes or imports, by label,
// as seen from the estate's root.
func (e *Estate) Included(ctx context.Context, u *Unit) map[string]string {
	list, _ := u.Imports(e.task(ctx))
	out := map[string]string{}
	for _, i := range list {
		if rel, err := filepath.Rel(e.o.Root, i.Path); err == nil {
			out[i.Label] = filepath.ToSlash(rel)
		}
	}
	return out
}
