package estate

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// # Filters
//
// Several queries add up, and those that begin with ! take away from what the
// others found, or from all units below the root if there are no others. A query
// looks for units and stacks below the root; what graph terms add may lie outside.

// An item is a unit or a stack, as queries see it.
type item struct {
	name string // as seen from the root
	unit *Unit  // nil for a stack
}

// filtering is one use of queries.
type filtering struct {
	e      *Estate
	ctx    context.Context
	all    []*item // below the root
	of     map[*Unit]*item
	near   map[*changes]map[string]bool
	readBy map[*Unit][]string
}

// filter leaves out the units that the command is not about: by filters, by
// exclude blocks, and by prevent_destroy.
func (e *Estate) filter(ctx context.Context, queries []query) diag.List {
	e.choose(ctx, queries)
	return e.exclusions(ctx)
}

// choose leaves out the units that filters do not find.
func (e *Estate) choose(ctx context.Context, queries []query) {
	f := &filtering{e: e, ctx: ctx, of: map[*Unit]*item{}, readBy: map[*Unit][]string{}}
	for _, u := range e.Units {
		it := &item{u.Name, u}
		f.of[u] = it
		if !u.Outside {
			f.all = append(f.all, it)
		}
	}
	for _, name := range e.Stacks {
		f.all = append(f.all, &item{name: name})
	}
	if len(queries) > 0 || len(f.all) < len(e.Units)+len(e.Stacks) {
		e.restrict(f.chosen(queries))
	}
}

// chosen are the units and stacks that the queries leave.
func (f *filtering) chosen(queries []query) map[*item]bool {
	keep := map[*item]bool{}
	positive := false
	for i := range queries {
		if q := &queries[i]; !q.negative() {
			positive = true
			for it := range f.query(q) {
				keep[it] = true
				f.e.found(q, it.unit)
			}
		}
	}
	if !positive {
		for _, it := range f.all {
			keep[it] = true
		}
	}
	for i := range queries {
		if q := &queries[i]; q.negative() {
			keep = f.narrow(keep, q.terms)
		}
	}
	return keep
}

// query is what a query finds.
func (f *filtering) query(q *query) map[*item]bool {
	set := map[*item]bool{}
	for _, it := range f.all {
		set[it] = true
	}
	return f.narrow(f.term(&q.terms[0], set), q.terms[1:])
}

// narrow takes away what the terms do not find.
func (f *filtering) narrow(set map[*item]bool, terms []term) map[*item]bool {
	for i := range terms {
		among := map[*item]bool{}
		for _, it := range f.all {
			among[it] = true
		}
		for it := range set {
			among[it] = true
		}
		found := f.term(&terms[i], among)
		for it := range set {
			if !found[it] {
				delete(set, it)
			}
		}
	}
	return set
}

// term is what a term finds among items, and what it adds to them.
func (f *filtering) term(t *term, among map[*item]bool) map[*item]bool {
	match := f.matcher(t)
	set := map[*item]bool{}
	for it := range among {
		if match(it) {
			set[it] = true
		}
	}
	if t.up > 0 || t.down > 0 || t.without {
		set = f.spread(t, set)
	}
	if !t.not {
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

// spread adds the units that need the matching ones, and those that these need.
func (f *filtering) spread(t *term, match map[*item]bool) map[*item]bool {
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
						out[f.of[n]] = true
						then = append(then, n)
					}
				}
			}
			wave = then
		}
	}
	walk(t.up, t.upIn, func(u *Unit) []*Unit { return u.NeededBy })
	walk(t.down, t.downIn, func(u *Unit) []*Unit { return u.Needs })
	for it := range match {
		if t.without {
			delete(out, it)
		} else {
			out[it] = true
		}
	}
	return out
}

// restrict takes the others out of the estate; they count as units outside.
func (e *Estate) restrict(items map[*item]bool) {
	keep := map[*Unit]bool{}
	stacks := map[string]bool{}
	for it := range items {
		if it.unit != nil {
			keep[it.unit] = true
		} else {
			stacks[it.name] = true
		}
	}
	e.Stacks = slices.DeleteFunc(e.Stacks, func(name string) bool { return !stacks[name] })
	if len(keep) == len(e.Units) {
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
	units, _ := in(e.Units)
	for _, u := range e.Units {
		if !keep[u] {
			delete(e.byID, u.ID)
			continue
		}
		u.Needs, left = in(u.Needs)
		u.External = append(u.External, left...)
		u.NeededBy, _ = in(u.NeededBy)
	}
	e.Units = units
}

// byItself is why most units are excluded.
const byItself = "its exclude block says so"

// LeaveOut makes the result of a unit that takes no part. Why is its cause, unless that
// is its own exclude block.
func (r *Result) LeaveOut() {
	r.Status, r.Reason, r.Cause, r.Code = Excluded, "exclude block", r.Unit.Excluded, 0
	if r.Cause == byItself {
		r.Cause = ""
	}
}

// exclusions marks the units that take no part by their own word.
func (e *Estate) exclusions(ctx context.Context) diag.List {
	type verdict struct {
		exclude *unit.Exclude
		guarded bool
		ds      diag.List
	}
	all := parallel.Map(len(e.Units), 0, func(i int) (v verdict) {
		u := e.Units[i]
		if u.Broken != nil {
			return v
		}
		v.exclude, v.ds = u.Exclude(e.task(ctx))
		if e.o.Destroy && !e.o.Look.Lenient {
			guarded, more := e.Protected(ctx, u)
			v.guarded, v.ds = guarded, append(v.ds, more...)
		}
		return v
	})
	var ds diag.List
	deep := map[*Unit]bool{}
	guarded := map[*Unit]bool{}
	for i, v := range all {
		ds = append(ds, v.ds...)
		u := e.Units[i]
		if x := v.exclude; x != nil && x.If && excludes(x, e.o.Request.Command) {
			u.Excluded = byItself
			if x.ExcludeDependencies {
				deep[u] = true
			}
		}
		if v.guarded {
			guarded[u] = true
		}
	}
	needs := func(u *Unit) []*Unit { return u.Needs }
	closure(deep, needs)
	closure(guarded, needs)
	for _, u := range e.Units {
		switch {
		case u.Excluded != "":
		case u.Removed && u.Broken == nil && (e.o.Without.Removals || e.o.Request.Command != "plan" && e.o.Request.Command != "apply"):
			u.Excluded = "it is no longer there, and only plan and, with --filter-allow-destroy, apply are about such units"
		case deep[u]:
			u.Excluded = "a unit that needs it is excluded with its dependencies"
		case guarded[u]:
			u.Excluded = "it is protected by prevent_destroy, or needed by a unit that is"
		}
	}
	return ds
}

// matcher makes the test of a term.
func (f *filtering) matcher(t *term) func(*item) bool {
	switch t.kind {
	case termPath:
		return f.byPath(t.value)
	case termAttribute:
		return f.byAttribute(t.name, t.value)
	case termGit:
		return func(it *item) bool { return it.unit != nil && f.changed(f.e.history.changes[t.value], it.unit) }
	}
	return f.byName(t.value)
}

func (f *filtering) byName(pattern string) func(*item) bool {
	match := pathGlob(pattern)
	own := filepath.Base(f.e.o.Root)
	return func(it *item) bool {
		if it.name == "." {
			return match(own) || match(it.name)
		}
		return match(path.Base(it.name))
	}
}

// byPath matches paths as seen from the root, or absolute ones.
func (f *filtering) byPath(p string) func(*item) bool {
	p = filepath.ToSlash(p)
	if filepath.IsAbs(p) {
		match := pathGlob(path.Clean(p))
		return func(it *item) bool {
			return match(filepath.ToSlash(filepath.Join(f.e.o.Root, filepath.FromSlash(it.name))))
		}
	}
	p = path.Clean(p)
	match := pathGlob(p)
	return func(it *item) bool {
		if strings.HasPrefix(it.name, "../") && !strings.HasPrefix(p, "../") {
			return false
		}
		return match(it.name)
	}
}

func (f *filtering) byAttribute(name, value string) func(*item) bool {
	switch name {
	case "type":
		return func(it *item) bool { return (it.unit != nil) == (value == "unit") }
	case "external":
		return func(it *item) bool { return (it.unit != nil && it.unit.Outside) == (value == "true") }
	case "source":
		match := pathGlob(value)
		return func(it *item) bool { return it.unit != nil && f.source(it.unit, match) }
	case "reading":
		if !filepath.IsAbs(value) {
			value = filepath.Join(f.e.o.Root, value)
		}
		match := pathGlob(filepath.ToSlash(filepath.Clean(value)))
		return func(it *item) bool {
			return it.unit != nil && slices.ContainsFunc(f.files(it.unit), func(p string) bool { return match(filepath.ToSlash(p)) })
		}
	}
	return f.byName(value)
}

func (f *filtering) source(u *Unit, match func(string) bool) bool {
	if u.unread() {
		return false
	}
	tf, ds := u.In(f.e.blind).Terraform(f.e.task(f.ctx))
	if ds.HasErrors() || tf == nil || tf.Source == nil || !unit.Known(tf.Source.Value) {
		return false
	}
	v, _ := tf.Source.Value.Unmark()
	return isText(v) && match(v.AsString())
}

func isText(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.Type() == cty.String }

// files are the files that a unit is made of, found out once.
func (f *filtering) files(u *Unit) []string {
	if out, ok := f.readBy[u]; ok {
		return out
	}
	out := f.e.Reading(f.ctx, u)
	f.readBy[u] = out
	return out
}

// Reading lists the files that a unit is made of: what its file brings in, and
// the configuration of a local module. Files that cannot be computed are left out.
func (e *Estate) Reading(ctx context.Context, u *Unit) []string {
	if u.unread() {
		return nil
	}
	t := e.task(ctx)
	out, _ := u.Files(t)
	out = slices.DeleteFunc(slices.Clone(out), func(p string) bool { return p == u.Path })
	out = append(out, e.moduleFiles(ctx, u)...)
	slices.Sort(out)
	return slices.Compact(out)
}
