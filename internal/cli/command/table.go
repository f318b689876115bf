package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// A Table is the set of all commands of a program.
type Table struct {
	Program  string // the name of the executable
	Product  string // the name in texts
	Width    int    // columns of the terminal; 0 if the output is not a terminal
	Commands []Command
	Former   func(name string) string // the command that replaced a former one of this or another tool; "" if there is none
	Global   func() flag.Flags        // the flags before the command
	Further  []Arg                    // other words before the command, for the help only
	Common   func() flag.Flags        // the flags of every command
	Units    func() flag.Flags        // the flags of commands on units
	Topics   []Topic
	Exits    []Exit // exit statuses of every command, in addition to its own
	Bare     []Exit // exit statuses without a command
	// Environment contains all environment variables. Those of one group are adjacent.
	Environment []Variable
}

// NoCommand is the exit status if the program has printed its help because no command was
// given. Shells return the same status if they do not find a command.
const NoCommand = 127

// Statuses returns the exit statuses of a command. Those of every command are last.
func (t *Table) Statuses(c *Command) []Exit {
	own := c.Exits
	if len(own) == 0 {
		own = []Exit{{0, "Success."}, {1, "There was an error."}}
	}
	return slices.Concat(own, t.Exits)
}

// A Topic is a page of help about a subject other than a single command.
type Topic struct{ Name, Synopsis, Text string }

// Find returns the command with the most words that words begin with. rest are the words after
// its name.
func (t *Table) Find(words []string) (cmd *Command, rest []string, ok bool) {
	for n := min(3, len(words)); n > 0; n-- {
		if c := t.Named(strings.Join(words[:n], " ")); c != nil {
			return c, words[n:], true
		}
	}
	return nil, nil, false
}

// Named returns the command with the name, or nil.
func (t *Table) Named(name string) *Command {
	for i := range t.Commands {
		c := &t.Commands[i]
		if c.Name == name {
			return c
		}
		for _, a := range c.Aliases {
			if a == name {
				return c
			}
		}
	}
	return nil
}

// Subcommands returns the commands whose name is the given one plus one word.
func (t *Table) Subcommands(of string) []*Command {
	var out []*Command
	for i := range t.Commands {
		c := &t.Commands[i]
		if rest, ok := strings.CutPrefix(c.Name, of+" "); ok && !c.Hidden && !strings.Contains(rest, " ") {
			out = append(out, c)
		}
	}
	return out
}

// Suggest returns a hint that names a command with a similar name, or the one that replaced a
// former command. It returns "" if there is none.
func (t *Table) Suggest(name string) string {
	if now := t.Former(name); now != "" {
		return fmt.Sprintf(" Use %q.", t.Program+" "+now)
	}
	names := map[string]bool{}
	for i := range t.Commands {
		if !t.Commands[i].Hidden {
			names[t.Commands[i].Name] = true
		}
	}
	return lang.Suggest(name, names)
}

// NoArguments returns the error text for arguments of a command that takes none. It names a
// command of the same group if the first argument is its misspelled name.
func (c *Call) NoArguments() string {
	names := map[string]bool{}
	for i := range c.Table.Commands {
		if rest, ok := strings.CutPrefix(c.Table.Commands[i].Name, c.Command.Name+" "); ok && !c.Table.Commands[i].Hidden {
			names[rest] = true
		}
	}
	if near := lang.Nearest(c.Arg(0), names); near != "" {
		return fmt.Sprintf("The %s command expects no arguments, and there is no command %[2]q. Did you mean %[3]q?", c.Command.Name, c.Command.Name+" "+c.Arg(0), c.Command.Name+" "+near)
	}
	return "Too many command line arguments. Did you mean to use -chdir?"
}

// Below returns a sentence that lists the commands of a group.
func (t *Table) Below(group string) string {
	var names []string
	for i := range t.Commands {
		if c := &t.Commands[i]; !c.Hidden && strings.HasPrefix(c.Name, group+" ") {
			names = append(names, strconv.Quote(c.Name))
		}
	}
	slices.Sort(names)
	switch last := len(names) - 1; last {
	case -1:
		return ""
	case 0:
		return "The command is " + names[0] + "."
	default:
		return "The commands are " + strings.Join(names[:last], ", ") + " and " + names[last] + "."
	}
}

// Flags returns all flags of a command, including those of units and of every command.
func (t *Table) Flags(c *Command) flag.Flags {
	var out flag.Flags
	if c.Prepare != nil {
		out, _ = c.Prepare()
	}
	if (c.Units.Has(InUnit) || c.Units.Has(TakesUnitFlags)) && t.Units != nil {
		for _, f := range t.Units() {
			if out.Find("--"+f.Name) == nil || f.Two && !slices.ContainsFunc(out, func(o flag.Flag) bool { return o.Name == f.Name && o.Two }) {
				out = append(out, f)
			}
		}
	}
	if t.Common != nil {
		for _, f := range t.Common() {
			if out.Find("-"+f.Name) == nil {
				out = append(out, f)
			}
		}
	}
	return out
}

// Unknown handles words that begin with no command: it prints the help without words, and an
// error otherwise.
func (c *Call) Unknown(args []string) int {
	t := c.Table
	if len(args) == 0 {
		fmt.Fprintln(c.Stdout, t.Usage())
		return NoCommand
	}
	if strings.HasPrefix(args[0], "-") {
		hint := "."
		name, _, _ := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		if near := t.Global().Near(name); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return c.Report.Complain(fmt.Sprintf("%s has no global option %q%s Options of a command go after its name.\n\nTo see the global options, run:\n  %s -help\n\n", t.Product, args[0], hint, t.Program))
	}
	return c.Report.Complain(fmt.Sprintf("%s has no command named %q.%s\n\nTo see all of %s's top-level commands, run:\n  %s -help\n\n", t.Product, args[0], t.Suggest(args[0]), t.Product, t.Program))
}

// Usage returns the help of the program.
func (t *Table) Usage() string {
	var b strings.Builder
	b.WriteString(wrap.Fit("Usage: "+t.Program+" [global options] <subcommand> [args]", t.Width, 0) + "\n\n" +
		wrap.Fit("The available commands for execution are listed below.\nThe primary workflow commands are given first, followed by\nless common or more advanced commands.", t.Width, 0) + "\n\nMain commands:\n")
	for _, main := range []bool{true, false} {
		if !main {
			b.WriteString("\nAll other commands:\n")
		}
		all := slices.Clone(t.Commands)
		if !main {
			slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
		}
		for i := range all {
			if c := &all[i]; c.Main == main && !strings.Contains(c.Name, " ") && !c.Hidden {
				b.WriteString(entry(c.Name, c.Synopsis, 16, t.lineWidth()))
			}
		}
	}
	b.WriteString("\nGlobal options (use these before the subcommand, if any):\n")
	for _, f := range t.Global() {
		if !f.Hidden {
			b.WriteString(entry(f.Shown(), f.Help, 16, t.lineWidth()))
		}
	}
	for _, v := range t.Further {
		b.WriteString(entry(v.Name, v.Help, 16, t.lineWidth()))
	}
	b.WriteString("\nExit status without a subcommand:\n")
	for _, x := range t.Bare {
		b.WriteString(entry(x.Shown(), x.Help, 16, t.lineWidth()))
	}
	return strings.TrimRight(b.String(), "\n")
}
