package command

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// HelpOf returns the help of a command.
func (t *Table) HelpOf(c *Command) string {
	var b strings.Builder
	b.WriteString(wrap.Fit("Usage: "+t.Program+" [global options] "+strings.TrimSpace(c.Name+" "+c.Usage), t.Width, 0) + "\n")
	if c.Help != "" {
		b.WriteString("\n" + t.paragraphs(c.Help))
	}
	if c.Prepare != nil {
		flags, _ := c.Prepare()
		first := true
		for _, f := range flags {
			if f.Hidden || c.Brief {
				continue
			}
			if first {
				b.WriteString("\nOptions:\n")
			}
			first = false
			b.WriteString("\n" + entry(f.Shown(), f.Help, column, t.lineWidth()))
		}
	}
	if subs := t.Subcommands(c.Name); len(subs) > 0 {
		b.WriteString("\nSubcommands:\n")
		width := 0
		for _, s := range subs {
			width = max(width, len(s.Name)-len(c.Name)-1)
		}
		for _, s := range subs {
			b.WriteString(indent(entry(strings.TrimPrefix(s.Name, c.Name+" "), s.Synopsis, width+6, t.lineWidth()-2)))
		}
	}
	if c.After != "" {
		b.WriteString("\n" + t.paragraphs(c.After))
	}
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, x := range c.Examples {
			b.WriteString("\n  " + t.Program + " " + x.Line + "\n" + indent(indent(wrap.Words(x.Text, t.lineWidth()-4))))
		}
	}
	b.WriteString("\nExit status:\n\n")
	for _, x := range t.Statuses(c) {
		b.WriteString(entry(x.Shown(), x.Help, 7, t.lineWidth()))
	}
	if vars := t.Variables(c); len(vars) > 0 {
		b.WriteString("\nEnvironment:\n\n")
		for _, v := range vars {
			b.WriteString(entry(v.Name, v.Help, column, t.lineWidth()))
		}
		b.WriteString("\n" + indent(wrap.Words("Every command reads more of them: see \""+t.Program+" help environment\".", t.lineWidth()-2)))
	}
	return strings.TrimRight(b.String(), "\n")
}

const (
	column    = 26 // where the text about a flag begins
	lineWidth = 79
)

// lineWidth returns the columns of a line of help, which is shorter on a narrow terminal.
func (t *Table) lineWidth() int {
	if t.Width == 0 {
		return lineWidth
	}
	return min(lineWidth, max(t.Width-1, 2*column))
}

// paragraphs returns text in paragraphs, indented by two spaces.
func (t *Table) paragraphs(text string) string {
	return indent(wrap.Fit(text, max(t.Width-2, 0), 0))
}

// indent indents each line that is not empty by two spaces.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line != "\n" {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// Entry returns a name and its description, which begins at a column, in lines that fit the
// terminal.
func (t *Table) Entry(name, text string, column int) string {
	return entry(name, text, column, t.lineWidth())
}

// entry returns a name and its description, which begins at a column, in lines of at most width
// columns.
func entry(name, text string, column, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-*s", column-2, name)
	lines := strings.Split(wrap.Words(text, width-column), "\n")
	if len(name) > column-3 {
		b.WriteString("\n" + strings.Repeat(" ", column))
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", column))
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
