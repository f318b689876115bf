package discovery

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/unit"
)

// setAside turns errors about units into warnings if filters or exclude blocks removed the units.
// Errors about files that cannot be read remain errors, since a selected unit may depend on such
// a file.
func (f *finder) setAside(ds diag.List, all []*Unit) diag.List {
	if !ds.HasErrors() {
		return ds
	}
	key := func(m *diag.Message) identity {
		id := identify(m)
		id.detail = "" // the detail may name several units
		return id
	}
	aside := map[identity]bool{}
	for _, u := range all {
		chosen := u.Broken != nil || u.Partial
		if f.byID[u.ID] == u {
			chosen = u.Broken != nil || u.Excluded == ""
		}
		for _, m := range u.Invalid {
			if id := key(m); chosen {
				aside[id] = false
			} else if _, known := aside[id]; !known {
				aside[id] = true
			}
		}
	}
	var out diag.List
	for _, m := range ds {
		if m.Severity == diag.Error && aside[key(m)] {
			out = append(out, diag.List{m}.AsWarnings()...)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// load reads unit files and adds their units. With outside, the files are outside of the root,
// and those that cannot be read are skipped, since the user did not ask for them.
func (f *finder) load(ctx context.Context, paths []string, outside bool) diag.List {
	if len(paths) == 0 {
		return nil
	}
	type result struct {
		units []*Unit
		ds    diag.List
	}
	many := f.ahead > 0 && len(paths) > f.ahead
	ctx, s := telemetry.Start(ctx, "discovery_phase_parse")
	s.Count("candidates_in", len(paths))
	defer s.End()
	all := parallel.Map(len(paths), 0, func(i int) result {
		if ctx.Err() != nil {
			return result{}
		}
		ctx, s := telemetry.Start(ctx, "parse_config_file")
		s.Text("config_path", paths[i])
		units, ds := f.loader.Load(f.loader.Task(ctx), paths[i])
		ended(s, ds)
		r := result{make([]*Unit, len(units)), ds}
		for i, in := range units {
			r.units[i] = &Unit{Unit: in, Name: f.Name(in.ID)}
			if many && !ds.HasErrors() {
				f.askEarly(ctx, r.units[i])
			}
		}
		return r
	})
	if ctx.Err() != nil {
		return interrupted()
	}
	var ds diag.List
	for i, r := range all {
		if r.ds.HasErrors() && outside {
			continue
		}
		if r.ds.HasErrors() && (f.s.Lenient || len(r.units) == 0 && f.s.Whole) {
			ds = append(ds, f.broken(paths[i], r.units, r.ds)...)
			continue
		}
		for _, m := range r.ds {
			f.Reported[identify(m)] = true
		}
		ds = append(ds, r.ds...)
		for _, u := range r.units {
			if f.byID[u.ID] == nil {
				f.put(u)
				u.Outside, u.Partial, u.Invalid = outside, r.ds.HasErrors(), r.ds
			}
		}
	}
	slices.SortFunc(f.Units, ByName)
	return ds
}

// broken adds the units of a file that has errors, and returns the messages to report. With
// Lenient, the parts that can be read determine the order in listings.
func (f *finder) broken(path string, units []*Unit, ds diag.List) diag.List {
	if f.s.Lenient {
		if in := f.loader.Part(path); in != nil {
			units = []*Unit{{Unit: in, Name: f.Name(in.ID)}}
		}
	}
	read := len(units) > 0
	if dir := filepath.Dir(path); !read {
		units = []*Unit{{Unit: &unit.Unit{ID: dir, Dir: dir, Path: path}, Name: f.Name(dir)}}
	}
	for _, u := range units {
		if f.byID[u.ID] == nil {
			f.put(u)
			u.Broken, u.Invalid, u.Partial = ds, ds, read
		}
	}
	if f.s.Lenient {
		return ds.AsWarnings()
	}
	return ds
}

// looksInside reports whether queries need more than the names of units.
func looksInside(queries []filter.Query) bool {
	return slices.ContainsFunc(queries, func(q filter.Query) bool {
		return slices.ContainsFunc(q.Terms, func(t filter.Term) bool {
			return t.Up > 0 || t.Down > 0 || t.Kind == filter.ByGit || t.Name == "source" || t.Name == "reading" || t.Name == "external" || t.Name == "affected"
		})
	})
}

// named returns the files of units that match queries which only use names, and the files whose
// content determines the names of their units. Errors in other files do not matter.
func (f *finder) named(ctx context.Context, queries []filter.Query, paths []string) []string {
	s := &finder{Found: &Found{Stacks: slices.Clone(f.Stacks), byID: map[string]*Unit{}, s: f.s}}
	out := s.nameUnits(paths)
	s.choose(ctx, queries)
	for _, u := range s.Units {
		out = append(out, u.Path)
	}
	slices.Sort(out)
	return out
}

// nameUnits adds the units whose names follow from their paths, without reading their files. It
// returns the other files: those with module blocks.
func (f *finder) nameUnits(paths []string) []string {
	several := parallel.Map(len(paths), 0, func(i int) bool {
		return !isUnitName(filepath.Base(paths[i]), "") || holdsModule(f.s.Files, paths[i])
	})
	var left []string
	for i, p := range paths {
		if several[i] {
			left = append(left, p)
			continue
		}
		dir := filepath.Dir(p)
		f.Add(&unit.Unit{ID: dir, Dir: dir, Path: p}).Broken = diag.List{}
	}
	return left
}

// widen adds units outside of the root if a filter selects dependents of units.
func (f *finder) widen(ctx context.Context, queries []filter.Query) diag.List {
	var units []string
	for _, dir := range f.s.lookedIn(queries) {
		found, ds := scan(f.s, dir)
		if ds.HasErrors() {
			return ds
		}
		units = append(units, slices.DeleteFunc(found.units, func(p string) bool { return inside(p, f.s.Root) })...)
	}
	return f.load(ctx, units, true)
}
