package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate"
)

// estateCommands are the commands on units and estates.
func estateCommands() []command {
	return append([]command{
		{name: "run", synopsis: "Run a command on a unit, or with --all on every unit", usage: runUsage, run: runCommand},
		{name: "find", synopsis: "Find the units below the working folder", usage: findUsage, run: findCommand},
		{name: "list", synopsis: "List the units below the working folder", usage: listUsage, run: listCommand},
		{name: "dag", synopsis: "Show how units depend on each other", usage: dagUsage, run: dagCommand},
		{name: "dag graph", synopsis: "Draw the units' dependencies in DOT", usage: dagUsage, run: dagGraphCommand},
		{name: "render", synopsis: "Show the effective configuration of a unit", usage: renderUsage, run: renderCommand},
		{name: "estate", synopsis: "Work on all units below the working folder", usage: estateCheckUsage, run: estateCommand},
		{name: "estate check", synopsis: "Check all units and what they take from each other", usage: estateCheckUsage, run: estateCheckCommand},
		{name: "fd", hidden: true, synopsis: "The same as find", usage: findUsage, run: findCommand},
		{name: "ls", hidden: true, synopsis: "The same as list", usage: listUsage, run: listCommand},
	}, stackCommands()...)
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
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		return s.usageError("run", "Failed to parse command-line flags", fmt.Sprintf("flag provided but not defined: %s. Flags of the command that is run stand behind its name, as in \"run --all plan -refresh=false\".", rest[0]))
	}
	if len(rest) == 0 {
		return s.usageError("run", "No command given", "Name the command to run on the unit, for example \"run --all plan\" or \"run --all -- apply -refresh=false\".")
	}
	if rest, err = s.viewFlags(rest); err != nil { // those behind a --
		return s.usageError(rest[0], "Failed to parse command-line flags", err.Error())
	}
	s.openViews()
	if f.many() {
		return s.overUnits(ctx, rest[0], f, rest[1:])
	}
	cmd, more, found := lookup(rest)
	if !found {
		return s.noCommand(rest)
	}
	s.command = cmd.name
	if s.isUnit(&f.selection) && cmd.name == "apply" && len(more) > 0 && s.isUnitPlan(more[len(more)-1]) {
		return s.runAll(ctx, cmd.name, f, more)
	}
	if s.isUnit(&f.selection) {
		return s.runUnit(ctx, cmd, f, more)
	}
	return cmd.run(ctx, s, more)
}

// openEstate opens the units for a command that only looks at them.
func (s *session) openEstate(ctx context.Context, f *unitFlags, command string, noHidden bool) (*estate.Estate, diag.List) {
	o, ds := s.lookOptions(f, command, noHidden)
	if ds.HasErrors() {
		return nil, ds
	}
	e, more := s.open(ctx, o)
	return e, append(ds, more...)
}

// lookOptions are those of a command that only looks at units.
func (s *session) lookOptions(f *unitFlags, command string, noHidden bool) (estate.Options, diag.List) {
	o, ds := s.estateOptions(f, command, nil, nil)
	o.Destroy, o.Look.NoHidden = command == "destroy", noHidden
	o.Look.Generate = !f.noStackGenerate
	return o, ds
}

// failWith tells errors about the files of an estate.
func (s *session) failWith(e *estate.Estate, ds diag.List) int {
	if e == nil {
		return s.fail(ds)
	}
	s.tellWith(e.Sources(), ds)
	return 1
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
	f.noUse("estate check", choosing+" strict")
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	if !s.useJSON(j) {
		return 1
	}
	defer s.finish()
	o, ds := s.lookOptions(f, "plan", false)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	o.Look.Whole, o.Look.Checking = true, true
	e, more := s.open(ctx, o)
	defer e.Close(ctx)
	ds = slices.Concat(ds, more, e.Ungenerated, e.Check(ctx, f.strict))
	ds = ds.Once()
	s.tellWith(e.Sources(), ds)
	if ds.HasErrors() {
		return 1
	}
	s.human.Good("Success!")
	text := fmt.Sprintf(" %d units fit together.\n", len(e.Units))
	if len(e.Units) == 1 {
		text = " The one unit is right by itself.\n"
	}
	s.say(text)
	return 0
}

func (s *session) unitPath(f *unitFlags) string {
	if f.config != "" {
		return s.Path(f.config)
	}
	if path := s.environmentFile(&f.selection); path != "" {
		return path
	}
	return s.Dir
}
