package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/internal/cli/view"
)

// estateCommands are the commands on units and estates.
func estateCommands() []command {
	return []command{
		{name: "run", synopsis: "Run a command on a unit, or with --all on every unit", usage: runUsage, run: runCommand},
		{name: "find", synopsis: "Find the units below the working folder", usage: findUsage, run: findCommand},
		{name: "list", synopsis: "List the units below the working folder", usage: listUsage, run: listCommand},
		{name: "dag", synopsis: "Show how units depend on each other", usage: dagUsage, run: dagCommand},
		{name: "dag graph", synopsis: "Draw the units' dependencies in DOT", usage: dagUsage, run: dagGraphCommand},
		{name: "render", synopsis: "Show the effective configuration of a unit", usage: renderUsage, run: renderCommand},
		{name: "estate", synopsis: "Work on all units below the working folder", usage: estateCheckUsage, run: estateCommand},
		{name: "estate check", synopsis: "Check all units and what they take from each other", usage: estateCheckUsage, run: estateCheckCommand},
	}
}

// runCommand is `run [--all] [flags] [--] COMMAND ARGS`.
func runCommand(ctx context.Context, s *session, args []string) int {
	f, rest, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return s.usageError("run", "Failed to parse command-line flags", err.Error())
	}
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return s.usageError("run", "No command given", "Name the command to run on the unit, for example \"run --all plan\" or \"run --all -- apply -refresh=false\".")
	}
	if f.all || f.graph || len(f.filters) > 0 {
		return s.runAll(ctx, rest[0], f, rest[1:])
	}
	cmd, more, found := lookup(rest)
	if !found {
		return s.noCommand(rest)
	}
	if more, err = s.viewFlags(more); err != nil {
		return s.usageError(cmd.name, "Failed to parse command-line flags", err.Error())
	}
	s.command = cmd.name
	if s.isUnit(f) {
		return s.runUnit(ctx, cmd, f, more)
	}
	return cmd.run(ctx, s, more)
}

// openEstate opens the units for a command that only looks at them.
func (s *session) openEstate(ctx context.Context, f *unitFlags, command string, noHidden bool) (*estate.Estate, diag.List) {
	o, ds := s.estateOptions(f, command, nil, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	o.Destroy, o.NoHidden = command == "destroy", noHidden
	e, more := estate.Open(ctx, o)
	return e, append(ds, more...)
}

// listOptions are the flags of find and list.
type listOptions struct {
	units                             *unitFlags
	json, dag, dependencies, excluded bool
	long, noHidden                    bool
	format, as                        string
}

func (s *session) listFlags(name string, args []string) (*listOptions, bool) {
	o := &listOptions{}
	var err error
	if o.units, args, err = takeUnitFlags(args, s.Env); err != nil {
		s.usageError(name, "Failed to parse command-line flags", err.Error())
		return nil, false
	}
	f := newFlags(name)
	var ignored bool
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.json, "j", false, "")
	f.BoolVar(&o.dag, "dag", false, "")
	f.BoolVar(&o.dependencies, "dependencies", false, "")
	f.BoolVar(&o.excluded, "exclude", false, "")
	f.BoolVar(&o.noHidden, "no-hidden", false, "")
	f.BoolVar(&ignored, "hidden", false, "")
	f.BoolVar(&ignored, "external", false, "")
	f.StringVar(&o.format, "format", "text", "")
	f.StringVar(&o.as, "queue-construct-as", "", "")
	f.StringVar(&o.as, "as", "", "")
	f.BoolVar(&o.long, "l", false, "")
	if !s.parse(f, args) {
		return nil, false
	}
	if f.NArg() > 0 {
		s.usageError(name, "Too many command line arguments", "The command takes flags alone.")
		return nil, false
	}
	if o.units.working != "" {
		s.System = s.System.In(o.units.working)
	}
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
	return s.listUnits(ctx, o)
}

func listCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.listFlags("list", args)
	if !ok {
		return 1
	}
	if o.long {
		o.format = "long"
	}
	switch o.format {
	case "text", "long", "dot":
		return s.listUnits(ctx, o)
	}
	return s.usageError("list", "Invalid format", "The formats are text, long and dot.")
}

// listUnits prints the units by name, or in the order of a run.
func (s *session) listUnits(ctx context.Context, o *listOptions) int {
	e, ds := s.openEstate(ctx, o.units, o.as, o.noHidden)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	units := e.Units
	if o.dag || o.as != "" {
		units = e.Order(o.as == "destroy")
	}
	if o.as != "" {
		units = slices.DeleteFunc(slices.Clone(units), func(u *estate.Unit) bool { return u.Excluded != "" })
	}
	switch o.format {
	case "json":
		return s.findJSON(ctx, e, units, o)
	case "dot":
		if err := e.WriteDOT(s.Stdout); err != nil {
			return 1
		}
		return 0
	}
	for _, name := range e.Stacks {
		if o.format == "long" {
			name = "stack " + name
		}
		fmt.Fprintln(s.Stdout, name)
	}
	for _, u := range units {
		line := u.Name
		if o.format == "long" {
			line = "unit  " + line
		}
		if o.dependencies && len(u.Needs)+len(u.External) > 0 {
			line += "  (needs " + strings.Join(append(names(u.Needs), u.External...), ", ") + ")"
		}
		fmt.Fprintln(s.Stdout, line)
	}
	return 0
}

func names(units []*estate.Unit) []string {
	out := make([]string, 0, len(units))
	for _, u := range units {
		out = append(out, u.Name)
	}
	return out
}

func (s *session) findJSON(ctx context.Context, e *estate.Estate, units []*estate.Unit, o *listOptions) int {
	type exclusion struct {
		Reason string `json:"reason"`
	}
	type item struct {
		Type         string     `json:"type"`
		Path         string     `json:"path"`
		Dependencies []string   `json:"dependencies,omitempty"`
		Exclude      *exclusion `json:"exclude,omitempty"`
	}
	list := []item{}
	for _, name := range e.Stacks {
		list = append(list, item{Type: "stack", Path: name})
	}
	for _, u := range units {
		it := item{Type: "unit", Path: u.Name}
		if o.dependencies || o.dag {
			it.Dependencies = names(u.Needs)
			for _, x := range u.External {
				it.Dependencies = append(it.Dependencies, e.RelativeName(x))
			}
		}
		if o.excluded && u.Excluded != "" {
			it.Exclude = &exclusion{u.Excluded}
		}
		list = append(list, it)
	}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write the list", "%s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", b)
	return 0
}

// failWith tells errors about the files of an estate.
func (s *session) failWith(e *estate.Estate, ds diag.List) int {
	if e == nil {
		return s.fail(ds)
	}
	s.tellWith(e.Sources(), ds)
	return 1
}

func dagCommand(_ context.Context, s *session, _ []string) int {
	return s.usageError("dag graph", "No command given", "The command is \"dag graph\".")
}

func dagGraphCommand(ctx context.Context, s *session, args []string) int {
	o, ok := s.listFlags("dag graph", args)
	if !ok {
		return 1
	}
	o.format = "dot"
	return s.listUnits(ctx, o)
}

func estateCommand(_ context.Context, s *session, _ []string) int {
	return s.usageError("estate check", "No command given", "The command is \"estate check\".")
}

// estateCheckCommand checks all units as a whole, without state and providers.
func estateCheckCommand(ctx context.Context, s *session, args []string) int {
	f, rest, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return s.usageError("estate check", "Failed to parse command-line flags", err.Error())
	}
	fl := newFlags("estate check")
	var j jsonFlags
	fl.BoolVar(&j.on, "json", false, "")
	if !s.parse(fl, rest) {
		return 1
	}
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	if !s.useJSON(j) {
		return 1
	}
	defer s.finish()
	e, ds := s.openEstate(ctx, f, "plan", false)
	if !ds.HasErrors() {
		ds = append(ds, e.Ungenerated...)
		ds = append(ds, e.Warnings...)
		ds = append(ds, e.Check(ctx, f.strict)...)
	}
	if e == nil {
		return s.fail(ds)
	}
	s.tellWith(e.Sources(), ds)
	if ds.HasErrors() {
		return 1
	}
	s.human.Good("Success!")
	s.say(fmt.Sprintf(" %d units fit together.\n", len(e.Units)))
	return 0
}

// renderCommand prints the effective configuration of a unit.
func renderCommand(ctx context.Context, s *session, args []string) int {
	f, rest, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return s.usageError("render", "Failed to parse command-line flags", err.Error())
	}
	fl := newFlags("render")
	var asJSON, metadata bool
	var format string
	fl.BoolVar(&asJSON, "json", false, "")
	fl.BoolVar(&metadata, "with-metadata", false, "")
	fl.StringVar(&format, "format", "hcl", "")
	if !s.parse(fl, rest) {
		return 1
	}
	if f.all || len(f.filters) > 0 {
		return s.fail(diag.Errorf(nil, "Failed to parse command-line flags", "render with --all is not part of this version. Render one unit at a time."))
	}
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	o, ds := s.estateOptions(f, "render", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	e, u, ds := estate.OpenUnit(ctx, o.Tolerate(), s.unitPath(f), f.module)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	b, ds := e.Render(ctx, u, asJSON || format == "json" || metadata, metadata)
	if len(ds) > 0 {
		p := s.printer(e.Sources())
		_ = p.Print(s.Stderr, ds)
	}
	if ds.HasErrors() {
		return 1
	}
	_, _ = s.Stdout.Write(append([]byte(strings.TrimRight(string(b), "\n")), '\n'))
	return 0
}

func (s *session) unitPath(f *unitFlags) string {
	if f.config != "" {
		return s.Path(f.config)
	}
	return s.Dir
}

// unitOptions is the help on the flags that commands on units share.
func unitOptions() []string {
	return []string{
		option("--all, -a", "Run on every unit below the working folder."),
		option("--filter=QUERY", "Take the units that a query matches. May be repeated."),
		option("--feature=NAME=VALUE", "Set a feature flag. May be repeated."),
		option("--config=PATH", "The unit file."),
		option("--module=NAME", "The module of an environment file."),
		option("--working-dir=PATH", "The folder to work in."),
		option("--download-dir=PATH", "Where modules run, .terragrunt-cache by default."),
		option("--source=URL", "The source of the module, in place of the unit's own."),
		option("--no-deprecation-warnings", "Say nothing of deprecated parts of unit files."),
	}
}

func runUsage() string {
	return usageText("Usage: "+view.Program+" [global options] run [options] [--] COMMAND [ARGS]\n\n"+
		"  Runs a command on the unit in the working folder, or with --all on every\n  unit below it, in the order of their dependencies and in one process. What a\n  unit takes from others that were not applied yet is unknown in its plan.",
		append(unitOptions(),
			option("--parallelism=N", "How many units run at once. -parallelism counts the calls of providers in one unit."),
			option("--non-interactive", "Do not ask; plan and apply are done."),
			option("--fail-fast", "Start nothing more after a unit failed."),
			option("--queue-ignore-errors", "Run units though others that they need failed."),
			option("--queue-ignore-dag-order", "Run units in no order."),
			option("--use-mocks", "Let mock outputs come before planned ones."),
			option("--strict", "Make inputs that a module does not declare errors."),
			option("--report-file=PATH", "Write a report of the run, as CSV or JSON."),
			option("--summary-disable", "Print no summary."))...)()
}

func findUsage() string {
	return usageText("Usage: "+view.Program+" [global options] find [options]\n\n  Lists the units below the working folder.", listingOptions()...)()
}

func listUsage() string {
	return usageText("Usage: "+view.Program+" [global options] list [options]\n\n  Lists the units below the working folder.", append(listingOptions(), option("-l", "Long form."))...)()
}

func listingOptions() []string {
	return append([]string{
		option("--json", "JSON (find alone)."),
		option("--dag", "In the order of a run."),
		option("--no-hidden", "Without the units in hidden folders."),
		option("--dependencies", "With what each unit needs."),
		option("--as=COMMAND", "As a run of the command would take them."),
	}, unitOptions()[1:]...)
}

func dagUsage() string {
	return usageText("Usage: "+view.Program+" [global options] dag graph [options]\n\n  Draws the units below the working folder and what they need, in DOT.", unitOptions()[1:]...)()
}

func estateCheckUsage() string {
	return usageText("Usage: "+view.Program+" [global options] estate check [options]\n\n"+
		"  Checks all units below the working folder and what they take from each\n  other, without state, credentials or providers.",
		append([]string{option("--strict", "Make inputs that a module does not declare errors."), option("-json", "Messages as JSON.")}, unitOptions()[1:]...)...)()
}

func renderUsage() string {
	return usageText("Usage: "+view.Program+" [global options] render [options]\n\n  Prints the effective configuration of the unit in the working folder.",
		append([]string{option("--json", "As JSON."), option("--with-metadata", "As JSON, with the file and line of each key.")}, unitOptions()[2:]...)...)()
}
