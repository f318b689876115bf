// Package cli is the command line: it contains the table of all commands, finds the requested
// command and runs it.
//
// Main functions: Main and Table. The one rule: effects come from the sys.System that Main
// receives, and a command returns its exit status instead of ending the process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/configcmd"
	"github.com/terrace-iac/terrace/internal/cli/console"
	"github.com/terrace-iac/terrace/internal/cli/execcmd"
	"github.com/terrace-iac/terrace/internal/cli/explain"
	"github.com/terrace-iac/terrace/internal/cli/fmtcmd"
	"github.com/terrace-iac/terrace/internal/cli/graph"
	"github.com/terrace-iac/terrace/internal/cli/importcmd"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/cli/inspect"
	"github.com/terrace-iac/terrace/internal/cli/login"
	"github.com/terrace-iac/terrace/internal/cli/lsp"
	"github.com/terrace-iac/terrace/internal/cli/measure"
	"github.com/terrace-iac/terrace/internal/cli/metadata"
	"github.com/terrace-iac/terrace/internal/cli/modules"
	"github.com/terrace-iac/terrace/internal/cli/output"
	"github.com/terrace-iac/terrace/internal/cli/planning"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/providers"
	"github.com/terrace-iac/terrace/internal/cli/query"
	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/cli/scaffold"
	"github.com/terrace-iac/terrace/internal/cli/show"
	"github.com/terrace-iac/terrace/internal/cli/stack"
	"github.com/terrace-iac/terrace/internal/cli/statecmd"
	"github.com/terrace-iac/terrace/internal/cli/testcmd"
	"github.com/terrace-iac/terrace/internal/cli/unitfiles"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/validate"
	"github.com/terrace-iac/terrace/internal/cli/version"
	"github.com/terrace-iac/terrace/internal/cli/workspace"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/affected"
	"github.com/terrace-iac/terrace/internal/cli/backendcmd"
	"github.com/terrace-iac/terrace/internal/cli/catalog"
	"github.com/terrace-iac/terrace/internal/cli/check"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/help"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Table returns the table of all commands. It is a function, so that the program allocates
// nothing at start.
func Table() *command.Table {
	variables := environment()
	return &command.Table{
		Program: view.Program, Product: view.Product,
		Commands: slices.Concat(
			[]command.Command{initialize.Command(), validate.Command(), planning.Plan(), planning.Apply(), planning.Destroy()},
			configcmd.Commands(),
			[]command.Command{explain.Command(), output.Command(), planning.Refresh(), show.Command(), version.Command()},
			workspace.Commands(),
			statecmd.Commands(),
			metadata.Commands(),
			[]command.Command{fmtcmd.Command(), importcmd.Command(), query.Command(), console.Command(), testcmd.Command(), testcmd.CleanupCommand(), graph.Command(), planning.Drift(), execcmd.Command()},
			backendcmd.Commands(),
			[]command.Command{initialize.Get(), login.Login(), login.Logout(), login.Push(), modules.Command(), providers.Command(), providers.Lock(), providers.Mirror(), providers.Schema()},
			[]command.Command{run.Command(), run.Worker(), affected.Command(), check.Command()},
			inspect.Commands(),
			stack.Commands(),
			unitfiles.Commands(),
			[]command.Command{scaffold.Command(), catalog.Command(), lsp.Command()},
			help.Commands(),
		),
		Former:  former,
		Topics:  help.Topics(variables),
		Global:  globalFlags,
		Further: []command.Arg{{Name: "--NAME", Help: "Those global options of Terragrunt that mean the same to every command, such as --working-dir=DIR and --log-level=LEVEL."}},
		Common: func() flag.Flags {
			o, off := report.Defaults(), false
			return append(flags.View(&o), flags.NoExec(&off))
		},
		Units:       func() flag.Flags { return (&unitflags.Flags{}).Declare() },
		Exits:       []command.Exit{{Code: unread, Help: "The reader closed the pipe early, as in \"| head -1\"."}},
		Bare:        []command.Exit{{Code: command.NoCommand, Help: "The help was shown."}, {Code: 0, Help: "It was asked for, as with -help."}},
		Environment: variables,
	}
}

// globals contains the values of the flags before a command.
type globals struct {
	dir                string
	help, version      bool
	install, uninstall bool
}

// flags returns the flags of the program itself.
func (g *globals) flags(c *command.Call) flag.Flags {
	return flag.Flags{
		flag.Text(&g.dir, "chdir", "DIR", "Switch to a different working directory before executing the given subcommand.").WithEquals().IsWorkingDir().
			Checked(func(s flag.Setting) error { return checkDir(c, s.Value) }),
		flag.Bool(&g.help, "help", "Show this help output, or the help for a specified subcommand.").Or("h"),
		flag.Bool(&g.version, "version", "An alias for the \"version\" subcommand.").Or("v"),
		flag.Bool(&g.install, "install-autocomplete", "Add completion to ~/.bashrc, ~/.zshrc and ~/.config/fish/completions, those that exist."),
		flag.Bool(&g.uninstall, "uninstall-autocomplete", "Remove what -install-autocomplete added."),
	}
}

// globalFlags returns all flags that are allowed before a command.
func globalFlags() flag.Flags {
	return append((&globals{}).flags(nil), measure.Leading().Hide()...)
}

// A dirError is an error in -chdir.
type dirError string

func (e dirError) Error() string { return string(e) }

// checkDir returns an error if -chdir does not name a directory.
func checkDir(c *command.Call, dir string) error {
	if dir == "" {
		return dirError("Invalid -chdir option: must include an equals sign followed by a directory path, like -chdir=example")
	}
	if err := project.IsDir(c.Path(dir)); err != nil {
		return dirError(fmt.Sprintf("Error handling -chdir option: chdir %s: %s", dir, err))
	}
	return nil
}

// unread is the exit status of a command whose reader closed the output early. A process that
// SIGPIPE ends has the same status.
const unread = 128 + 13

// Main runs the command line in a system and returns the exit status. At a second interrupt,
// it returns at once although work is still in progress. The caller must then end the process.
func Main(ctx context.Context, system *sys.System) int {
	done := make(chan int, 1)
	c := command.New(ctx, system, Table(), nil)
	c.Table.Program, c.Table.Product = c.Report.Names.Program(), c.Report.Names.Product()
	if system.Terminal.Out {
		c.Table.Width = system.Terminal.Width()
	}
	c.Enter = enter
	handler, ctx, stop := interrupt.Watch(ctx, system, c.Report.Names.Product(), c.Report.Announce)
	defer stop()
	c.Interrupts, c.Report.Context = handler, ctx
	c.Backends = sync.OnceValue(c.OpenBackends)
	go func() { done <- dispatch(c, system.Args[1:]) }() // ends before this function returns, except after a second interrupt
	select {
	case code := <-done:
		if handler.Unread() {
			return unread
		}
		return written(c, code)
	case <-handler.Aborted():
		c.Report.Silence()
		handler.Kill()
		return 1
	}
}

// written returns the exit status of a command that ended with code. If output could not be
// written, the command has failed.
func written(c *command.Call, code int) int {
	what, err := c.System.Lost.First()
	if err == nil {
		return code
	}
	p := &diag.Printer{}
	if c.Report.Human != nil {
		p = c.Report.Printer(nil)
	}
	_ = p.Print(c.Stderr, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the output", "%s cannot be written: %s. What was written there is incomplete. Everything else that the command did remains done.", what, diag.Reason(err)))
	return 1
}

// dispatch parses the global flags and runs the command.
func dispatch(c *command.Call, args []string) int {
	if code, ok := completed(c, args); ok {
		return code
	}
	var g globals
	own := g.flags(c)
	known := slices.Clone(own)
	if !unitflags.PlainFolder(c) {
		known = append(known, measure.Leading()...)
	}
	first, args := known.Leading(args)
	first, err := own.Take(first, true)
	if wrong := dirError(""); errors.As(err, &wrong) {
		return c.Report.Complain(wrong.Error() + "\n")
	} else if err != nil {
		return c.Report.Complain(fmt.Sprintf("Failed to parse command-line flags: %s\n", err))
	}
	if g.dir != "" {
		c.WorkIn(g.dir)
	}
	if g.install || g.uninstall {
		return help.Autocomplete(c, g.install, g.uninstall)
	}
	if g.version || own.Named("version").Stands(args) {
		args = []string{"version"}
	}
	cmd, rest, found := c.Table.Find(args)
	if !found && g.help {
		fmt.Fprintln(c.Stdout, c.Table.Usage())
		return 0
	}
	if !found {
		if len(args) == 0 {
			fmt.Fprintf(c.Stdout, "%s\n", help.Overview(c))
		}
		return c.Unknown(args)
	}
	rest = append(first, rest...)
	rest, err = command.WithEnvironment(c.Env, cmd.Name, rest)
	if err != nil {
		return c.Report.Complain(fmt.Sprintf("Error parsing extra CLI args from %s\n", err))
	}
	if g.help || own.Named("help").Stands(rest) {
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
	return measure.Profiled(c, rest, func() int {
		return measure.Measured(c, rest, func(ctx context.Context) int {
			if code, ok := run.AsUnits(ctx, c, cmd, rest); ok {
				return code
			}
			return c.Do(ctx, cmd, rest)
		})
	})
}

// completed prints the candidates that a shell requests. ok is false if there is no such request.
func completed(c *command.Call, args []string) (code int, ok bool) {
	if !help.Asked(c, args) {
		return 0, false
	}
	if _, err := withoutPrograms(c, nil); err != nil {
		return 0, true
	}
	help.Candidates(c.Report.Context, c, args)
	return 0, true
}

// enter calls do in another directory, which may be that of a unit.
func enter(ctx context.Context, c *command.Call, dir string, do command.Run) int {
	n := c.Below(dir)
	n.Env = c.System.Env // a unit's environment does not apply in another directory
	n.Report.Open()
	cmd := *c.Command
	cmd.Prepare = func() (flag.Flags, command.Run) { return nil, do }
	n.Command = &cmd
	if code, ok := run.AsUnits(ctx, n, &cmd, nil); ok {
		return code
	}
	return n.Do(ctx, &cmd, nil)
}

// withoutPrograms removes --no-exec from the words and applies it. A variable, or a setting in
// the CLI configuration file, has the same effect.
func withoutPrograms(c *command.Call, words []string) ([]string, error) {
	off := false
	if cfg, _ := c.Directory.Settings(); cfg != nil { // the command reports errors in it
		off = cfg.NoExec
		c.Report.Options.Silenced = cfg.Silenced
		if c.Report.Options.ShowCodes = cfg.ShowCodes; cfg.ShowCodes {
			c.Report.Open()
		}
	}
	f := flag.Flags{flags.NoExec(&off)}
	if err := f.FromEnv(c.Env); err != nil {
		return nil, err
	}
	words, err := f.Take(words, true)
	if off {
		c.WithoutPrograms()
	}
	return words, err
}

// former returns the command that replaced one of earlier versions of Terragrunt, or "".
// Source: https://docs.terragrunt.com/migrate/cli-redesign/
func former(name string) string {
	switch name {
	case "plan-all", "apply-all", "destroy-all", "output-all", "validate-all":
		return "run --all " + strings.TrimSuffix(name, "-all")
	case "run-all":
		return "run --all"
	case "spin-up":
		return "run --all apply"
	case "tear-down":
		return "run --all destroy"
	case "hclfmt":
		return "hcl fmt"
	case "hclvalidate":
		return "hcl validate"
	case "validate-inputs":
		return "hcl validate --inputs"
	case "terragrunt-info":
		return "info print"
	case "render-json":
		return "render --json -w"
	case "output-module-groups":
		return "find --dag --json"
	case "graph-dependencies":
		return "dag graph"
	}
	return ""
}
