package command

import (
	"fmt"
	"strings"
)

// HelpOf returns the help of a command.
func (t *Table) HelpOf(c *Command) string {
	var b strings.Builder
	b.WriteString("Usage: " + t.Program + " [global options] " + strings.TrimSpace(c.Name+" "+c.Usage) + "\n")
	if c.Help != "" {
		b.WriteString("\n" + indent(c.Help))
	}
	if c.Prepare != nil {
		flags, _ := c.Prepare()
		first := true
		for _, f := range flags {
			if f.Hidden {
				continue
			}
			if first {
				b.WriteString("\nOptions:\n")
			}
			first = false
			b.WriteString("\n" + entry(f.Shown(), f.Help, column))
		}
	}
	if subs := t.Subcommands(c.Name); len(subs) > 0 {
		b.WriteString("\nSubcommands:\n")
		width := 0
		for _, s := range subs {
			width = max(width, len(s.Name)-len(c.Name)-1)
		}
		for _, s := range subs {
			fmt.Fprintf(&b, "    %-*s    %s\n", width, strings.TrimPrefix(s.Name, c.Name+" "), s.Synopsis)
		}
	}
	if c.After != "" {
		b.WriteString("\n" + indent(c.After))
	}
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, x := range c.Examples {
			b.WriteString("\n  " + t.Program + " " + x.Line + "\n" + indent(indent(wrap(x.Text, lineWidth-4))))
		}
	}
	b.WriteString("\nExit status:\n\n")
	for _, x := range t.Statuses(c) {
		b.WriteString(entry(x.Shown(), x.Help, 7))
	}
	if vars := t.Variables(c); len(vars) > 0 {
		b.WriteString("\nEnvironment:\n\n")
		for _, v := range vars {
			b.WriteString(entry(v.Name, v.Help, column))
		}
		b.WriteString("\n" + indent(wrap("Every command reads more of them: see \""+t.Program+" help environment\".", lineWidth-2)))
	}
	return strings.TrimRight(b.String(), "\n")
}

const (
	column    = 26 // where the text about a flag begins
	lineWidth = 79
)

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

// wrap breaks a text into lines of at most width columns.
func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// entry returns a name and its description, which begins at a column.
func entry(name, text string, column int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-*s", column-2, name)
	lines := strings.Split(wrap(text, lineWidth-column), "\n")
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
