// Package inspect implements the commands that read units and change nothing: find, list, dag
// graph, render, estate check, hcl validate and info.
package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		findCmd(), List(),
		{Name: "dag", Synopsis: "Show how units depend on each other", Usage: "graph [options]", Help: "Draws the dependencies between the units below the working directory.", Prepare: command.Group},
		DAGGraph(), Render(),
		{Name: "estate", Synopsis: "Work on all units below the working directory", Usage: "check [options]", Help: "Works on all units below the working directory as a whole.", Prepare: command.Group},
		Check(), Validate(),
		{Name: "info", Synopsis: "Show the files, directories, role and program of a unit", Usage: "<print|strict list> [options]", Help: Info().Help, Prepare: command.Group},
		Info(),
		{Name: "info strict", Synopsis: "Show the strict controls", Usage: "list [options]", Help: strictList().Help, Prepare: command.Group},
		strictList(),
	}
}

// declare returns the flags of a listing: its own, those that all listings share, and those of
// units. Both TG_LIST_DAG, which Terragrunt reads, and TG_DAG, which its documentation names,
// set a flag.
func (o *listOptions) declare(name string, own ...flag.Flag) flag.Flags {
	var ignored bool
	o.format = "text"
	fs := append(flag.Flags(own),
		flag.Bool(&o.dag, "dag", "Sort units by their dependencies, as they would run."),
		flag.Bool(&o.noHidden, "no-hidden", "Leave out units in hidden directories."),
		flag.Bool(&o.dependencies, "dependencies", "Add the dependencies of each unit."),
		flag.Text(&o.as, "as", "COMMAND", "Select and sort units as a run of this command would.").Completes(flag.Commands),
		flag.Text(&o.as, "queue-construct-as", "COMMAND", "").Hide(),
		flag.Bool(&ignored, "hidden", "").Hide(),
		flag.Bool(&o.units.External, "external", "Also list units outside of the working directory that others depend on."))
	for _, x := range []flag.Flag{
		flag.Bool(&o.json, "json", "").Or("j"), flag.Bool(&o.excluded, "exclude", ""), flag.Bool(&o.included, "include", ""), flag.Bool(&o.reading, "reading", ""),
		flag.Bool(&o.long, "long", "").Or("l"), flag.Bool(&o.tree, "tree", "").Or("T"), flag.Bool(&o.svg, "svg", ""), flag.Text(&o.format, "format", "FORMAT", ""),
	} { // each listing accepts the flags of the others
		if !slices.ContainsFunc(fs, func(f flag.Flag) bool { return f.Name == x.Name }) {
			fs = append(fs, x.Hide())
		}
	}
	for i := range fs {
		if fs[i].Name != "as" {
			fs[i].Env = []string{"TG_" + strings.ToUpper(strings.ReplaceAll(fs[i].Name, "-", "_"))}
		}
	}
	fs = append(fs.WithTwoDashesShown(), o.units.DeclareFor(false)...)
	if name == "list" {
		return unitflags.Under("LIST", fs)
	}
	return fs
}

// settle checks the flags. If they are invalid, it reports an error and returns false.
func (o *listOptions) settle(c *command.Call) (ok bool) {
	if err := o.units.Settle(c.Env); err != nil {
		c.UsageError("Failed to parse command-line flags", err.Error())
		return false
	}
	if len(c.Args) > 0 {
		c.UsageError("Too many command line arguments", "The command takes flags alone.")
		return false
	}
	if words := strings.Fields(o.as); o.as != "" && (len(words) == 0 || strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz-") != "") {
		c.UsageError("Invalid command", "--as (--queue-construct-as) must be a command.")
		return false
	}
	units.WorkIn(c, o.units)
	o.units.NoUse(c.Command.Name, unitflags.Choosing)
	return true
}

// findCmd declares find.
func findCmd() command.Command {
	return command.Command{
		Name: "find", Aliases: []string{"fd"}, Synopsis: "Find the units below the working directory", Usage: "[options]",
		Units: command.TakesUnitFlags, Help: "Lists the units and stacks below the working directory, one a line, or as JSON\nwith their dependencies and the files that they read. For reading in a\nterminal, \"list\" has more formats.",
		Prepare: func() (flag.Flags, command.Run) {
			o := &listOptions{units: &unitflags.Flags{}}
			fs := o.declare("find",
				flag.Bool(&o.json, "json", "As JSON.").Or("j"),
				flag.Bool(&o.included, "include", "Add the files that each unit includes or imports (JSON only)."),
				flag.Bool(&o.reading, "reading", "Add all files that each unit or stack reads (JSON only)."),
				flag.Bool(&o.excluded, "exclude", "Add the exclude block of each unit (JSON only)."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.settle(c) {
					return 1
				}
				if o.json {
					o.format = "json"
				}
				if o.format != "text" && o.format != "json" {
					return c.UsageError("Invalid format", "The formats are text and json.")
				}
				return listUnits(ctx, c, o, false)
			}
		},
	}
}

// List declares list.
func List() command.Command {
	return command.Command{
		Name: "list", Aliases: []string{"ls"}, Synopsis: "List the units below the working directory", Usage: "[options]",
		Units: command.TakesUnitFlags, Help: "Lists the units and stacks below the working directory as text, a table, a tree\nor a graph in the DOT language.",
		Prepare: func() (flag.Flags, command.Run) {
			o := &listOptions{units: &unitflags.Flags{}}
			fs := o.declare("list",
				flag.Bool(&o.long, "long", "A table.").Or("l"),
				flag.Bool(&o.tree, "tree", "Print a tree of directories, or with --dag a tree of dependencies.").Or("T"),
				flag.Text(&o.format, "format", "FORMAT", "text, long, tree or dot."))
			return fs, func(ctx context.Context, c *command.Call) int {
				if !o.settle(c) {
					return 1
				}
				switch {
				case o.long:
					o.format = "long"
				case o.tree:
					o.format = "tree"
				}
				switch o.format {
				case "text", "long", "dot", "tree":
					return listUnits(ctx, c, o, true)
				}
				return c.UsageError("Invalid format", "The formats are text, long, tree and dot.")
			}
		},
	}
}

// listOptions contains the flags of find and list.
type listOptions struct {
	units                                                *unitflags.Flags
	json, dag, dependencies, excluded, included, reading bool
	long, tree, noHidden, svg                            bool
	format, as                                           string
}

// listUnits prints the units and stacks by name, or in the order of a run. It lists invalid
// units too, and prints their errors to Stderr.
func listUnits(ctx context.Context, c *command.Call, o *listOptions, columns bool) int {
	names := !o.dag && !o.dependencies && o.as == "" && o.format != "dot" && !o.included && !o.reading && !o.excluded
	e, ds := openToList(ctx, c, o.units, o.as, discovery.Settings{NamesAlone: names}, o.noHidden)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Filter(ds))
	}
	list := e.Found.Entries(o.dag || o.as != "", o.as == "destroy")
	if o.as != "" {
		list = slices.DeleteFunc(list, func(x estate.Entry) bool { return x.Unit != nil && x.Unit.Excluded != "" })
	}
	switch o.format {
	case "json":
		return findJSON(ctx, c, e, list, o)
	case "dot":
		if err := e.Found.WriteDOT(c.Stdout, o.as != ""); err != nil {
			return 1
		}
		return 0
	case "tree":
		fmt.Fprint(c.Stdout, treeText(list, o.dag))
		return 0
	case "long":
		fmt.Fprint(c.Stdout, longText(e, list, o.dependencies))
		return 0
	}
	lines := make([]string, 0, len(list))
	for _, x := range list {
		lines = append(lines, x.Name)
	}
	if columns && c.System.Terminal.Out && c.System.Terminal.Width != nil {
		fmt.Fprint(c.Stdout, inColumns(lines, c.System.Terminal.Width()))
		return 0
	}
	for _, n := range lines {
		fmt.Fprintln(c.Stdout, n)
	}
	return 0
}

// openToList opens the units for a command that lists them.
func openToList(ctx context.Context, c *command.Call, f *unitflags.Flags, command string, look discovery.Settings, noHidden bool) (*estate.Estate, diag.List) {
	o, ds := units.LookOptions(c, f, command, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	o.Discovery.Destroy, o.Discovery.NoHidden = command == "destroy", noHidden
	o.Discovery.NamesAlone, o.Discovery.Lenient = look.NamesAlone, true
	o.Discovery.Expect = c.System.LeaveHeap
	e, more := units.Open(ctx, c, o)
	return e, append(ds, more...)
}

// inColumns formats names in columns, as wide as the terminal.
func inColumns(names []string, width int) string {
	widest := 0
	for _, n := range names {
		widest = max(widest, len(n))
	}
	per := max(1, width/(widest+2))
	rows := (len(names) + per - 1) / per
	var b strings.Builder
	for r := range rows {
		for i := r; i < len(names); i += rows {
			if i+rows < len(names) {
				fmt.Fprintf(&b, "%-*s", widest+2, names[i])
			} else {
				b.WriteString(names[i])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// longText returns a table of type, path and, on request, dependencies.
func longText(e *estate.Estate, list []estate.Entry, dependencies bool) string {
	width := len("Path")
	for _, x := range list {
		width = max(width, len(x.Name))
	}
	var b strings.Builder
	row := func(kind, name, needs string) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-5s %-*s  %s", kind, width, name, needs), " "))
	}
	head := ""
	if dependencies {
		head = "Dependencies"
	}
	row("Type", "Path", head)
	for _, x := range list {
		needs := ""
		if dependencies {
			needs = strings.Join(dependencyNames(e, x), ", ")
		}
		row(x.Type(), x.Name, needs)
	}
	return b.String()
}

// dependencyNames returns the names of a unit's dependencies. Those outside of the estate are
// last.
func dependencyNames(e *estate.Estate, x estate.Entry) []string {
	if x.Unit == nil {
		return nil
	}
	out := make([]string, 0, len(x.Unit.Needs))
	for _, n := range x.Unit.Needs {
		out = append(out, n.Name)
	}
	for _, id := range x.Unit.External {
		out = append(out, e.Found.Name(id))
	}
	return out
}

// findJSON prints the same JSON as Terragrunt's find --json.
func findJSON(ctx context.Context, c *command.Call, e *estate.Estate, list []estate.Entry, o *listOptions) int {
	type exclusion struct {
		Dependencies *bool    `json:"exclude_dependencies"`
		NoRun        *bool    `json:"no_run"`
		Actions      []string `json:"actions"`
		If           bool     `json:"if"`
	}
	type item struct {
		Type         string            `json:"type"`
		Path         string            `json:"path"`
		Exclude      *exclusion        `json:"exclude,omitempty"`
		Include      map[string]string `json:"include,omitempty"`
		Dependencies []string          `json:"dependencies,omitempty"`
		Reading      []string          `json:"reading,omitempty"`
	}
	t, out := e.Task(ctx), []item{}
	for _, x := range list {
		it := item{Type: x.Type(), Path: x.Name}
		if o.dependencies && x.Unit != nil {
			it.Dependencies = e.Found.NeedNames(x.Unit)
		}
		if x.Unit == nil && o.reading {
			for _, p := range e.Found.ReadingStack(t, x.Name) {
				it.Reading = append(it.Reading, e.Found.Name(p))
			}
		}
		if u := x.Unit; u != nil && u.Broken == nil {
			if o.excluded {
				if ex := discovery.ExcludeBlock(t, u); ex != nil {
					it.Exclude = &exclusion{ifSet(ex, "exclude_dependencies", &ex.ExcludeDependencies), ifSet(ex, "no_run", &ex.NoRun), ex.Actions, ex.If}
				}
			}
			if o.included {
				it.Include = e.Found.Included(t, u)
			}
			if o.reading {
				for _, p := range e.Found.Reading(t, u) {
					it.Reading = append(it.Reading, e.Found.Name(p))
				}
			}
		}
		out = append(out, it)
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the list", "%s.", err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", b)
	return 0
}

// ifSet returns value if the exclude block contains the argument, and nil otherwise.
func ifSet(x *unit.Exclude, name string, value *bool) *bool {
	if slices.Contains(x.Set, name) {
		return value
	}
	return nil
}
