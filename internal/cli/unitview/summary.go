// Package unitview prints the results of units: their plans as one, tables, and one line per
// unit.
//
// Main types: Summary, and Folds, the changes that several units share. The one rule: the
// package prints results and does not depend on how they were produced.
package unitview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/plan"
)

// A Summary prints the results of the units of a run: at its end, and before the user approves
// a plan.
type Summary struct {
	Report  *report.Reporter
	Command string // plan, apply, destroy, validate, init
	Mode    plan.Mode
	PerUnit bool   // list units without changes too, and the duration of each unit
	Folds   *Folds // changes of the plans
	Limit   int    // the number of lines of changes that are printed; 0 means no limit
	Width   int    // width of the column with the names of units, in columns of a terminal

	idle bool // "No changes" was printed
}

// NewSummary returns a summary without plans.
func NewSummary(r *report.Reporter) *Summary {
	return &Summary{Report: r, Folds: NewFolds(), Width: len("Total")}
}

// MostLines is the number of lines of changes that are printed of a plan, unless --all-changes is given.
const MostLines = 300

// Plans prints the plans of all units as one: a table of the units, then the changes, then the
// deferred changes.
func (s *Summary) Plans(results []*estate.Result) {
	if s.Report.Human == nil || results == nil {
		return
	}
	var b strings.Builder
	b.WriteString("\n")
	if Changes(results) {
		s.rows(&b, results)
	}
	s.Report.Human.Say(b.String())
	s.Folds.Write(s.Report.Human, Names(results), s.Limit)
	b.Reset()
	s.causes(&b, results)
	for _, res := range results {
		for i, d := range res.Deferred {
			if i == 0 {
				fmt.Fprintf(&b, "\n# Deferred in unit %s\n\n", res.Unit.Name)
			}
			fmt.Fprintf(&b, "  %s.\n", d)
		}
	}
	s.Report.Human.Say(b.String())
	switch {
	case Changes(results):
		s.Report.Human.Say("\n")
		drift := 0
		for _, res := range results {
			drift += res.Drift
		}
		if drift > 0 {
			s.Report.Human.Strong("Drift:")
			s.Report.Human.Say(" " + view.Numbered(drift, "object") + " changed outside of the configuration.\n" + changing(results) + "\n")
			break
		}
		s.Report.Human.Strong("Plan:")
		s.Report.Human.Say(" " + view.Summary(plan.Counts(total(results))) + "\n" + changing(results) + "\n")
	case NothingToDo(results):
		s.unchanged(results)
	}
	s.Reads(results)
}

// mostCauses is the number of causes that a plan lists.
const mostCauses = 20

// causes writes the places that set the new values, if the plan contains them.
func (s *Summary) causes(b *strings.Builder, results []*estate.Result) {
	all := view.GroupCauses(Names(results), func(unit string) []view.Origin { return view.Changed(s.Folds.OriginsOf(unit)) })
	for i, c := range all {
		switch {
		case i == 0:
			b.WriteString("\n# Causes\n\n")
		case i == mostCauses:
			fmt.Fprintf(b, "  and %d more\n", len(all)-i)
			return
		}
		place := c.Place()
		if c.File != "" {
			place = "from " + place
		}
		fmt.Fprintf(b, "  %s of %s in %s, %s\n", c.Attribute, view.Numbered(c.Objects, "object"), view.ShortList(c.Units), place)
	}
}

// Wave prints the plans of units whose deferred changes could now be planned.
func (s *Summary) Wave(wave []*estate.Result) {
	s.Folds.Write(s.Report.Human, Names(wave), s.Limit)
	var b strings.Builder
	b.WriteString("\n")
	s.rows(&b, wave)
	s.Report.Human.Say(b.String())
}

// Reads prints how many objects of all units were not refreshed. It prints nothing if all
// were.
func (s *Summary) Reads(results []*estate.Result) {
	var reads plan.Reads
	for _, res := range results {
		reads = reads.Add(res.Reads)
	}
	if lines := reads.Lines(); len(lines) > 0 {
		s.Report.Human.Say("\n" + strings.Join(lines, ".\n") + ".\n")
	}
}

// NothingToDo reports whether every unit that is not excluded succeeded without a change.
func NothingToDo(results []*estate.Result) bool {
	ran := 0
	for _, res := range results {
		switch {
		case res.Status == estate.Excluded:
			continue
		case res.Status != estate.Succeeded, res.Changes, len(res.Deferred) > 0, res.Counts != plan.Counts{}:
			return false
		}
		ran++
	}
	return ran > 0
}

// unchanged prints that no unit has changes. The first sentence is the one that OpenTofu
// prints for one directory, since CI tools search for it.
func (s *Summary) unchanged(results []*estate.Result) {
	s.idle = true
	n := 0
	for _, res := range results {
		if res.Status == estate.Succeeded {
			n++
		}
	}
	text := fmt.Sprintf("All %d units are up to date.", n)
	if n == 1 {
		text = "The unit is up to date."
	}
	if s.Mode == plan.Destroy {
		text = fmt.Sprintf("Nothing is left to destroy in %d units.", n)
		if n == 1 {
			text = "Nothing is left to destroy in the unit."
		}
	}
	s.Report.Human.Good("No changes.")
	s.Report.Human.Say(" " + view.Unchanged(s.Mode) + "\n\n" + text + "\n")
}

// changing returns the sentence after OpenTofu's "Plan: …": the number of units that change.
// It is on a line of its own, since CI tools expect nothing after the counts.
func changing(results []*estate.Result) string {
	units := 0
	for _, res := range results {
		if res.Changes {
			units++
		}
	}
	text := fmt.Sprintf("Changes in %d of %d units", units, len(results))
	if len(results) == 1 {
		text = fmt.Sprintf("Changes in %d of 1 unit", units)
	}
	if n := Deferred(results); n > 0 {
		text += fmt.Sprintf(", %d deferred", n)
	}
	return text + "."
}

// Complete prints OpenTofu's last sentence of an apply or a destroy, with the counts of all
// units. It prints nothing if a unit failed or did not run.
func (s *Summary) Complete(results []*estate.Result) {
	if s.Command != "apply" && s.Command != "destroy" || !succeeded(results) {
		return
	}
	if NothingToDo(results) && !s.idle {
		s.Report.Human.Say("\n")
		s.unchanged(results)
	}
	operation := "apply"
	if s.Mode == plan.Destroy {
		operation = "destroy"
	}
	s.Report.Human.Say("\n")
	s.Report.Human.Good(view.Complete(operation, plan.Counts(total(results))))
	s.Report.Human.Say("\n")
}

// succeeded reports whether at least one unit succeeded and all others are excluded or
// succeeded.
func succeeded(results []*estate.Result) bool {
	ran := false
	for _, res := range results {
		switch res.Status {
		case estate.Excluded:
		case estate.Succeeded:
			ran = true
		default:
			return false
		}
	}
	return ran
}

// total returns the sum of the counts of all units.
func total(results []*estate.Result) plan.Counts {
	var n plan.Counts
	for _, res := range results {
		n = n.Plus(res.Counts)
	}
	return n
}

// Table prints the number of units with each result, and the counts of their changes.
func (s *Summary) Table(results []*estate.Result) {
	var b strings.Builder
	b.WriteString("\n")
	const interrupted estate.Status = "interrupted"
	status := func(res *estate.Result) estate.Status {
		if res.Interrupted {
			return interrupted
		}
		return res.Status
	}
	counts := map[estate.Status]int{}
	var first, last time.Time
	for _, res := range results {
		counts[status(res)]++
		if first.IsZero() || res.Started.Before(first) {
			first = res.Started
		}
		if res.Ended.After(last) {
			last = res.Ended
		}
	}
	fmt.Fprintf(&b, "❯❯ Run Summary  %d units  %s\n", len(results), last.Sub(first).Round(time.Millisecond))
	for _, st := range []struct {
		status estate.Status
		name   string
	}{{estate.Succeeded, "Succeeded"}, {estate.Failed, "Failed"}, {interrupted, "Interrupted"}, {estate.EarlyExit, "Early Exits"}, {estate.Excluded, "Excluded"}} {
		if counts[st.status] > 0 {
			fmt.Fprintf(&b, "   %-12s %d\n", st.name, counts[st.status])
			s.durations(&b, slices.DeleteFunc(slices.Clone(results), func(res *estate.Result) bool { return status(res) != st.status }))
		}
	}
	if n := Deferred(results); n > 0 {
		fmt.Fprintf(&b, "   %-12s %d\n", "Deferred", n)
	}
	if (s.Command == "apply" || s.Command == "destroy") && (s.PerUnit && !s.idle || !NothingToDo(results)) {
		b.WriteString("\n")
		s.rows(&b, results)
	}
	s.Report.Human.Say(b.String())
}

// durations lists units and their durations, the slowest first. It prints nothing unless
// PerUnit is set.
func (s *Summary) durations(b *strings.Builder, of []*estate.Result) {
	if !s.PerUnit {
		return
	}
	took := func(res *estate.Result) time.Duration { return res.Ended.Sub(res.Started) }
	slices.SortStableFunc(of, func(x, y *estate.Result) int { return cmp.Compare(took(y), took(x)) })
	for _, res := range of {
		text := ""
		if res.Status == estate.Succeeded || res.Status == estate.Failed {
			text = "  " + took(res).Round(time.Millisecond).String()
		}
		fmt.Fprintf(b, "      %s\n", strings.TrimRight(fmt.Sprintf("%-*s%s", s.Width, res.Unit.Name, text), " "))
	}
}

// A column is a column of the table of units. The table omits a rare column in which all
// counts are 0.
type column struct {
	name string
	of   func(plan.Counts) int
	rare bool
}

var columns = []column{
	{"import", func(n plan.Counts) int { return n.Import }, true},
	{"add", func(n plan.Counts) int { return n.Add }, false},
	{"change", func(n plan.Counts) int { return n.Change }, false},
	{"destroy", func(n plan.Counts) int { return n.Destroy }, false},
	{"forget", func(n plan.Counts) int { return n.Forget }, true},
}

// mostRows is the number of rows without notes in a table whose length is limited.
const mostRows = 60

// rows writes the table of the units with changes. With PerUnit, it includes the other units
// too.
func (s *Summary) rows(b *strings.Builder, results []*estate.Result) {
	total := total(results)
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.rare && c.of(total) == 0 })
	row := func(name string, cell func(column) string, note string) {
		fmt.Fprintf(b, "   %-*s ", s.Width, name)
		for _, c := range shown {
			fmt.Fprintf(b, " %*s", max(6, len(c.name)), cell(c))
		}
		b.WriteString(note + "\n")
	}
	counts := func(n plan.Counts) func(column) string {
		return func(c column) string { return strconv.Itoa(c.of(n)) }
	}
	row("Unit", func(c column) string { return c.name }, "")
	printed, more := 0, 0
	for _, res := range results {
		n := res.Counts
		note := ""
		switch {
		case res.Interrupted:
			note = "  interrupted"
		case res.Status != estate.Succeeded:
			if note = "  " + string(res.Status); res.Status == estate.Excluded && res.Cause != "" {
				note += ": " + res.Cause
			}
		case len(res.Deferred) > 0:
			note = fmt.Sprintf("  %d deferred", len(res.Deferred))
		case n == plan.Counts{} && !res.Changes && !s.PerUnit:
			continue
		}
		if s.Limit > 0 && printed >= mostRows && !s.PerUnit && (note == "" || res.Status == estate.Excluded) {
			more++
			continue
		}
		printed++
		row(res.Unit.Name, counts(n), note)
	}
	if more > 0 {
		fmt.Fprintf(b, "   and %d more units\n", more)
	}
	row("Total", counts(total), "")
}

// JSON writes the summary as an event.
func (s *Summary) JSON(results []*estate.Result) {
	counts := map[string]int{}
	for _, res := range results {
		counts[string(res.Status)]++
	}
	s.Report.Stream.Typed(fmt.Sprintf("%d units", len(results)), "estate_summary", map[string]any{
		"operation": s.Command, "units": len(results), "results": counts,
		"changes": CountsJSON(total(results)),
	})
}

// CountsJSON returns counts in the form of JSON events.
func CountsJSON(n plan.Counts) map[string]int {
	return map[string]int{"add": n.Add, "change": n.Change, "remove": n.Destroy, "import": n.Import, "forget": n.Forget}
}
