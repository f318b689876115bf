package discovery

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/discovery/filter"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/glob"
	"github.com/terrace-iac/terrace/unit"
)

// # Filters
//
// Several queries add up. Queries that begin with ! remove units from the result of the others,
// or from all units below the root if there are no others. A query finds units and stacks below
// the root. Graph terms may add units outside of it.

// An item is a unit or a stack that queries match.
type item struct {
	name string // path relative to the root
	unit *Unit  // nil for a stack
}

// matching evaluates queries once.
type matching struct {
	f      *finder
	ctx    context.Context
	all    []*item // items below the root
	of     map[*Unit]*item
	near   map[*git.Changes]map[string]bool
	readBy map[*item][]string
}

// chosen returns the units and stacks that match the queries.
func (m *matching) chosen(queries []filter.Query) map[*item]bool {
	keep := map[*item]bool{}
	positive := false
	for i := range queries {
		if q := &queries[i]; !q.Negative() {
			positive = true
			for it := range m.query(q) {
				keep[it] = true
				m.f.noteCommit(q, it.unit)
			}
		}
	}
	if !positive {
		for _, it := range m.all {
			keep[it] = true
		}
	}
	for i := range queries {
		if q := &queries[i]; q.Negative() {
			keep = m.narrow(keep, q.Terms)
		}
	}
	return keep
}

// query returns the items that match a query.
func (m *matching) query(q *filter.Query) map[*item]bool {
	set := map[*item]bool{}
	for _, it := range m.all {
		set[it] = true
	}
	return m.narrow(m.term(&q.Terms[0], set), q.Terms[1:])
}

// narrow removes the items that the terms do not match.
func (m *matching) narrow(set map[*item]bool, terms []filter.Term) map[*item]bool {
	for i := range terms {
		among := map[*item]bool{}
		for _, it := range m.all {
			among[it] = true
		}
		for it := range set {
			among[it] = true
		}
		found := m.term(&terms[i], among)
		for it := range set {
			if !found[it] {
				delete(set, it)
			}
		}
	}
	return set
}

// term returns the items in among that match a term, and those that its graph operators add.
func (m *matching) term(t *filter.Term, among map[*item]bool) map[*item]bool {
	match := m.matcher(t)
	set := map[*item]bool{}
	for it := range among {
		if match(it) {
			set[it] = true
		}
	}
	if t.Up > 0 || t.Down > 0 || t.Without {
		set = m.spread(t, set)
	}
	if !t.Not {
		return set
	}
	out := map[*item]bool{}
	for it := range among {
		if !set[it] {
			out[it] = true
		}
	}
	return out
}

// spread adds the dependents and the dependencies of the matching units, as the term requires.
func (m *matching) spread(t *filter.Term, match map[*item]bool) map[*item]bool {
	out := map[*item]bool{}
	walk := func(steps int, bound string, next func(*Unit) []*Unit) {
		seen := map[*Unit]bool{}
		var wave []*Unit
		for it := range match {
			if it.unit != nil {
				seen[it.unit] = true
				wave = append(wave, it.unit)
			}
		}
		for ; steps > 0 && len(wave) > 0; steps-- {
			var then []*Unit
			for _, u := range wave {
				for _, n := range next(u) {
					if !seen[n] && (bound == "" || inside(n.Dir, bound)) {
						seen[n] = true
						out[m.of[n]] = true
						then = append(then, n)
					}
				}
			}
			wave = then
		}
	}
	walk(t.Up, t.UpIn, func(u *Unit) []*Unit { return u.NeededBy })
	walk(t.Down, t.DownIn, func(u *Unit) []*Unit { return u.Needs })
	for it := range match {
		if t.Without {
			delete(out, it)
		} else {
			out[it] = true
		}
	}
	return out
}

// matcher returns the function that tests whether an item matches a term.
func (m *matching) matcher(t *filter.Term) func(*item) bool {
	switch t.Kind {
	case filter.ByPath:
		return m.byPath(t.Value)
	case filter.ByAttribute:
		return m.byAttribute(t.Name, t.Value)
	case filter.ByGit:
		return func(it *item) bool { return it.unit != nil && m.changed(m.f.changes[t.Value], it.unit) }
	}
	return m.ByName(t.Value)
}

func (m *matching) ByName(pattern string) func(*item) bool {
	match := glob.Compile(pattern)
	own := filepath.Base(m.f.s.Root)
	return func(it *item) bool {
		if it.name == "." {
			return match(own) || match(it.name)
		}
		return match(path.Base(it.name))
	}
}

// byPath matches paths relative to the root, and absolute paths.
func (m *matching) byPath(p string) func(*item) bool {
	p = filepath.ToSlash(p)
	if filepath.IsAbs(p) {
		match := glob.Compile(path.Clean(p))
		return func(it *item) bool {
			return match(filepath.ToSlash(filepath.Join(m.f.s.Root, filepath.FromSlash(it.name))))
		}
	}
	p = path.Clean(p)
	match := glob.Compile(p)
	return func(it *item) bool {
		if strings.HasPrefix(it.name, "../") && !strings.HasPrefix(p, "../") {
			return false
		}
		return match(it.name)
	}
}

func (m *matching) byAttribute(name, value string) func(*item) bool {
	switch name {
	case "type":
		return func(it *item) bool { return (it.unit != nil) == (value == "unit") }
	case "external":
		return func(it *item) bool { return (it.unit != nil && it.unit.Outside) == (value == "true") }
	case "source":
		match := glob.Compile(value)
		return func(it *item) bool { return it.unit != nil && m.source(it.unit, match) }
	case "affected":
		return func(it *item) bool { return it.unit != nil && m.f.affected[value][it.unit.Name] }
	case "reading":
		if !filepath.IsAbs(value) {
			value = filepath.Join(m.f.s.Root, value)
		}
		match := glob.Compile(filepath.ToSlash(filepath.Clean(value)))
		return func(it *item) bool {
			return slices.ContainsFunc(m.files(it), func(p string) bool { return match(filepath.ToSlash(p)) })
		}
	}
	return m.ByName(value)
}

func (m *matching) source(u *Unit, match func(string) bool) bool {
	if u.unread() {
		return false
	}
	tf, ds := u.In(m.f.static).Terraform(m.f.loader.Task(m.ctx))
	if ds.HasErrors() || tf == nil || tf.Source == nil || !unit.Known(tf.Source.Value) {
		return false
	}
	v, _ := tf.Source.Value.Unmark()
	return value.IsText(v) && match(v.AsString())
}

// files returns the files that a unit or a stack file reads. It caches the result.
func (m *matching) files(it *item) []string {
	out, ok := m.readBy[it]
	if ok {
		return out
	}
	if t := m.f.loader.Task(m.ctx); it.unit != nil {
		out = m.f.Reading(t, it.unit)
	} else {
		out = m.f.ReadingStack(t, it.name)
	}
	m.readBy[it] = out
	return out
}

// choose removes the units and stacks that do not match the filters.
func (f *finder) choose(ctx context.Context, queries []filter.Query) {
	m := &matching{f: f, ctx: ctx, of: map[*Unit]*item{}, readBy: map[*item][]string{}}
	for _, u := range f.Units {
		it := &item{u.Name, u}
		m.of[u] = it
		if !u.Outside {
			m.all = append(m.all, it)
		}
	}
	for _, name := range f.Stacks {
		m.all = append(m.all, &item{name: name})
	}
	if len(queries) > 0 || len(m.all) < len(f.Units)+len(f.Stacks) {
		f.restrict(m.chosen(queries))
	}
}

// Match returns the names of the units that match queries, relative to the directory dir. Terms
// about commits match nothing.
func (f *Found) Match(ctx context.Context, loader, static *unit.Loader, dir string, texts []string) (map[string]bool, diag.List) {
	queries, ds := filter.Parse(texts)
	if ds.HasErrors() {
		return nil, ds
	}
	s := *f.s
	s.Root = dir
	in := &finder{Found: &Found{s: &s, Units: f.Units}, loader: loader, static: static}
	in.modules.maker, in.modules.static = f.modules.maker, f.modules.static
	m := &matching{f: in, ctx: ctx, of: map[*Unit]*item{}, readBy: map[*item][]string{}}
	for _, u := range f.Units {
		it := &item{in.Name(u.ID), u}
		m.of[u] = it
		m.all = append(m.all, it)
	}
	out := map[string]bool{}
	for it := range m.chosen(queries) {
		out[it.unit.Name] = true
	}
	return out, nil
}

// restrict removes all other items from the estate. Dependencies on removed units become
// External.
func (f *finder) restrict(items map[*item]bool) {
	keep := map[*Unit]bool{}
	stacks := map[string]bool{}
	for it := range items {
		if it.unit != nil {
			keep[it.unit] = true
		} else {
			stacks[it.name] = true
		}
	}
	f.Stacks = slices.DeleteFunc(f.Stacks, func(name string) bool { return !stacks[name] })
	if len(keep) == len(f.Units) {
		return
	}
	in := func(list []*Unit) (kept []*Unit, left []string) {
		for _, u := range list {
			if keep[u] {
				kept = append(kept, u)
			} else {
				left = append(left, u.ID)
			}
		}
		return kept, left
	}
	var left []string
	units, _ := in(f.Units)
	for _, u := range f.Units {
		if !keep[u] {
			delete(f.byID, u.ID)
			continue
		}
		u.Needs, left = in(u.Needs)
		u.External = append(u.External, left...)
		u.NeededBy, _ = in(u.NeededBy)
	}
	f.Units = units
}
