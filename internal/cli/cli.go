// Package cli is the command line: the table of all commands, and what finds and
// runs the one that is asked for.
//
// Main functions: Main and Table. The one rule: effects come from the sys.System that
// Main is given, and a command returns its exit status instead of ending the process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/sys"
)

// Version is the version of this program, as saved plans have it.
const Version = "0.1.0"

// Table is all commands. It is a function so that nothing is made at start.
func Table() *command.Table {
	return &command.Table{
		Program: view.Program, Product: view.Product,
		Commands: slices.Concat(
			[]command.Command{initCmd(), validateCmd(), planCmd(), applyCmd(), destroyCmd()},
			configCommands(),
			[]command.Command{explainCmd(), outputCmd(), refreshCmd(), showCmd(), versionCmd()},
			workspaceCommands(),
			[]command.Command{doctorCmd()},
			[]command.Command{getCmd(), loginCmd(), logoutCmd(), modulesCmd(), providersCmd(), providersLockCmd(), providersMirrorCmd(), providersSchemaCmd()},
			estateCommands(),
			unitCommands(),
		),
		Global: globalFlags(),
		Common: func() command.Flags {
			o, off := report.Defaults(), false
			return append(flags.View(&o), flags.NoExec(&off))
		},
		Units: func() command.Flags { return (&unitFlags{}).declare() },
	}
}

// globalFlags are those in front of a command, for the help.
func globalFlags() command.Flags {
	return command.Flags{
		command.Ignored("chdir", "DIR", "Switch to a different working directory before executing the given subcommand.").Completes(command.Folders),
		command.Ignored("help", "", "Show this help output, or the help for a specified subcommand."),
		command.Ignored("version", "", "An alias for the \"version\" subcommand."),
		command.Ignored("NAME", "", "Those global options of Terragrunt that mean the same to every command, such as --working-dir=DIR and --log-level=LEVEL.").WithTwoDashes(),
	}
}

// later are the commands of the peers that this program does not have yet.
var later = []string{
	"console", "env", "fmt", "force-unlock", "graph", "import", "metadata",
	"push", "state", "taint", "test", "untaint",
}

// Main runs the command line in a system and returns the exit status. When a
// second interrupt arrives it returns at once, though work is still going on:
// the caller must end the process then.
func Main(ctx context.Context, system *sys.System) int {
	done := make(chan int, 1)
	c := command.New(system, Table(), nil)
	handler, ctx, stop := interrupt.Watch(ctx, system, c.Report.Announce)
	defer stop()
	c.Interrupts, c.Report.Context = handler, ctx
	c.Backends = sync.OnceValue(func() *backend.Set {
		if c.NoPrograms {
			return newBackends(system.WithoutPrograms())
		}
		return newBackends(system)
	})
	go func() { done <- dispatch(c, system.Args[1:]) }() // owned by this function, but for a second interrupt
	select {
	case code := <-done:
		return code
	case <-handler.Aborted():
		handler.Kill()
		return 1
	}
}

// dispatch reads the global flags and runs the command.
func dispatch(c *command.Call, args []string) int {
	dir, args, ok := chdir(c, args)
	if !ok {
		return 1
	}
	if dir != "" {
		c.Work(c.System.In(dir))
	}
	if wants(args, "-v", "-version", "--version") {
		args = []string{"version"}
	}
	var first []string
	if !plainFolder(c) {
		first, args = leading().Leading(args)
	}
	cmd, rest, found := c.Table.Find(args)
	if !found {
		return unknownCommand(c, args)
	}
	rest = append(first, rest...)
	rest, err := command.WithEnvironment(c.Env, cmd.Name, rest)
	if err != nil {
		fmt.Fprintf(c.Stderr, "Error parsing extra CLI args from %s\n", err)
		return 1
	}
	if wantsHelp(rest) {
		fmt.Fprintln(c.Stdout, c.Table.HelpOf(cmd))
		return 0
	}
	c.Command = cmd
	rest, err = flags.View(&c.Report.Options).Take(rest, true)
	if err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	c.Report.Open()
	if rest, err = withoutPrograms(c, rest); err != nil {
		return c.UsageError("Failed to parse command-line flags", err.Error())
	}
	return profiled(c, rest, func() int {
		return measured(c, rest, func(ctx context.Context) int {
			if code, ok := asUnits(ctx, c, cmd, rest); ok {
				return code
			}
			return c.Do(ctx, cmd, rest)
		})
	})
}

// withoutPrograms takes --no-exec from the words, and heeds it: as a flag, a variable or
// a setting of the CLI configuration file.
func withoutPrograms(c *command.Call, words []string) ([]string, error) {
	off := false
	if cfg, _ := settings(c); cfg != nil { // the command tells what is wrong with it
		off = cfg.NoExec
	}
	f := command.Flags{flags.NoExec(&off)}
	if err := f.FromEnv(c.Env); err != nil {
		return nil, err
	}
	words, err := f.Take(words, true)
	if off {
		c.Work(c.System.WithoutPrograms())
	}
	return words, err
}

// chdir takes -chdir from the front of the arguments.
func chdir(c *command.Call, args []string) (dir string, rest []string, ok bool) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return "", args, true
		}
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name != "chdir" {
			continue
		}
		if !has || value == "" {
			fmt.Fprintf(c.Stderr, "Invalid -chdir option: must include an equals sign followed by a directory path, like -chdir=example\n")
			return "", nil, false
		}
		if err := isDir(c.Path(value)); err != nil {
			fmt.Fprintf(c.Stderr, "Error handling -chdir option: chdir %s: %s\n", value, err)
			return "", nil, false
		}
		return value, slices.Delete(slices.Clone(args), i, i+1), true
	}
	return "", args, true
}

// unknownCommand answers what is no command: usage, help, or an error.
func unknownCommand(c *command.Call, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(c.Stdout, c.Table.Usage())
		return 127
	}
	if strings.HasPrefix(args[0], "-") {
		if wantsHelp(args) {
			fmt.Fprintln(c.Stdout, c.Table.Usage())
			return 0
		}
		fmt.Fprintf(c.Stderr, "%s has no global option %q. Options of a command stand behind its name.\n\nTo see the global options, run:\n  %s -help\n\n", view.Product, args[0], view.Program)
		return 1
	}
	if slices.Contains(later, args[0]) {
		fmt.Fprintf(c.Stderr, "Error: Command not available\n\nThe command %q is not part of this version of %s. A later version will bring it.\nTo see the commands that there are, run:\n  %s -help\n", args[0], view.Product, view.Program)
		return 1
	}
	fmt.Fprintf(c.Stderr, "%s has no command named %q.%s\n\nTo see all of %s's top-level commands, run:\n  %s -help\n\n", view.Product, args[0], c.Table.Suggest(args[0]), view.Product, view.Program)
	return 1
}

func wantsHelp(args []string) bool { return wants(args, "-h", "-help", "--help") }

// wants reports whether one of some words stands in front of a --.
func wants(args []string, words ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if slices.Contains(words, a) {
			return true
		}
	}
	return false
}

func isDir(path string) error {
	info, err := os.Stat(path)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}
