package estate

import (
	"context"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/par"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// # Filters
//
// A query is terms joined by |, each of which narrows what the one before left. A
// term is a name (app-*), a path (./prod/**), or an attribute (type=unit,
// reading=shared.hcl); ! in front turns it round; ... before it adds what needs the
// units that match, behind it what they need, with a number for how far; ^ leaves
// the matching units themselves out. Several queries add up, and those that begin
// with ! take away from the others, or from all units if there are no others.

// filter leaves out the units that the command is not about: by filters, by
// exclude blocks, and by prevent_destroy.
func (e *Estate) filter(ctx context.Context) diag.List {
	var ds diag.List
	keep := map[*Unit]bool{}
	positive := false
	var drop []string
	for _, q := range e.o.Filters {
		if strings.HasPrefix(strings.TrimSpace(q), "!") {
			drop = append(drop, q)
			continue
		}
		positive = true
		set, more := e.query(ctx, q)
		ds = append(ds, more...)
		for u := range set {
			keep[u] = true
		}
	}
	if !positive {
		for _, u := range e.Units {
			keep[u] = true
		}
	}
	for _, q := range drop {
		set, more := e.query(ctx, q)
		ds = append(ds, more...)
		for u := range keep {
			if !set[u] {
				delete(keep, u)
			}
		}
	}
	if ds.HasErrors() {
		return ds
	}
	e.restrict(keep)
	return append(ds, e.exclusions(ctx)...)
}

// restrict takes the other units out of the estate; they count as units outside.
func (e *Estate) restrict(keep map[*Unit]bool) {
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

// exclusions marks the units that take no part by their own word.
func (e *Estate) exclusions(ctx context.Context) diag.List {
	type verdict struct {
		exclude *unit.Exclude
		guarded bool
		ds      diag.List
	}
	all := par.Map(len(e.Units), 0, func(i int) (v verdict) {
		u := e.Units[i]
		v.exclude, v.ds = u.Exclude(e.task(ctx))
		if e.o.Destroy {
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
		if x := v.exclude; x != nil && x.If && excludes(x, e.o.Command) {
			u.Excluded = "its exclude block says so"
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
		case deep[u]:
			u.Excluded = "a unit that needs it is excluded with its dependencies"
		case guarded[u]:
			u.Excluded = "it is protected by prevent_destroy, or needed by a unit that is"
		}
	}
	return ds
}

// query is the units that a query matches.
func (e *Estate) query(ctx context.Context, q string) (map[*Unit]bool, diag.List) {
	set := map[*Unit]bool{}
	for _, u := range e.Units {
		set[u] = true
	}
	for term := range strings.SplitSeq(q, "|") {
		got, ds := e.term(ctx, strings.TrimSpace(term), q)
		if ds.HasErrors() {
			return nil, ds
		}
		for u := range set {
			if !got[u] {
				delete(set, u)
			}
		}
	}
	return set, nil
}

func badFilter(q, why string) diag.List {
	ds := diag.Errorf(nil, "Invalid filter", "The filter %q cannot be used: %s.", q, why)
	ds[0].Code = "estate/filter"
	return ds
}

// term is the units that one term matches.
func (e *Estate) term(ctx context.Context, term, q string) (map[*Unit]bool, diag.List) {
	rest, negated := strings.CutPrefix(term, "!")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return nil, badFilter(q, "a term is empty")
	}
	up, down := 0, 0
	if head, tail, ok := strings.Cut(rest, "..."); ok && (head == "" || isNumber(head)) {
		up, rest = distanceOf(head), tail
	}
	if i := strings.LastIndex(rest, "..."); i >= 0 && (rest[i+3:] == "" || isNumber(rest[i+3:])) {
		down, rest = distanceOf(rest[i+3:]), rest[:i]
	}
	rest, without := strings.CutPrefix(rest, "^")
	match, ds := e.matcher(ctx, rest, q)
	if ds.HasErrors() {
		return nil, ds
	}
	set := map[*Unit]bool{}
	for _, u := range e.Units {
		set[u] = match(u)
	}
	if up != 0 || down != 0 {
		set = e.spread(set, up, down, without)
	}
	out := map[*Unit]bool{}
	for _, u := range e.Units {
		if set[u] != negated {
			out[u] = true
		}
	}
	return out, nil
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// distanceOf is how far a graph term reaches; without a number as far as it goes.
func distanceOf(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return 1 << 30
}

// spread adds the units that need the matching ones, and those that these need.
func (e *Estate) spread(match map[*Unit]bool, up, down int, without bool) map[*Unit]bool {
	out := map[*Unit]bool{}
	walk := func(far int, next func(*Unit) []*Unit) {
		seen := map[*Unit]bool{}
		var wave []*Unit
		for _, u := range e.Units {
			if match[u] {
				seen[u] = true
				wave = append(wave, u)
			}
		}
		for ; far > 0 && len(wave) > 0; far-- {
			var then []*Unit
			for _, u := range wave {
				for _, n := range next(u) {
					if !seen[n] {
						seen[n] = true
						out[n] = true
						then = append(then, n)
					}
				}
			}
			wave = then
		}
	}
	walk(up, func(u *Unit) []*Unit { return u.NeededBy })
	walk(down, func(u *Unit) []*Unit { return u.Needs })
	for u, yes := range match {
		if yes {
			out[u] = !without
		}
	}
	return out
}

// matcher makes the test of a term.
func (e *Estate) matcher(ctx context.Context, term, q string) (func(*Unit) bool, diag.List) {
	switch {
	case strings.HasPrefix(term, "["):
		return nil, badFilter(q, "comparing with git is not part of this version")
	case strings.HasPrefix(term, "("):
		return nil, badFilter(q, "boundaries are not part of this version")
	case strings.HasPrefix(term, "{") && strings.HasSuffix(term, "}"):
		return e.byPath(term[1 : len(term)-1]), nil
	}
	if name, value, ok := strings.Cut(term, "="); ok {
		return e.byAttribute(ctx, strings.TrimSpace(name), strings.TrimSpace(value), q)
	}
	if strings.HasPrefix(term, "./") || strings.HasPrefix(term, "../") || filepath.IsAbs(term) || strings.Contains(term, "/") {
		return e.byPath(term), nil
	}
	return func(u *Unit) bool { return glob(term, path.Base(filepath.ToSlash(u.ID))) }, nil
}

func (e *Estate) byPath(p string) func(*Unit) bool {
	if !filepath.IsAbs(p) {
		p = filepath.Join(e.o.Root, p)
	}
	p = filepath.ToSlash(filepath.Clean(p))
	return func(u *Unit) bool { return glob(p, filepath.ToSlash(u.ID)) }
}

func (e *Estate) byAttribute(ctx context.Context, name, value, q string) (func(*Unit) bool, diag.List) {
	switch name {
	case "type":
		return func(*Unit) bool { return value == "unit" }, nil
	case "name":
		return func(u *Unit) bool { return glob(value, path.Base(filepath.ToSlash(u.ID))) }, nil
	case "external":
		return func(*Unit) bool { return value == "false" }, nil
	case "source":
		return func(u *Unit) bool {
			tf, ds := u.Terraform(e.task(ctx))
			if ds.HasErrors() || tf == nil || tf.Source == nil || !unit.Known(tf.Source.Value) {
				return false
			}
			v, _ := tf.Source.Value.Unmark()
			return !v.IsNull() && v.Type() == cty.String && glob(value, v.AsString())
		}, nil
	case "reading":
		return func(u *Unit) bool { return e.reads(ctx, u, value) }, nil
	}
	return nil, badFilter(q, "there is no attribute "+strconv.Quote(name)+"; type, name, external, source and reading are known")
}

// reads reports whether a unit was made of a file.
func (e *Estate) reads(ctx context.Context, u *Unit, pattern string) bool {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(e.o.Root, pattern)
	}
	files, _ := u.Files(e.task(ctx))
	for _, f := range files {
		if glob(filepath.ToSlash(pattern), filepath.ToSlash(f)) {
			return true
		}
	}
	return false
}
