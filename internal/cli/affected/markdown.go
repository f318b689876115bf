package affected

import (
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/affected"
)

// document returns the Markdown of a report: one entry for each changed line. noun is the word for what
// is compared. messages are shown before the entries.
func document(c *command.Call, r *affected.Report, noun string, messages []markdown.Message) *markdown.Document {
	dir := c.DirectoryName()
	d := &markdown.Document{
		Mark: "terrace: affected in " + dir, Title: "No value differs in", Subjects: []string{dir}, Messages: messages,
		More: "The output of the command contains everything.",
	}
	if text := notCompared(r, noun); text != "" {
		d.Title, d.Lines = "Errors prevent the comparison of", []string{text}
	}
	if len(r.Units) == 0 {
		return d
	}
	d.Title = "Values differ in"
	d.Lines = append([]string{summary(r, noun)}, d.Lines...)
	estate := len(r.Units) > 1 || r.Units[0].Name != "."
	if estate {
		d.Table.Columns = []markdown.Column{{Name: strings.ToUpper(noun[:1]) + noun[1:]}, {Name: "Added", Right: true}, {Name: "Changed", Right: true}, {Name: "Removed", Right: true}, {Name: "May change", Right: true}}
		for _, u := range r.Units {
			d.Table.Rows = append(d.Table.Rows, row(u))
		}
	}
	entry := func(title, note string, all []*line) {
		if len(all) == 0 {
			return
		}
		var b strings.Builder
		writeAll(&b, all, noun)
		d.Details = append(d.Details, markdown.Detail{Title: title, Note: note, Text: b.String(), Diff: true})
	}
	lines := linesOf(r)
	for i, x := range r.Causes {
		var b strings.Builder
		writeCause(&b, x)
		all := lines[i]
		units := map[string]bool{}
		for _, l := range all {
			for _, u := range l.units {
				units[u] = true
			}
		}
		note := view.Numbered(len(all), "difference")
		if estate {
			note += " in " + view.Numbered(len(units), noun)
		}
		entry(strings.TrimSpace(b.String()), note, all)
	}
	entry("without a line that causes it", "", lines[withoutCause])
	return d
}

// row returns the row of a unit: the numbers of its differences.
func row(u *affected.Unit) []markdown.Cell {
	added, changed, removed, open := 0, 0, 0, 0
	for _, o := range u.Objects {
		switch o.Action {
		case affected.Added:
			added++
		case affected.Removed:
			removed++
		case affected.MayChange:
			open++
		default:
			changed++
		}
	}
	cells := []markdown.Cell{{Text: u.Name, Code: true}}
	if len(u.Objects) == 0 {
		text := "the unit was " + string(u.Action)
		if u.Was != "" {
			text += " from " + u.Was
		}
		return append(cells, markdown.Cell{Text: text}, markdown.Cell{}, markdown.Cell{}, markdown.Cell{})
	}
	for _, n := range []int{added, changed, removed, open} {
		cell := markdown.Cell{}
		if n > 0 {
			cell.Text = strconv.Itoa(n)
		}
		cells = append(cells, cell)
	}
	return cells
}
