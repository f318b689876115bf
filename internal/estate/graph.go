package estate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/internal/telemetry"
)

// connect finds out which units come after which. Dependencies draw edges by
// rule 16 of the import specification; an unmerged import's dependency only where
// an input that the module declares uses it. Where a filter asks for what units
// need, units outside of the root are read too.
func (e *Estate) connect(ctx context.Context, queries []query) diag.List {
	above := ctx
	ctx, s := telemetry.Start(ctx, "discovery_phase_relationship")
	s.Count("components_in", len(e.Units))
	ds := e.edges(ctx, e.Units)
	if wanted := reaches(queries); wanted != nil {
		ds = append(ds, e.reachOut(ctx, wanted)...)
	}
	for _, u := range e.Units {
		e.link(e.task(ctx), u)
	}
	over(s, ds)
	_, s = telemetry.Start(above, "discovery_cycle_check")
	circles := e.cycles()
	over(s, circles)
	return append(ds, circles...)
}

// manyUnits is from how many units on what was computed for each is not kept.
const manyUnits = 500

// edges finds out what units name as their dependencies.
func (e *Estate) edges(ctx context.Context, units []*Unit) diag.List {
	all := parallel.Map(len(units), 0, func(i int) diag.List {
		u := units[i]
		if u.unread() {
			return nil
		}
		t := e.task(ctx)
		edges, ds := u.Dependencies(t, e.wanted(ctx, u))
		if u.edges = edges; u.Broken != nil {
			return nil // it was told what is wrong, and more may come of that
		}
		ds = e.withoutUnmade(u, ds)
		u.wrong = append(u.wrong, ds.Errors()...)
		ds = append(ds, u.Warnings(t)...)
		if len(units) > manyUnits {
			u.Forget()
		}
		return ds
	})
	return together(e.told.reading, units, all)
}

// unread reports whether nothing but the name of a unit is known.
func (u *Unit) unread() bool { return u.Broken != nil && !u.faulty }

// reachOut reads the units outside of the root that others need, and what these
// need, as far as they are wanted.
func (e *Estate) reachOut(ctx context.Context, wanted func(path string) bool) diag.List {
	var ds diag.List
	for wave := e.Units; len(wave) > 0; {
		var paths []string
		asked := map[string]bool{}
		for _, u := range wave {
			for _, edge := range u.edges {
				if e.byID[edge.ID] == nil && !asked[edge.ID] && wanted(edge.ID) {
					asked[edge.ID] = true
					paths = append(paths, edge.ID)
				}
			}
		}
		slices.Sort(paths)
		had := len(e.Units)
		known := maps.Clone(e.byID)
		e.load(ctx, paths, true)
		if len(e.Units) == had {
			break
		}
		wave = nil
		for _, u := range e.Units {
			if known[u.ID] == nil {
				wave = append(wave, u)
			}
		}
		ds = append(ds, e.edges(ctx, wave)...)
	}
	return ds
}

// link turns the edges of a unit into what it needs.
func (e *Estate) link(t *demand.Task, u *Unit) {
	seen := map[*Unit]bool{}
	add := func(to *Unit) {
		if !seen[to] {
			seen[to] = true
			u.Needs = append(u.Needs, to)
			to.NeededBy = append(to.NeededBy, u)
		}
	}
	for _, edge := range u.edges {
		to := e.byID[edge.ID]
		if to == nil {
			some := false
			for _, dir := range e.stackUnits(t, edge.ID) {
				if to := e.byID[dir]; to != nil && to != u {
					some = true
					add(to)
				}
			}
			if !some && !slices.Contains(u.External, edge.ID) {
				u.External = append(u.External, edge.ID)
			}
			continue
		}
		add(to)
	}
	slices.SortFunc(u.Needs, byName)
}

func byName(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) }

// cycles reports each circle of units once, step by step.
func (e *Estate) cycles() diag.List {
	const (
		fresh = iota
		open
		done
	)
	var ds diag.List
	state := make(map[*Unit]int, len(e.Units))
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
				m := circle(path[slices.Index(path, n):])
				ds = append(ds, m)
				for _, u := range path[slices.Index(path, n):] {
					u.wrong = append(u.wrong, m)
				}
			}
		}
		path = path[:len(path)-1]
		state[u] = done
	}
	for _, u := range e.Units {
		if state[u] == fresh {
			visit(u)
		}
	}
	return ds
}

func circle(units []*Unit) *diag.Message {
	var names []string
	for _, u := range units {
		names = append(names, u.Name)
	}
	m := &diag.Message{
		Code: "estate/cycle", Summary: "Units depend on each other in a circle",
		Detail: fmt.Sprintf("Each of these units needs the next: %s → %s. Take one of the dependencies out.", strings.Join(names, " → "), names[0]),
	}
	for i, u := range units {
		next := units[(i+1)%len(units)]
		for _, edge := range u.edges {
			if edge.ID == next.ID && edge.At != nil {
				m.Notes = append(m.Notes, diag.Note{Text: fmt.Sprintf("%s needs %s here", u.Name, next.Name), At: edge.At})
				if m.At == nil {
					m.At = edge.At
				}
				break
			}
		}
	}
	return m
}

// Order lists the units so that each comes after those that it needs, or before
// them if reverse is set; where that leaves a choice, by name.
func (e *Estate) Order(reverse bool) []*Unit {
	before, after := func(u *Unit) []*Unit { return u.Needs }, func(u *Unit) []*Unit { return u.NeededBy }
	if reverse {
		before, after = after, before
	}
	left := make(map[*Unit]int, len(e.Units))
	var wave, out []*Unit
	for _, u := range e.Units {
		if left[u] = len(before(u)); left[u] == 0 {
			wave = append(wave, u)
		}
	}
	for len(wave) > 0 {
		slices.SortFunc(wave, byName)
		out = append(out, wave...)
		var next []*Unit
		for _, u := range wave {
			for _, n := range after(u) {
				if left[n]--; left[n] == 0 {
					next = append(next, n)
				}
			}
		}
		wave = next
	}
	if len(out) < len(e.Units) { // circles, which only listings meet
		for _, u := range e.Units {
			if left[u] > 0 {
				out = append(out, u)
			}
		}
	}
	return out
}

// WriteDOT draws the units and what they need, for Graphviz.
func (e *Estate) WriteDOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph {\n")
	for _, x := range e.Entries(false, false) {
		if x.Unit == nil {
			fmt.Fprintf(&b, "\t%q ;\n", x.Name)
			continue
		}
		u, style := x.Unit, ""
		if u.Excluded != "" {
			style = "[color=red]"
		}
		fmt.Fprintf(&b, "\t%q %s;\n", u.Name, style)
		for _, n := range u.Needs {
			fmt.Fprintf(&b, "\t%q -> %q;\n", u.Name, n.Name)
		}
		for _, x := range u.External {
			fmt.Fprintf(&b, "\t%q -> %q;\n", u.Name, e.name(x))
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// closure adds to a set of units all that can be reached from them.
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
