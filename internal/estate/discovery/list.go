package discovery

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/unit"
)

// An Entry is a unit or a stack in a listing.
type Entry struct {
	Name string
	Unit *Unit // nil for a stack
}

// Type returns "unit" or "stack".
func (x Entry) Type() string {
	if x.Unit == nil {
		return "stack"
	}
	return "unit"
}

// Entries returns the units and stacks sorted by name. With waves, they are sorted by depth in
// the dependency graph: units without dependencies come first, then units that only depend on
// these, and so on. reverse reverses the direction of dependencies.
func (f *Found) Entries(waves, reverse bool) []Entry {
	level, stacks := map[*Unit]int{}, map[string]int{}
	if waves {
		unmade := f.unmadeStacks()
		before := needs
		if reverse {
			before = neededBy
		}
		for _, u := range f.Order(reverse) {
			for _, n := range before(u) {
				level[u] = max(level[u], level[n]+1)
			}
			for _, name := range unmade[u] {
				if reverse {
					stacks[name] = max(stacks[name], level[u]+1)
				} else {
					level[u] = max(level[u], 1)
				}
			}
		}
	}
	out := make([]Entry, 0, len(f.Units)+len(f.Stacks))
	for _, u := range f.Units {
		out = append(out, Entry{u.Name, u})
	}
	for _, name := range f.Stacks {
		out = append(out, Entry{Name: name})
	}
	of := func(x Entry) int {
		if x.Unit == nil {
			return stacks[x.Name]
		}
		return level[x.Unit]
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type(), b.Type()))
	})
	return out
}

// unmadeStacks returns the stacks that units depend on and whose units are not generated yet.
func (f *Found) unmadeStacks() map[*Unit][]string {
	out := map[*Unit][]string{}
	for _, u := range f.Units {
		for _, edge := range u.edges {
			if name := f.Name(edge.ID); len(u.ofStack[edge.ID]) == 0 && slices.Contains(f.Stacks, name) {
				out[u] = append(out[u], name)
			}
		}
	}
	return out
}

// NeedNames returns the names of a unit's dependencies in the order of their blocks. A dependency
// on a stack is replaced by the units of the stack.
func (f *Found) NeedNames(u *Unit) []string {
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, edge := range u.edges {
		dirs := u.stackDirs[edge.ID]
		for _, dir := range dirs {
			if dir != u.ID {
				add(f.Name(dir))
			}
		}
		if to := f.byID[edge.ID]; to != nil { // the path of the edge may be a symbolic link
			add(to.Name)
		} else if len(dirs) == 0 {
			add(f.Name(edge.ID))
		}
	}
	return out
}

// ExcludeBlock returns the exclude block of a unit. It returns nil if the unit has none or if the
// block has errors.
func ExcludeBlock(t *demand.Task, u *Unit) *unit.Exclude {
	var x *unit.Exclude
	var ds diag.List
	if u.judged != nil {
		x, ds = u.judged.exclude, u.judged.ds
	} else {
		x, ds = u.Exclude(t)
	}
	if ds.HasErrors() {
		return nil
	}
	return x
}

// Included returns the files that a unit's own file includes or imports, by label. Paths are
// relative to the estate's root.
func (f *Found) Included(t *demand.Task, u *Unit) map[string]string {
	var list []unit.Imported
	if u.early != nil {
		list = u.early.imports
	} else {
		list, _ = u.Imports(t)
	}
	out := map[string]string{}
	for _, i := range list {
		if rel, err := filepath.Rel(f.s.Root, i.Path); err == nil {
			out[i.Label] = filepath.ToSlash(rel)
		}
	}
	return out
}

// Tasks returns the units as tasks of a scheduler, with the same indexes. Each task depends on
// those of the unit's dependencies or, with reverse, of its dependents.
func Tasks(units []*Unit, reverse bool) []schedule.Task {
	index := make(map[*Unit]int, len(units))
	for i, u := range units {
		index[u] = i
	}
	before := needs
	if reverse {
		before = neededBy
	}
	out := make([]schedule.Task, len(units))
	for i, u := range units {
		out[i] = schedule.Task{Name: u.Name, Skip: u.Excluded != ""}
		for _, n := range before(u) {
			if reverse || u.Removed == n.Removed && !u.Removed { // orderRemoved handles the others
				out[i].Needs = append(out[i].Needs, index[n])
			}
		}
	}
	if !reverse {
		orderRemoved(units, index, out)
	}
	return out
}

// orderRemoved adds the order of removed units, which are destroyed in a run that applies others: a
// removed unit comes before the removed units that it depends on, and after the units that
// depended on it earlier (Former). Without the latter, directly or through removed units, it comes
// before the other units that it depends on, whose changes it might prevent. So there is no cycle.
func orderRemoved(units []*Unit, index map[*Unit]int, out []schedule.Task) {
	late := map[*Unit]bool{} // removed units that come after others
	var postpone func(u *Unit)
	postpone = func(u *Unit) {
		if late[u] || !u.Removed {
			return
		}
		late[u] = true
		for _, n := range u.Needs {
			postpone(n)
		}
	}
	for _, u := range units {
		if len(u.Former) > 0 {
			postpone(u)
		}
	}
	after := func(u, before *Unit) {
		i, known := index[u]
		j, too := index[before]
		if known && too {
			out[i].Needs = append(out[i].Needs, j)
		}
	}
	for _, u := range units {
		if !u.Removed {
			continue
		}
		for _, n := range u.Needs {
			if n.Removed || !late[u] {
				after(n, u)
			}
		}
		for _, n := range u.Former {
			after(u, n)
		}
	}
}

// Order returns the units so that each comes after its dependencies or, with reverse, before
// them. Units of the same depth in the dependency graph are sorted by name.
func (f *Found) Order(reverse bool) []*Unit {
	out := make([]*Unit, 0, len(f.Units))
	for _, i := range schedule.Order(Tasks(f.Units, reverse)) {
		out = append(out, f.Units[i])
	}
	return out
}

// WriteDOT writes the dependency graph in the language of Graphviz. With excluded, units that are
// excluded from the command are red.
func (f *Found) WriteDOT(w io.Writer, excluded bool) error {
	var b strings.Builder
	b.WriteString("digraph {\n")
	for _, x := range f.Entries(false, false) {
		if x.Unit == nil {
			fmt.Fprintf(&b, "\t%q ;\n", x.Name)
			continue
		}
		u, style := x.Unit, ""
		if excluded && u.Excluded != "" {
			style = "[color=red]"
		}
		fmt.Fprintf(&b, "\t%q %s;\n", u.Name, style)
		var needs []string
		for _, n := range u.Needs {
			needs = append(needs, n.Name)
		}
		for _, x := range u.External {
			needs = append(needs, f.Name(x))
		}
		slices.Sort(needs)
		for _, n := range needs {
			fmt.Fprintf(&b, "\t%q -> %q;\n", u.Name, n)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
