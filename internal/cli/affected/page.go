package affected

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/planhtml"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/plan"
)

// page returns the HTML page of a report: one entry for each changed line, with its units. noun is the
// word for what is compared.
func page(c *command.Call, r *affected.Report, noun string) *planhtml.Page {
	dir := c.DirectoryName()
	p := &planhtml.Page{
		Dir: dir, Estate: true, Compares: true, Noun: noun, Title: fmt.Sprintf("Values that differ in %s", dir), Command: "affected",
		From: r.Base + " and " + r.Head, Made: c.Now().UTC().Format(time.RFC3339), Program: view.Product + " " + release.Version,
	}
	for _, u := range r.Units {
		name := u.Name
		if name == "." {
			name = dir
		}
		one := &affected.Report{Units: []*affected.Unit{u}}
		box := planhtml.Box{Name: name, State: planhtml.Planned, Summary: summary(one, noun), Counts: counts(u)}
		if len(u.Objects) == 0 {
			box.Summary = "the " + noun + " was " + string(u.Action)
		}
		lines := linesOf(one)
		for _, i := range slices.Sorted(maps.Keys(lines)) {
			var b strings.Builder
			if b.WriteString("# "); i < 0 {
				b.WriteString("without a line that causes it\n")
			} else {
				writeCause(&b, r.Causes[i])
			}
			for _, l := range lines[i] {
				b.WriteString("  " + l.text() + "\n")
			}
			box.Changes = append(box.Changes, planhtml.Change{Kind: planhtml.Line, Op: "update", Text: b.String()})
		}
		p.Units = append(p.Units, box)
	}
	summary := "the directory has errors"
	if noun == "unit" {
		summary = "the unit has errors"
	}
	for _, name := range r.NotCompared {
		if name == "." {
			name = dir
		}
		p.Units = append(p.Units, planhtml.Box{Name: name, State: planhtml.Failed, Summary: summary})
	}
	return p
}

// counts returns the numbers of a unit's objects that differ.
func counts(u *affected.Unit) (n plan.Counts) {
	for _, o := range u.Objects {
		switch o.Action {
		case affected.Added:
			n.Add++
		case affected.Removed:
			n.Destroy++
		default:
			n.Change++
		}
	}
	return n
}
