package estate

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/unit"
)

// Look says how the units of an estate are looked for.
type Look struct {
	// Filters choose among what is found; none means all of it.
	Filters []string
	// NoHidden leaves out units in hidden folders.
	NoHidden bool
	// Lenient keeps units that cannot be read, and takes circles, for commands that
	// only list what there is. What is wrong becomes Estate.Warnings.
	Lenient bool
	// Whole goes on where units cannot be read or connected, so that Check finds what
	// else is wrong. The estate must not be run then; states can be read.
	Whole bool
	// Checking says that the units are looked at and nothing will run: what takes
	// credentials that are not there is unknown.
	Checking bool
	// NamesAlone says that only the names of units are wanted: their files are not
	// read, unless filters ask for what is in them.
	NamesAlone bool
	// Generate makes the units of stack files first.
	Generate bool
	// OnlyStacks says that the filters choose which stack files are generated from.
	OnlyStacks bool
	// Generated is told of each unit and stack that is made. May be nil.
	Generated func(*unit.StackItem)
	// DependentsIn is the folder in which filters look for units that need others; ""
	// means the git repository that the root lies in.
	DependentsIn string
	// Boundary is the folder that filters do not leave on their way to units that need
	// others or are needed by them, if they name none. "" means none.
	Boundary string
	// ConfigName is the name of unit files; "" means terragrunt.hcl.
	ConfigName string
}

// Open finds and reads the units below a folder, and puts them in order. With
// errors the estate holds what could be read, and must not be run. Where Look.Whole
// is set, Check still finds the rest of what is wrong, if anything was read at all.
func Open(ctx context.Context, o Options) (*Estate, diag.List) {
	e := newEstate(o)
	queries, ds := parseQueries(o.Look.Filters)
	if ds.HasErrors() {
		return e, ds
	}
	if ds = append(ds, e.bounds(queries)...); ds.HasErrors() {
		return e, ds
	}
	if ds = append(ds, e.standIn(ctx, queries)...); ds.HasErrors() {
		return e, ds
	}
	e.bind(queries)
	o = e.o
	if o.Look.Generate {
		g := newGenerator(o, e.loader.Sources())
		if ds = append(ds, g.all(ctx)...); ds.HasErrors() && !o.Look.Whole {
			return e, ds
		}
		e.told.unmade = g.wrong
	}
	_, s := telemetry.Start(ctx, "discovery_filesystem_walk")
	s.Text("working_dir", o.Root)
	found, more := discover(o.Look, o.Request.DownloadDir, o.Root)
	if over(s, more); more.HasErrors() {
		return e, append(ds, more...)
	}
	ds = slices.Concat(ds, more, found.clashes(o.Look.Lenient))
	e.stacks(found)
	names := o.Look.NamesAlone && !looksInside(queries)
	switch {
	case names:
		found.units = e.nameUnits(found.units)
	case len(queries) > 0 && !o.Look.Lenient && !looksInside(queries):
		found.units = e.meant(ctx, queries, found.units)
	}
	if ds = append(ds, e.load(ctx, found.units, false)...); ds.HasErrors() && !o.Look.Whole {
		return e, ds
	}
	if names {
		e.choose(ctx, queries)
		return e, ds
	}
	more = e.widen(ctx, queries)
	if ds = append(ds, more...); more.HasErrors() {
		return e, ds
	}
	more = e.readGit(ctx, queries)
	if ds = append(ds, more...); more.HasErrors() {
		return e, ds
	}
	more = e.connect(ctx, queries)
	if o.Look.Lenient {
		more = warned(append(more, e.wrongStacks(ctx)...))
	}
	if ds = append(ds, more...); ds.HasErrors() && !o.Look.Whole {
		return e, ds
	}
	all := e.Units
	more = e.filter(ctx, queries)
	ds = e.concerns(ds, all)
	e.Warnings, e.Chosen = ds.Warnings(), true
	return e, append(slices.Clone(ds), more...)
}

// concerns makes errors about units that filters left out warnings, since nobody asked
// for these, and so it does with those that exclude blocks left out. Where a file cannot
// be read they stay errors: it may need what was chosen.
func (e *Estate) concerns(ds diag.List, all []*Unit) diag.List {
	if !ds.HasErrors() {
		return ds
	}
	key := func(m *diag.Message) identity {
		id := identify(m)
		id.detail = "" // which names the units, where there are several
		return id
	}
	aside := map[identity]bool{}
	for _, u := range all {
		chosen := u.Broken != nil || u.faulty
		if e.byID[u.ID] == u {
			chosen = u.Broken != nil || u.Excluded == ""
		}
		for _, m := range u.wrong {
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
			out = append(out, warned(diag.List{m})...)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// load reads unit files. Those that lie outside of the root are left out if they
// cannot be read; they are no part of what was asked for.
func (e *Estate) load(ctx context.Context, paths []string, outside bool) diag.List {
	if len(paths) == 0 {
		return nil
	}
	type result struct {
		units []*unit.Unit
		ds    diag.List
	}
	ctx, s := telemetry.Start(ctx, "discovery_phase_parse")
	s.Count("candidates_in", len(paths))
	defer s.End()
	all := parallel.Map(len(paths), 0, func(i int) result {
		ctx, s := telemetry.Start(ctx, "parse_config_file")
		s.Text("config_path", paths[i])
		units, ds := e.loader.Load(e.loader.Task(ctx), paths[i])
		over(s, ds)
		return result{units, ds}
	})
	var ds diag.List
	for i, r := range all {
		if r.ds.HasErrors() && outside {
			continue
		}
		if r.ds.HasErrors() && (e.o.Look.Lenient || len(r.units) == 0 && e.o.Look.Whole) {
			ds = append(ds, e.broken(paths[i], r.units, r.ds)...)
			continue
		}
		for _, m := range r.ds {
			e.told.reading[identify(m)] = true
		}
		ds = append(ds, r.ds...)
		for _, in := range r.units {
			if e.byID[in.ID] == nil {
				u := e.add(in)
				u.Outside, u.faulty, u.wrong = outside, r.ds.HasErrors(), r.ds
			}
		}
	}
	slices.SortFunc(e.Units, func(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) })
	return ds
}

// broken adds the units of a file that cannot be read as a whole, and returns what
// there is to tell of it. What can be read counts for the order of units that are only
// listed.
func (e *Estate) broken(path string, units []*unit.Unit, ds diag.List) diag.List {
	if e.o.Look.Lenient && len(units) == 0 {
		if in := e.loader.Part(path); in != nil {
			units = []*unit.Unit{in}
		}
	}
	read := len(units) > 0
	if !read {
		units = []*unit.Unit{{ID: filepath.Dir(path), Dir: filepath.Dir(path), Path: path}}
	}
	for _, in := range units {
		if e.byID[in.ID] == nil {
			u := e.add(in)
			u.Broken, u.wrong, u.faulty = ds, ds, read
		}
	}
	if e.o.Look.Lenient {
		return warned(ds)
	}
	return ds
}

// looksInside reports whether queries ask for more of units than their names.
func looksInside(queries []query) bool {
	return slices.ContainsFunc(queries, func(q query) bool {
		return slices.ContainsFunc(q.terms, func(t term) bool {
			return t.up > 0 || t.down > 0 || t.kind == termGit || t.name == "source" || t.name == "reading" || t.name == "external"
		})
	})
}

// meant are the files of units that queries about names alone find, and those whose
// units have names that only they tell: what is wrong with others is nobody's concern.
func (e *Estate) meant(ctx context.Context, queries []query, paths []string) []string {
	s := &Estate{o: e.o, Stacks: slices.Clone(e.Stacks), byID: map[string]*Unit{}}
	out := s.nameUnits(paths)
	s.choose(ctx, queries)
	for _, u := range s.Units {
		out = append(out, u.Path)
	}
	slices.Sort(out)
	return out
}

// nameUnits adds the units whose files tell nothing more of their names, without
// reading them, and returns the other files: those with module blocks.
func (e *Estate) nameUnits(paths []string) []string {
	several := parallel.Map(len(paths), 0, func(i int) bool {
		return !isUnitName(filepath.Base(paths[i]), "") || holdsModule(paths[i])
	})
	var left []string
	for i, p := range paths {
		if several[i] {
			left = append(left, p)
			continue
		}
		dir := filepath.Dir(p)
		e.add(&unit.Unit{ID: dir, Dir: dir, Path: p}).Broken = diag.List{}
	}
	return left
}

// widen adds the units outside of the root where a filter asks for what needs others.
func (e *Estate) widen(ctx context.Context, queries []query) diag.List {
	var units []string
	for _, dir := range e.lookedIn(queries) {
		found, ds := discover(e.o.Look, e.o.Request.DownloadDir, dir)
		if ds.HasErrors() {
			return ds
		}
		units = append(units, slices.DeleteFunc(found.units, func(p string) bool { return inside(p, e.o.Root) })...)
	}
	return e.load(ctx, units, true)
}

// GraphRoot is the folder in which filters look for units that need others; "" if
// that is the root of the estate.
func (e *Estate) GraphRoot() string {
	if in := e.o.Look.DependentsIn; in != "" {
		return in
	}
	return repository(e.o.Root)
}

// repository is the root of the git repository that a folder lies in, "" if it
// lies in none.
func repository(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// warned is the same messages, none of them an error.
func warned(ds diag.List) diag.List {
	out := make(diag.List, 0, len(ds))
	for _, m := range ds {
		w := *m
		w.Severity = diag.Warning
		out = append(out, &w)
	}
	return out
}
