package discovery

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/unit"
)

// connect connects units with their dependencies. Rule 16 of the import specification defines
// which blocks are dependencies. A dependency of an unmerged import only counts if an input that
// the module declares uses it. If a filter selects dependencies of units, connect also reads
// units outside of the root.
func (f *finder) connect(ctx context.Context, queries []filter.Query) diag.List {
	above := ctx
	ctx, s := telemetry.Start(ctx, "discovery_phase_relationship")
	s.Count("components_in", len(f.Units))
	ds := f.edges(ctx, f.Units)
	if wanted := reaches(queries); wanted != nil {
		ds = append(ds, f.reachOut(ctx, wanted)...)
	}
	for _, u := range f.Units {
		ds = append(ds, f.link(f.loader.Task(ctx), u)...)
	}
	ended(s, ds)
	_, s = telemetry.Start(above, "discovery_cycle_check")
	cycles := f.cycles()
	ended(s, cycles)
	f.General = append(f.General, cycles...)
	return append(ds, cycles...)
}

// manyUnits is the number of units above which the evaluated parts of each unit are discarded, to
// save memory.
const manyUnits = 500

// manyFiles is the number of units above which the parsed files of a comparison are not kept while other
// units are compared. They are most of the memory of a large estate, and parsing them again costs about a
// tenth of the processor time.
const manyFiles = 4000

// edges evaluates the dependencies of units.
func (f *finder) edges(ctx context.Context, units []*Unit) diag.List {
	all := parallel.Map(len(units), 0, func(i int) diag.List {
		u := units[i]
		if u.unread() || ctx.Err() != nil {
			return nil
		}
		e := u.early
		if e == nil {
			e = f.ask(ctx, u)
			if len(units) > manyUnits {
				v := f.judge(ctx, u)
				u.judged = &v
				u.Forget()
			}
		}
		if u.edges = e.edges; u.Broken != nil {
			return nil // the errors were reported, and others may result from them
		}
		ds := f.WithoutIncomplete(e.wrong)
		u.Invalid = append(u.Invalid, ds.Errors()...)
		return append(ds, e.warnings...)
	})
	if ctx.Err() != nil {
		return interrupted()
	}
	return f.Reported.Join(units, all)
}

// interrupted returns the error of a search that was canceled.
func interrupted() diag.List {
	return diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The search for units was interrupted.")
}

// early contains the data of one unit that discovery and listings need. In estates of many units
// it is computed when the unit is read, and everything else about the unit is discarded.
type early struct {
	edges    []unit.Edge
	wrong    diag.List // errors in the dependencies
	warnings diag.List
	imports  []unit.Imported // only for listings
}

// ask evaluates the dependencies of a unit.
func (f *finder) ask(ctx context.Context, u *Unit) *early {
	t, e := f.loader.Task(ctx), &early{}
	if e.edges, e.wrong = u.Dependencies(t, f.modules.takes(ctx, u)); u.Broken == nil {
		e.warnings = u.Warnings(t)
	}
	return e
}

// askEarly evaluates all data in early for a unit, and discards the rest.
func (f *finder) askEarly(ctx context.Context, u *Unit) {
	e := f.ask(ctx, u)
	v := f.judge(ctx, u)
	u.judged = &v
	if f.s.Lenient {
		e.imports, _ = u.Imports(f.loader.Task(ctx))
	}
	u.early = e
	u.ForgetFile()
}

// reachOut reads the units outside of the root that others depend on, directly or indirectly, if
// wanted returns true for them.
func (f *finder) reachOut(ctx context.Context, wanted func(path string) bool) diag.List {
	var ds diag.List
	for wave := f.Units; len(wave) > 0; {
		var paths []string
		asked := map[string]bool{}
		for _, u := range wave {
			for _, edge := range u.edges {
				if f.byID[edge.ID] == nil && !asked[edge.ID] && wanted(edge.ID) {
					asked[edge.ID] = true
					paths = append(paths, edge.ID)
				}
			}
		}
		slices.Sort(paths)
		had := len(f.Units)
		known := maps.Clone(f.byID)
		f.load(ctx, paths, true)
		if len(f.Units) == had {
			break
		}
		wave = nil
		for _, u := range f.Units {
			if known[u.ID] == nil {
				wave = append(wave, u)
			}
		}
		ds = append(ds, f.edges(ctx, wave)...)
	}
	return ds
}

// link sets the Needs of a unit from its edges, and its External. It returns errors about edges to
// removed units.
func (f *finder) link(t *demand.Task, u *Unit) (ds diag.List) {
	seen := map[*Unit]bool{}
	add := func(to *Unit) {
		if !seen[to] {
			seen[to] = true
			u.Needs = append(u.Needs, to)
			to.NeededBy = append(to.NeededBy, u)
		}
	}
	for _, edge := range u.edges {
		to := f.byID[edge.ID]
		if rel, err := filepath.Rel(u.tree, edge.ID); to == nil && u.Removed && err == nil && filepath.IsLocal(rel) {
			to = f.byID[filepath.Join(git.Root(f.s.Root), rel)] // a unit that was not removed
		}
		if to == nil {
			if to = f.behindLink(edge.ID); to == u {
				continue
			}
		}
		if r := f.removed[edge.ID]; to == nil && r != nil && !u.Removed {
			ds = append(ds, diag.Errorf(diag.CodeUnitDependencyNotFound, edge.At, "Dependency not found", "The unit %s, which %s depends on, was deleted, and would be destroyed. Remove the dependency, or keep the unit.", r.Name, u.Called())...)
		}
		if to == nil {
			var behind []*Unit
			dirs := stacks.Units(t, f.loader, edge.ID)
			outside := func(id string) {
				if !slices.Contains(u.External, id) {
					u.External = append(u.External, id)
				}
			}
			for _, dir := range dirs {
				switch to := f.byID[dir]; {
				case to == nil: // not generated yet, or outside of the searched directories
					outside(dir)
				case to != u:
					behind = append(behind, to)
					add(to)
				}
			}
			if len(dirs) == 0 {
				outside(edge.ID)
				continue
			}
			if u.ofStack == nil {
				u.ofStack, u.stackDirs = map[string][]*Unit{}, map[string][]string{}
			}
			u.ofStack[edge.ID], u.stackDirs[edge.ID] = behind, dirs
			continue
		}
		add(to)
	}
	slices.SortFunc(u.Needs, ByName)
	u.Invalid = append(u.Invalid, ds...)
	return ds
}

// behindLink returns the unit of a directory that is reached through a symbolic link, or nil. The
// path of the link is then another ID of the unit.
func (f *finder) behindLink(dir string) *Unit {
	u := f.byID[f.Resolve(dir)]
	if u != nil {
		f.byID[dir] = u
	}
	return u
}

// Resolve returns the path of a directory without symbolic links. Links in the path of the root
// remain. It returns dir if there is no such directory.
func (f *Found) Resolve(dir string) string {
	real, err := f.s.Files.EvalSymlinks(dir)
	if err != nil || real == dir {
		return dir
	}
	if root, err := f.s.Files.EvalSymlinks(f.s.Root); err == nil && root != f.s.Root {
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f.s.Root, rel)
		}
	}
	return real
}

// cycles returns an error for each cycle of units, which lists the units.
func (f *finder) cycles() diag.List {
	const (
		fresh = iota
		open
		done
	)
	var ds diag.List
	state := make(map[*Unit]int, len(f.Units))
	var path []*Unit
	var visit func(u *Unit)
	visit = func(u *Unit) {
		state[u] = open
		path = append(path, u)
		for _, n := range u.Needs {
			switch state[n] {
			case fresh:
				visit(n)
			case open:
				m := cycle(path[slices.Index(path, n):])
				ds = append(ds, m)
				for _, u := range path[slices.Index(path, n):] {
					u.Invalid = append(u.Invalid, m)
				}
			}
		}
		path = path[:len(path)-1]
		state[u] = done
	}
	for _, u := range f.Units {
		if state[u] == fresh {
			visit(u)
		}
	}
	return ds
}

func cycle(units []*Unit) *diag.Message {
	var names []string
	for _, u := range units {
		names = append(names, u.Called())
	}
	m := &diag.Message{
		Code: diag.CodeEstateCycle, Summary: "Units depend on each other in a cycle",
		Detail: fmt.Sprintf("Each of these units needs the next: %s → %s. Take one of the dependencies out.", strings.Join(names, " → "), names[0]),
	}
	for i, u := range units {
		next := units[(i+1)%len(units)]
		for _, edge := range u.edges {
			if edge.At != nil && (edge.ID == next.ID || slices.Contains(u.ofStack[edge.ID], next)) {
				m.Notes = append(m.Notes, diag.Note{Text: fmt.Sprintf("%s needs %s here", u.Called(), next.Called()), At: edge.At})
				if m.At == nil {
					m.At = edge.At
				}
				break
			}
		}
	}
	return m
}

// closure adds to a set all units that are reachable by next from units in the set.
func closure(set map[*Unit]bool, next func(*Unit) []*Unit) {
	work := slices.Collect(maps.Keys(set))
	for len(work) > 0 {
		u := work[len(work)-1]
		work = work[:len(work)-1]
		for _, n := range next(u) {
			if !set[n] {
				set[n] = true
				work = append(work, n)
			}
		}
	}
}
