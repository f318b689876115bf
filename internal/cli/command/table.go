package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/lang"
)

// A Table is all commands of a program.
type Table struct {
	Program  string // as it is typed
	Product  string // as it is called in texts
	Commands []Command
	Global   func() Flags // those in front of a command
	Further  []Arg        // what the help says of others there, by what stands for their names
	Common   func() Flags // those that every command understands
	Units    func() Flags // those of commands on units
	Topics   []Topic
	Exits    []Exit // what every command may end with, besides what it declares
	Bare     []Exit // what the program ends with when no command is named
	// Environment are all environment variables, those of one group beside each other.
	Environment []Variable
}

// NoCommand is the status when no command was named, so that the help was shown: that of
// shells for a command that they do not find.
const NoCommand = 127

// Statuses are what a command may end with, those of every command last.
func (t *Table) Statuses(c *Command) []Exit {
	own := c.Exits
	if len(own) == 0 {
		own = []Exit{{0, "Success."}, {1, "There was an error."}}
	}
	return slices.Concat(own, t.Exits)
}

// A Topic is a page of help that is about no single command.
type Topic struct{ Name, Synopsis, Text string }

// Find is the command that words begin with: the one of the most words. rest are the
// words behind its name.
func (t *Table) Find(words []string) (cmd *Command, rest []string, ok bool) {
	for n := min(3, len(words)); n > 0; n-- {
		if c := t.Named(strings.Join(words[:n], " ")); c != nil {
			return c, words[n:], true
		}
	}
	return nil, nil, false
}

// Named is the command of a name, nil if there is none.
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

// Subcommands are the commands of one word more.
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

// Suggest is a hint at a command with a similar name, "" without one.
func (t *Table) Suggest(name string) string {
	names := map[string]bool{}
	for i := range t.Commands {
		if !t.Commands[i].Hidden {
			names[t.Commands[i].Name] = true
		}
	}
	return lang.Suggest(name, names)
}

// Below is a sentence that names the commands of a group.
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

// Flags are all flags of a command, those of units and those of every command too.
func (t *Table) Flags(c *Command) Flags {
	var out Flags
	if c.Prepare != nil {
		out, _ = c.Prepare()
	}
	if (c.Units.Has(InUnit) || c.Units.Has(TakesUnitFlags)) && t.Units != nil {
		for _, f := range t.Units() {
			if out.find("--"+f.Name, f.Name) == nil || f.Two && !out.has(f.Name, true) {
				out = append(out, f)
			}
		}
	}
	if t.Common != nil {
		for _, f := range t.Common() {
			if out.find("-"+f.Name, f.Name) == nil {
				out = append(out, f)
			}
		}
	}
	return out
}

func (fs Flags) has(name string, two bool) bool {
	for i := range fs {
		if fs[i].Name == name && fs[i].Two == two {
			return true
		}
	}
	return false
}

// Unknown answers what is no command: usage, help, or an error.
func (c *Call) Unknown(args []string) int {
	t := c.Table
	if len(args) == 0 {
		fmt.Fprintln(c.Stdout, t.Usage())
		return NoCommand
	}
	if strings.HasPrefix(args[0], "-") {
		fmt.Fprintf(c.Stderr, "%s has no global option %q. Options of a command go after its name.\n\nTo see the global options, run:\n  %s -help\n\n", t.Product, args[0], t.Program)
		return 1
	}
	fmt.Fprintf(c.Stderr, "%s has no command named %q.%s\n\nTo see all of %s's top-level commands, run:\n  %s -help\n\n", t.Product, args[0], t.Suggest(args[0]), t.Product, t.Program)
	return 1
}

// Usage is the help of the program.
func (t *Table) Usage() string {
	var b strings.Builder
	b.WriteString("Usage: " + t.Program + " [global options] <subcommand> [args]\n\n" +
		"The available commands for execution are listed below.\nThe primary workflow commands are given first, followed by\nless common or more advanced commands.\n\nMain commands:\n")
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
				fmt.Fprintf(&b, "  %-12s  %s\n", c.Name, c.Synopsis)
			}
		}
	}
	b.WriteString("\nGlobal options (use these before the subcommand, if any):\n")
	for _, f := range t.Global() {
		if !f.Hidden {
			b.WriteString(entry(f.Shown(), f.Help, 16))
		}
	}
	for _, v := range t.Further {
		b.WriteString(entry(v.Name, v.Help, 16))
	}
	b.WriteString("\nExit status without a subcommand:\n")
	for _, x := range t.Bare {
		b.WriteString(entry(x.Shown(), x.Help, 16))
	}
	return strings.TrimRight(b.String(), "\n")
}
