package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// shown returns the documented commands, sorted by name.
func (t *Table) shown() []*Command {
	var out []*Command
	for i := range t.Commands {
		if !t.Commands[i].Hidden {
			out = append(out, &t.Commands[i])
		}
	}
	slices.SortFunc(out, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Markdown returns the page docs/commands.md.
func (t *Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands\n\nThis page is made from the declarations of the commands: `go test ./internal/cli -run TestCommandsPage -update` writes it. `%s COMMAND -help` prints the same of one command.\n\n", t.Program)
	for _, c := range t.shown() {
		fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", c.Name, strings.ReplaceAll(c.Name, " ", "-"), c.Synopsis)
	}
	b.WriteString("\nEvery command understands these flags, wherever they stand:\n\n")
	rows(&b, t.Common())
	b.WriteString("\nEvery command reads these environment variables:\n\n")
	variables(&b, t.CommonVariables())
	b.WriteString("\nWithout a command, the program prints its help:\n\n| status | |\n|---|---|\n")
	for _, x := range t.Bare {
		fmt.Fprintf(&b, "| %s | %s |\n", x.Shown(), cell(x.Help))
	}
	b.WriteString("\nCommands that run in units take these too. `TG_NAME` in the environment stands for `--name`.\n\n")
	rows(&b, t.Units())
	for _, c := range t.shown() {
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s %s\n```\n\n%s\n", c.Name, t.Program, strings.TrimSpace(c.Name+" "+c.Usage), strings.TrimSpace(c.Help))
		if len(c.Args) > 0 {
			b.WriteString("\n| argument | |\n|---|---|\n")
			for _, a := range c.Args {
				fmt.Fprintf(&b, "| `%s` | %s |\n", a.Name, cell(a.Help))
			}
		}
		if flags, _ := c.Prepare(); !slices.ContainsFunc(flags, func(f flag.Flag) bool { return f.Two }) || c.Name != "run" {
			if len(flags) > 0 {
				b.WriteString("\n")
			}
			if !c.Brief {
				rows(&b, flags)
			}
		} else {
			b.WriteString("\nIts flags are those of units, above.\n")
		}
		for _, x := range c.Examples {
			fmt.Fprintf(&b, "\n`%s %s`: %s\n", t.Program, x.Line, x.Text)
		}
		if vars := t.Variables(c); len(vars) > 0 {
			b.WriteString("\n")
			variables(&b, vars)
		}
		b.WriteString("\n| status | |\n|---|---|\n")
		for _, x := range t.Statuses(c) {
			fmt.Fprintf(&b, "| %s | %s |\n", x.Shown(), cell(x.Help))
		}
	}
	return b.String()
}

// rows writes a table of the flags that are not hidden.
func rows(b *strings.Builder, flags flag.Flags) {
	first := true
	for i := range flags {
		f := &flags[i]
		if f.Hidden {
			continue
		}
		if first {
			b.WriteString("| flag | |\n|---|---|\n")
		}
		first = false
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Shown(), cell(f.Help))
	}
}

// variables writes a table of environment variables.
func variables(b *strings.Builder, list []Variable) {
	b.WriteString("| environment | |\n|---|---|\n")
	for _, v := range list {
		fmt.Fprintf(b, "| `%s` | %s |\n", v.Name, cell(v.Help))
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// Man returns the manual page of a command in roff, or that of the program if c is nil.
func (t *Table) Man(c *Command) string {
	var b strings.Builder
	name := t.Program
	if c != nil {
		name += "-" + strings.ReplaceAll(c.Name, " ", "-")
	}
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n", roff(strings.ToUpper(name)))
	if c == nil {
		fmt.Fprintf(&b, "%s \\- infrastructure as code, for one directory or many units\n.SH SYNOPSIS\n%s [global options] <subcommand> [args]\n.SH COMMANDS\n", t.Program, t.Program)
		for _, c := range t.shown() {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(c.Name), roff(c.Synopsis))
		}
		b.WriteString(".SH OPTIONS\n")
		terms(&b, t.Common())
		b.WriteString(".SH OPTIONS OF COMMANDS ON UNITS\n")
		terms(&b, t.Units())
		environ(&b, t.CommonVariables())
		statuses(&b, t.Bare)
		return b.String()
	}
	fmt.Fprintf(&b, "%s \\- %s\n.SH SYNOPSIS\n%s\n.SH DESCRIPTION\n", roff(name), roff(c.Synopsis), roff(t.Program+" "+strings.TrimSpace(c.Name+" "+c.Usage)))
	for line := range strings.Lines(c.Help + "\n") {
		if line = strings.TrimRight(line, "\n"); line == "" {
			b.WriteString(".PP\n")
		} else {
			b.WriteString(roff(line) + "\n")
		}
	}
	flags, _ := c.Prepare()
	if !c.Brief && slices.ContainsFunc(flags, func(f flag.Flag) bool { return !f.Hidden }) {
		b.WriteString(".SH OPTIONS\n")
		terms(&b, flags)
	}
	if len(c.Examples) > 0 {
		b.WriteString(".SH EXAMPLES\n")
		for _, x := range c.Examples {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(t.Program+" "+x.Line), roff(x.Text))
		}
	}
	environ(&b, t.Variables(c))
	statuses(&b, t.Statuses(c))
	fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(t.Program))
	return b.String()
}

func terms(b *strings.Builder, flags flag.Flags) {
	for i := range flags {
		if f := &flags[i]; !f.Hidden {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.Shown()), roff(f.Help))
		}
	}
}

// environ writes the section on environment variables of a man page.
func environ(b *strings.Builder, list []Variable) {
	for i, v := range list {
		if i == 0 {
			b.WriteString(".SH ENVIRONMENT\n")
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(v.Name), roff(v.Help))
	}
}

// statuses writes the section on exit statuses of a man page.
func statuses(b *strings.Builder, list []Exit) {
	b.WriteString(".SH EXIT STATUS\n")
	for _, x := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", x.Shown(), roff(x.Help))
	}
}

// roff escapes text for man pages.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
