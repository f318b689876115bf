package affected

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/outline"
)

// maxUnits is the number of units and of addresses that are listed below one cause.
const maxUnits = 20

// printText writes a report for people: the changed lines, and below each line what it changes.
func printText(out *report.Reporter, r *affected.Report, noun string) {
	switch {
	case len(r.Units) > 0:
		printUnits(out, r, noun)
	case len(r.NotCompared) == 0:
		out.Say(fmt.Sprintf("No value differs between %s and %s.\n", r.Base, r.Head))
	}
	if text := notCompared(r, noun); text != "" {
		out.Say(text + "\n")
	}
}

func printUnits(out *report.Reporter, r *affected.Report, noun string) {
	var b strings.Builder
	lines := linesOf(r)
	for i, c := range r.Causes {
		writeCause(&b, c)
		writeLines(&b, lines[i], noun)
		b.WriteString("\n")
	}
	if rest := lines[withoutCause]; len(rest) > 0 {
		b.WriteString("Without a line that causes it\n")
		writeLines(&b, rest, noun)
		b.WriteString("\n")
	}
	out.Copy(b.String())
	out.Say(summary(r, noun) + "\n")
}

// notCompared returns the sentence about the directories or units that were not compared, or "". noun is the word for
// what is compared.
func notCompared(r *affected.Report, noun string) string {
	one, many := "directory", "directories"
	if noun == "unit" && !slices.Equal(r.NotCompared, []string{"."}) {
		one, many = "unit", "units"
	}
	names, n := r.NotCompared, len(r.NotCompared)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "The " + one + " " + names[0] + " was not compared because it has errors."
	case n > maxUnits:
		return fmt.Sprintf("%d %s were not compared because they have errors: %s and %d more.", n, many, strings.Join(names[:maxUnits], ", "), n-maxUnits)
	}
	return fmt.Sprintf("%d %s were not compared because they have errors: %s.", n, many, strings.Join(names, ", "))
}

func writeCause(b *strings.Builder, c *affected.Cause) {
	fmt.Fprintf(b, "%s:%d", c.File, c.Line)
	switch {
	case c.Removed:
		b.WriteString(" (removed)")
	case c.Before != "" && c.After != "":
		fmt.Fprintf(b, " was %s, is %s", short(c.Before), short(c.After))
	}
	if c.Commit != "" {
		fmt.Fprintf(b, " (%s, %s, %s)", c.Commit[:min(12, len(c.Commit))], c.Author, c.Date)
	}
	b.WriteString("\n")
}

// short returns the beginning of a text.
func short(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// A line is one difference, and the units that have it.
type line struct {
	difference
	units []string
}

// A difference is the content of a line: a unit, an object or an argument that differs.
type difference struct {
	action    outline.Action
	address   string // "" for a unit
	was       string // the name or address before it was moved
	argument  bool
	path      string // of the argument
	sensitive bool
	before    string
	after     string
	reasons   string
}

// withoutCause is the key of linesOf for differences without a line that causes them.
const withoutCause = -1

// linesOf returns the differences by the index of their cause, in their order. Equal differences of
// several units are one line.
func linesOf(r *affected.Report) map[int][]*line {
	out := map[int][]*line{}
	type key struct {
		cause int
		difference
	}
	found := map[key]*line{}
	add := func(u *affected.Unit, cause *int, d difference) {
		k := key{withoutCause, d}
		if cause != nil {
			k.cause = *cause
		}
		l := found[k]
		if l == nil {
			l = &line{difference: d}
			found[k] = l
			out[k.cause] = append(out[k.cause], l)
		}
		if n := len(l.units); n == 0 || l.units[n-1] != u.Name {
			l.units = append(l.units, u.Name)
		}
	}
	for _, u := range r.Units {
		if len(u.Objects) == 0 || u.Was != "" {
			add(u, nil, difference{action: u.Action, was: u.Was})
		}
		for _, o := range u.Objects {
			if o.Action == affected.Added || o.Action == affected.Removed || o.Action == affected.Moved {
				add(u, o.Cause, difference{action: o.Action, address: o.Address, was: o.Was})
			}
			for _, c := range o.Changes {
				d := difference{action: c.Action, address: o.Address, argument: true, path: c.Path, sensitive: c.Sensitive}
				if d.before, d.after = c.Text(); c.Action == affected.MayChange {
					d.reasons = strings.Join(c.Reasons, ", ")
				}
				add(u, c.Cause, d)
			}
		}
	}
	return out
}

// text returns the text of a line, without the units.
func (d *difference) text() string {
	text := sign(d.action) + " " + cmp.Or(d.address, "the unit")
	if !d.argument {
		if d.was != "" {
			text += " (was " + d.was + ")"
		}
		return text
	}
	if d.path != "" {
		text += " " + d.path
	}
	switch {
	case d.sensitive && d.action == affected.MayChange:
		text += " may change (sensitive value): " + d.reasons
	case d.sensitive:
		text += ": (sensitive value)"
	case d.action == affected.MayChange:
		text += " may change: " + d.reasons
	case d.before != "" && d.after != "":
		text += ": " + d.before + " -> " + d.after
	case d.after != "":
		text += ": " + d.after
	case d.before != "":
		text += ": " + d.before
	}
	return text
}

func sign[T ~string](a T) string {
	switch string(a) {
	case string(affected.Added):
		return "+"
	case string(affected.Removed):
		return "-"
	case string(affected.Moved):
		return ">"
	case string(affected.MayChange):
		return "?"
	}
	return "~"
}

// writeLines writes lines, at most maxUnits of them.
func writeLines(b *strings.Builder, all []*line, noun string) {
	if n := len(all); n > maxUnits {
		writeAll(b, all[:maxUnits], noun)
		fmt.Fprintf(b, "  and %d more\n", n-maxUnits)
		return
	}
	writeAll(b, all, noun)
}

// writeAll writes lines, each below its units.
func writeAll(b *strings.Builder, all []*line, noun string) {
	named := func(l *line) bool { return len(l.units) != 1 || l.units[0] != "." }
	last := ""
	for _, l := range all {
		indent := "  "
		if named(l) {
			who := unitsText(l.units, noun)
			if who != last {
				fmt.Fprintf(b, "  %s\n", who)
			}
			last, indent = who, "    "
		}
		fmt.Fprintf(b, "%s%s\n", indent, l.text())
	}
}

func unitsText(names []string, noun string) string {
	if len(names) == 1 {
		return names[0]
	}
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += ", …"
	}
	return view.Numbered(len(names), noun) + ": " + text
}

// summary returns the number of objects by action.
func summary(r *affected.Report, noun string) string {
	counts := map[string]int{}
	for _, u := range r.Units {
		for _, o := range u.Objects {
			counts[string(o.Action)]++
		}
	}
	var parts []string
	for _, a := range []struct{ action, text string }{
		{string(affected.Added), "added"}, {string(affected.Removed), "removed"}, {string(affected.Moved), "moved"}, {string(affected.Changed), "changed"}, {string(affected.MayChange), "may change"},
	} {
		if n := counts[a.action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, a.text))
		}
	}
	text := strings.Join(parts, ", ") + "."
	if len(r.Units) > 1 || r.Units[0].Name != "." {
		differ := view.Numbered(len(r.Units), noun) + " differ"
		if len(r.Units) == 1 {
			differ += "s"
		}
		text = differ + ": " + text
	}
	return strings.Replace(text, ": .", ".", 1) // units that were added, removed or moved have no objects
}
