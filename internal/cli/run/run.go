// Package run runs commands on units: on the unit in the working directory, or with --all on
// all units below it, as a whole or one after the other. It prints and saves the results.
//
// Main type: estateRun, a run over several units. The one rule: the whole estate is checked
// before anything runs.
package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Command declares the command run.
func Command() command.Command {
	return command.Command{
		Name: "run", Synopsis: "Run a command on a unit, or with --all on every unit", Usage: "[options] [--] COMMAND [ARGS]",
		Uses:  command.Temporal,
		Units: command.TakesUnitFlags,
		Help: `Runs a command on the unit in the working directory, or with --all on every
unit below it, in the order of their dependencies and in one process. Outputs
of units that were not applied yet are unknown in the plans that use them.
Resources that cannot be planned with unknown values are deferred, and listed
with the output that they wait for.

All units are checked before anything runs, as by "estate check". With --all,
"plan -out=FILE" saves the plans of all units in one file, for "show FILE" and
"run --all apply FILE".

Options with two dashes can stand before or after the command. The variable
TG_NAME sets the option --name. Flags of Terragrunt that are not listed here
are accepted and have no effect.

TG_TELEMETRY_TRACE_EXPORTER and TG_TELEMETRY_METRIC_EXPORTER (console,
otlpHttp, otlpGrpc) export traces and metrics with OpenTelemetry, as part of
the trace in TRACEPARENT.`,
		Hint: "Flags of the command that is run go after its name, as in \"run --all plan -refresh=false\".",
		Args: []command.Arg{{Name: "COMMAND", Help: "The command to run, with its flags and arguments.", Repeated: true, Complete: flag.CommandLine}},
		Examples: []command.Example{
			{Line: "run --all plan", Text: "Plan every unit below the working directory."},
			{Line: "run --filter 'prod/**' apply -auto-approve", Text: "Apply the units in one directory."},
		},
		Exits: []command.Exit{
			{Code: 0, Help: "The command succeeded in every unit; with -detailed-exitcode, and no unit has changes."},
			{Code: 1, Help: "There was an error in some unit."},
			{Code: 2, Help: "With -detailed-exitcode: some unit has changes, and none an error."},
			{Code: -1, Help: "Without --all and the like: the status of the command that is run."},
		},
		Prepare: func() (flag.Flags, command.Run) {
			f := &unitflags.Flags{}
			return f.Declare(), func(ctx context.Context, c *command.Call) int { return Words(ctx, c, f) }
		},
	}
}

// Words implements the command run after its flags are set. The arguments of c are the command
// to run and its words.
func Words(ctx context.Context, c *command.Call, f *unitflags.Flags) int {
	if err := f.Settle(c.Env); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	units.WorkIn(c, f)
	if len(c.Args) == 0 {
		return c.UsageError("No command given", "Name the command to run on the unit, for example \"run --all plan\" or \"run --all -- apply -refresh=false\".")
	}
	rest, err := flags.View(&c.Report.Options).Take(c.Args, true) // keeps the words after --
	if err != nil {
		return c.Report.UsageError(c.Args[0], "Failed to parse command-line flags", err.Error())
	}
	if rest, err = withEnvironment(c, rest); err != nil {
		return c.Report.Complain(fmt.Sprintf("Error parsing extra CLI args from %s\n", err))
	}
	c.Report.Open()
	if code, ok := engineWords(ctx, c, f, rest); ok {
		return code
	}
	if why := idleEngineFlag(f); why != "" {
		return c.UsageError("Options do not go together", why)
	}
	if f.Many() {
		return overUnits(ctx, c, rest[0], f, rest[1:])
	}
	cmd, more, found := c.Table.Find(rest)
	if !found {
		return c.Unknown(rest)
	}
	c.Command = cmd
	if units.IsUnit(c, &f.Selection) && cmd.Name == "apply" && len(more) > 0 && isUnitPlan(c, more[len(more)-1]) {
		return runAll(ctx, c, cmd.Name, f, more)
	}
	if units.IsUnit(c, &f.Selection) {
		code, _ := runUnit(ctx, c, cmd, f, more)
		return code
	}
	return c.Do(ctx, cmd, more)
}

// withEnvironment adds the words of TF_CLI_ARGS and TF_CLI_ARGS_command to the words of the
// command to run.
func withEnvironment(c *command.Call, words []string) ([]string, error) {
	cmd, rest, found := c.Table.Find(words)
	if !found {
		return words, nil
	}
	all, err := command.WithEnvironment(c.Env, cmd.Name, rest)
	if err != nil {
		return nil, err
	}
	if all, err = flags.View(&c.Report.Options).Take(all, true); err != nil {
		return nil, err
	}
	return append(strings.Fields(cmd.Name), all...), nil
}
