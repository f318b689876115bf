// Package execcmd implements the command exec, which runs a program with the environment of a
// unit.
//
// Main function: Command. The one rule: the program has the terminal and the streams of the
// command, and its exit status becomes the status of the command.
package execcmd

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Command declares exec.
func Command() command.Command {
	return command.Command{
		Name: "exec", Synopsis: "Run a program with the inputs and credentials of a unit", Usage: "[options] -- PROGRAM [ARGS]",
		Units: command.InUnit | command.Uninitialized,
		Help: `Run a program in the directory of the unit, with its inputs as TF_VAR_name in
the environment, the env_vars of its extra_arguments blocks, and the
credentials of its role. Everything after -- belongs to the program. The exit
status is that of the program.`,
		Args:     []command.Arg{{Name: "PROGRAM", Help: "The program and its arguments.", Repeated: true}},
		Examples: []command.Example{{Line: "exec -- sh -c 'echo $TF_VAR_region'", Text: "Print an input."}},
		Exits:    []command.Exit{{Code: 0, Help: "The program succeeded."}, {Code: 1, Help: "There was an error before the program ran, or it was ended by a signal."}, {Code: -1, Help: "The program ended with this status."}},
		Prepare: func() (flag.Flags, command.Run) {
			inside := false
			fs := flag.Flags{flag.Bool(&inside, "in-download-dir", "Run the program where the module of the unit is, not in the directory of the unit.").WithTwoDashes()}
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) == 0 {
					return c.UsageError("No program given", "Name the program to run behind --, for example \"exec -- env\".")
				}
				return run(ctx, c, inside)
			}
		},
	}
}

func run(ctx context.Context, c *command.Call, inside bool) int {
	if c.Unit == nil {
		return c.Fail(diag.Errorf(diag.CodeCLIExecUnit, nil, "Not in a unit", "There is no unit in %s, whose inputs the program would have. Run exec in the directory of a unit.", c.Dir))
	}
	dir := c.Dir
	if !inside {
		dir = c.KeepDir()
	}
	err := c.Run(ctx, sys.Command{
		Path: c.Arg(0), Args: c.Args[1:], Dir: dir, Env: c.Unit.Environ(ctx), Foreground: true,
		Stdin: c.System.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
	})
	if err == nil {
		return 0
	}
	if code, ran := sys.ExitCode(err); ran && code > 0 {
		return code
	}
	return c.Fail(diag.Errorf(diag.CodeCLIExec, nil, "Program not run", "The program %q failed: %s.", c.Arg(0), err))
}
