package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/unit"
)

// listOptions are the flags of find and list.
type listOptions struct {
	units                                                *unitFlags
	json, dag, dependencies, excluded, included, reading bool
	long, tree, noHidden, svg                            bool
	format, as                                           string
}

// listFlags reads the flags of a listing. Variables named TG_LIST_DAG, as
// Terragrunt reads them, and TG_DAG, as its documentation has them, both count.
func (s *session) listFlags(name string, args []string) (*listOptions, bool) {
	o := &listOptions{}
	env := s.Env
	if name == "list" {
		env = withoutInfix(env, "LIST")
	}
	var err error
	if o.units, args, err = takeUnitFlags(args, env); err != nil {
		s.usageError(name, "Failed to parse command-line flags", err.Error())
		return nil, false
	}
	f := newFlags(name)
	var ignored bool
	for _, b := range []struct {
		into  *bool
		names string
	}{
		{&o.json, "json j"}, {&o.dag, "dag"}, {&o.dependencies, "dependencies"}, {&o.excluded, "exclude"}, {&o.included, "include"},
		{&o.reading, "reading"}, {&o.noHidden, "no-hidden"}, {&ignored, "hidden external"}, {&o.long, "long l"}, {&o.tree, "tree T"}, {&o.svg, "svg"},
	} {
		for _, n := range strings.Fields(b.names) {
			f.BoolVar(b.into, n, false, "")
		}
	}
	f.StringVar(&o.format, "format", "text", "")
	f.StringVar(&o.as, "queue-construct-as", "", "")
	f.StringVar(&o.as, "as", "", "")
	f.VisitAll(func(fl *flag.Flag) {
		v := env.Get("TG_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_")))
		if len(fl.Name) > 1 && fl.Name != "as" && v != "" && err == nil {
			if err = f.Set(fl.Name, v); err != nil {
				err = fmt.Errorf("invalid value %q for the environment variable of --%s: %w", v, fl.Name, err)
			}
		}
	})
	if err != nil {
		s.usageError(name, "Failed to parse command-line flags", err.Error())
		return nil, false
	}
	if !s.parse(f, args) {
		return nil, false
	}
	if f.NArg() > 0 {
		s.usageError(name, "Too many command line arguments", "The command takes flags alone.")
		return nil, false
	}
	s.workIn(o.units)
	o.units.noUse(name, choosing)
	return o, true
}

func findCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.listFlags("find", args)
	if !ok {
		return 1
	}
	if o.json {
		o.format = "json"
	}
	if o.format != "text" && o.format != "json" {
		return s.usageError("find", "Invalid format", "The formats are text and json.")
	}
	return s.listUnits(ctx, o, false)
}

func listCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.listFlags("list", args)
	if !ok {
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
		return s.listUnits(ctx, o, true)
	}
	return s.usageError("list", "Invalid format", "The formats are text, long, tree and dot.")
}

// listUnits prints the units and stacks by name, or in the order of a run. A unit
// that cannot be read is listed too, and what is wrong with it goes to Stderr.
func (s *session) listUnits(ctx context.Context, o *listOptions, columns bool) int {
	names := !o.dag && !o.dependencies && o.as == "" && o.format != "dot" && !o.included && !o.reading && !o.excluded
	e, ds := s.openToList(ctx, o.units, o.as, estate.Look{NamesAlone: names}, o.noHidden)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	if len(ds) > 0 {
		_ = s.printer(e.Sources()).Print(s.Stderr, s.filter(ds))
	}
	list := e.Entries(o.dag || o.as != "", o.as == "destroy")
	if o.as != "" {
		list = slices.DeleteFunc(list, func(x estate.Entry) bool { return x.Unit != nil && x.Unit.Excluded != "" })
	}
	switch o.format {
	case "json":
		return s.findJSON(ctx, e, list, o)
	case "dot":
		if err := e.WriteDOT(s.Stdout); err != nil {
			return 1
		}
		return 0
	case "tree":
		fmt.Fprint(s.Stdout, treeText(list, o.dag))
		return 0
	case "long":
		fmt.Fprint(s.Stdout, longText(e, list, o.dependencies))
		return 0
	}
	lines := make([]string, 0, len(list))
	for _, x := range list {
		lines = append(lines, x.Name)
	}
	if columns && s.Terminal.Out && s.Terminal.Width != nil {
		fmt.Fprint(s.Stdout, inColumns(lines, s.Terminal.Width()))
		return 0
	}
	for _, n := range lines {
		fmt.Fprintln(s.Stdout, n)
	}
	return 0
}

// openToList opens the units for a command that lists them.
func (s *session) openToList(ctx context.Context, f *unitFlags, command string, look estate.Look, noHidden bool) (*estate.Estate, diag.List) {
	o, ds := s.estateOptions(f, command, nil, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	o.Destroy, o.Look.NoHidden = command == "destroy", noHidden
	o.Look.NamesAlone, o.Look.Lenient = look.NamesAlone, true
	e, more := s.open(ctx, o)
	return e, append(ds, more...)
}

// inColumns sets names in columns, as wide as the terminal.
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

// longText is a table of type, path and, if asked for, dependencies.
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

// dependencyNames are the names of what a unit needs, those outside at the end.
func dependencyNames(e *estate.Estate, x estate.Entry) []string {
	if x.Unit == nil {
		return nil
	}
	out := make([]string, 0, len(x.Unit.Needs))
	for _, n := range x.Unit.Needs {
		out = append(out, n.Name)
	}
	for _, id := range x.Unit.External {
		out = append(out, e.RelativeName(id))
	}
	return out
}

// findJSON prints what Terragrunt's find --json prints.
func (s *session) findJSON(ctx context.Context, e *estate.Estate, list []estate.Entry, o *listOptions) int {
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
	out := []item{}
	for _, x := range list {
		it := item{Type: x.Type(), Path: x.Name}
		if o.dependencies && x.Unit != nil {
			it.Dependencies = e.NeedNames(x.Unit)
		}
		if u := x.Unit; u != nil && u.Broken == nil {
			if o.excluded {
				if ex := e.ExcludeBlock(ctx, u); ex != nil {
					it.Exclude = &exclusion{ifSet(ex, "exclude_dependencies", &ex.ExcludeDependencies), ifSet(ex, "no_run", &ex.NoRun), ex.Actions, ex.If}
				}
			}
			if o.included {
				it.Include = e.Included(ctx, u)
			}
			if o.reading {
				for _, p := range e.Reading(ctx, u) {
					it.Reading = append(it.Reading, e.RelativeName(p))
				}
			}
		}
		out = append(out, it)
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write the list", "%s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", b)
	return 0
}

// ifSet is an argument of an exclude block, nil if it is not written.
func ifSet(x *unit.Exclude, name string, value *bool) *bool {
	if slices.Contains(x.Set, name) {
		return value
	}
	return nil
}

// relativeTo is a path as seen from a folder, with slashes.
func relativeTo(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

func findUsage() string {
	return usageText("Usage: "+view.Program+" [global options] find [options]\n\n  Lists the units and stacks below the working folder.", append([]string{
		option("--json, -j", "As JSON."),
		option("--include", "With the files that each unit includes or imports (JSON)."),
		option("--reading", "With all files that each unit is made of (JSON)."),
		option("--exclude", "With the exclude block of each unit (JSON)."),
	}, listingOptions()...)...)()
}

func listUsage() string {
	return usageText("Usage: "+view.Program+" [global options] list [options]\n\n  Lists the units and stacks below the working folder.", append([]string{
		option("--long, -l", "A table."),
		option("--tree, -T", "A tree of folders, or with --dag of what needs what."),
		option("--format=FORMAT", "text, long, tree or dot."),
	}, listingOptions()...)...)()
}

func listingOptions() []string {
	return append([]string{
		option("--dag", "In the order of a run."),
		option("--no-hidden", "Without the units in hidden folders."),
		option("--dependencies", "With what each unit needs."),
		option("--as=COMMAND", "As a run of the command would take them."),
	}, choiceOptions()...)
}
