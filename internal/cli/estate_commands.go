package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/estate"
)

// noCommand answers the first word of a command of two.
func noCommand(names string) func() (command.Flags, command.Run) {
	return func() (command.Flags, command.Run) {
		return nil, func(_ context.Context, c *command.Call) int {
			return c.UsageError("No command given", names)
		}
	}
}

// estateCommands are the commands on units and estates.
func estateCommands() []command.Command {
	return append([]command.Command{
		runCmd(), findCmd(), listCmd(),
		{Name: "dag", Synopsis: "Show how units depend on each other", Usage: "graph [options]", Help: "Draws the units below the working folder and what they need.", Prepare: noCommand("The command is \"dag graph\".")},
		dagGraphCmd(), renderCmd(),
		{Name: "estate", Synopsis: "Work on all units below the working folder", Usage: "check [options]", Help: "Works on all units below the working folder as a whole.", Prepare: noCommand("The command is \"estate check\".")},
		estateCheckCmd(),
	}, stackCommands()...)
}

// runCmd declares run.
func runCmd() command.Command {
	return command.Command{
		Name: "run", Synopsis: "Run a command on a unit, or with --all on every unit", Usage: "[options] [--] COMMAND [ARGS]",
		Units: command.TakesUnitFlags,
		Help: `Runs a command on the unit in the working folder, or with --all on every
unit below it, in the order of their dependencies and in one process. What a
unit takes from others that were not applied yet is unknown in its plan; what
cannot be planned so is deferred, and listed with what it waits for.

All units are checked before anything runs, as by "estate check". With --all,
plan -out=FILE saves the plan of all units, which show FILE shows and
run --all apply FILE applies.

The options with two dashes come before the command or behind it; the variable
TG_NAME stands for --name. Other flags of Terragrunt are taken and do nothing.

TG_TELEMETRY_TRACE_EXPORTER and TG_TELEMETRY_METRIC_EXPORTER (console,
otlpHttp, otlpGrpc) send traces and metrics by OpenTelemetry, in the trace that
TRACEPARENT names.`,
		Hint: "Flags of the command that is run stand behind its name, as in \"run --all plan -refresh=false\".",
		Args: []command.Arg{{Name: "COMMAND", Help: "The command to run, with its flags and arguments.", Repeated: true, Complete: command.Commands}},
		Examples: []command.Example{
			{Line: "run --all plan", Text: "Plan every unit below the working folder."},
			{Line: "run --filter 'prod/**' apply -auto-approve", Text: "Apply the units in one folder."},
		},
		Prepare: func() (command.Flags, command.Run) {
			f := &unitFlags{}
			return f.declare(), func(ctx context.Context, c *command.Call) int { return runWords(ctx, c, f) }
		},
	}
}

// runWords is run with its flags set: the arguments are the command and its words.
func runWords(ctx context.Context, c *command.Call, f *unitFlags) int {
	if err := f.settle(c.Env); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	workIn(c, f)
	if len(c.Args) == 0 {
		return c.UsageError("No command given", "Name the command to run on the unit, for example \"run --all plan\" or \"run --all -- apply -refresh=false\".")
	}
	rest, err := flags.View(&c.Report.Options).Take(c.Args, true) // those behind a --
	if err != nil {
		return c.Report.UsageError(c.Args[0], "Failed to parse command-line flags", err.Error())
	}
	c.Report.Open()
	if f.many() {
		return overUnits(ctx, c, rest[0], f, rest[1:])
	}
	cmd, more, found := c.Table.Find(rest)
	if !found {
		return unknownCommand(c, rest)
	}
	c.Command = cmd
	if isUnit(c, &f.selection) && cmd.Name == "apply" && len(more) > 0 && isUnitPlan(c, more[len(more)-1]) {
		return runAll(ctx, c, cmd.Name, f, more)
	}
	if isUnit(c, &f.selection) {
		code, _ := runUnit(ctx, c, cmd, f, more)
		return code
	}
	return c.Do(ctx, cmd, more)
}

// estateCheckCmd declares estate check.
func estateCheckCmd() command.Command {
	return command.Command{
		Name: "estate check", Synopsis: "Check all units and what they take from each other", Usage: "[options]",
		Units: command.TakesUnitFlags,
		Help: `Checks all units below the working folder and what they take from each
other, without state, credentials or providers.`,
		Prepare: func() (command.Flags, command.Run) {
			f, j := &unitFlags{}, flags.JSON{}
			fs := append(command.Flags{command.Bool(&j.On, "json", "Messages as JSON.")}, f.declareFor(false)...)
			return fs.Show("strict"), func(ctx context.Context, c *command.Call) int {
				if err := f.settle(c.Env); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				f.noUse("estate check", choosing+" strict")
				workIn(c, f)
				if !j.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				return runEstateCheck(ctx, c, f)
			}
		},
	}
}

// runEstateCheck checks all units as a whole, without state and providers.
func runEstateCheck(ctx context.Context, c *command.Call, f *unitFlags) int {
	o, ds := lookOptions(c, f, "plan", false)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.Whole, o.Checking = true, true
	e, more := open(ctx, c, o)
	defer e.Close(ctx)
	ds = slices.Concat(ds, more, e.Found.Ungenerated, e.Check(ctx, f.strict))
	ds = ds.Once()
	c.Report.TellWith(e.Sources(), ds)
	if ds.HasErrors() {
		return 1
	}
	c.Report.Human.Good("Success!")
	text := fmt.Sprintf(" %d units fit together.\n", len(e.Found.Units))
	if len(e.Found.Units) == 1 {
		text = " The one unit is right by itself.\n"
	}
	c.Report.Say(text)
	return 0
}

// openEstate opens the units for a command that only looks at them.
func openEstate(ctx context.Context, c *command.Call, f *unitFlags, command string, noHidden bool) (*estate.Estate, diag.List) {
	o, ds := lookOptions(c, f, command, noHidden)
	if ds.HasErrors() {
		return nil, ds
	}
	e, more := open(ctx, c, o)
	return e, append(ds, more...)
}

// lookOptions are those of a command that only looks at units.
func lookOptions(c *command.Call, f *unitFlags, command string, noHidden bool) (estate.Options, diag.List) {
	o, ds := estateOptions(c, f, command, nil, nil)
	o.Discovery.Destroy, o.Discovery.NoHidden = command == "destroy", noHidden
	o.Discovery.Generate = !f.noStackGenerate
	return o, ds
}

// failWith tells errors about the files of an estate.
func failWith(c *command.Call, e *estate.Estate, ds diag.List) int {
	if e == nil {
		return c.Fail(ds)
	}
	c.Report.TellWith(e.Sources(), ds)
	return 1
}

func unitPath(c *command.Call, f *unitFlags) string {
	if f.config != "" {
		return c.Path(f.config)
	}
	if path := environmentFile(c, &f.selection); path != "" {
		return path
	}
	return c.Dir
}
