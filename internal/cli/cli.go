// Package cli is the command line: it reads flags, brings configuration, state
// and providers together, runs the engine and reports what comes of it.
//
// Main function: Main. Each command has a file of its own with its options and
// a run function; what they share is in session.go (a run and its views),
// load.go (configuration, variables, providers), backend.go and locked.go
// (state). The one rule: effects come from the sys.System that Main is given,
// and a command returns its exit status instead of ending the process.
package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/sys"
)

// Version is the version of this program, as saved plans have it.
const Version = "0.1.0"

// A command is one word, or two, of the command line.
type command struct {
	name     string
	synopsis string
	hidden   bool
	usage    func() string
	run      func(ctx context.Context, s *session, args []string) int
}

// commands lists what there is. It is a function so that nothing is made at start.
func commands() []command {
	return append([]command{
		{name: "init", synopsis: "Prepare your working directory for other commands", usage: initUsage, run: initCommand},
		{name: "validate", synopsis: "Check whether the configuration is valid", usage: validateUsage, run: validateCommand},
		{name: "plan", synopsis: "Show changes required by the current configuration", usage: planUsage, run: planCommand},
		{name: "apply", synopsis: "Create or update infrastructure", usage: applyUsage, run: applyCommand},
		{name: "destroy", synopsis: "Destroy previously-created infrastructure", usage: destroyUsage, run: destroyCommand},
		{name: "config", synopsis: "Show the effective configuration and its files", usage: configUsage, run: configCommand},
		{name: "config files", synopsis: "List configuration files with their roles", usage: configFilesUsage, run: configFilesCommand},
		{name: "config show", synopsis: "Print the merged configuration", usage: configShowUsage, run: configShowCommand},
		{name: "explain", synopsis: "Tell where a value comes from", usage: explainUsage, run: explainCommand},
		{name: "output", synopsis: "Show output values from your root module", usage: outputUsage, run: outputCommand},
		{name: "refresh", synopsis: "Update the state to match remote systems", usage: refreshUsage, run: refreshCommand},
		{name: "show", synopsis: "Show the current state or a saved plan", usage: showUsage, run: showCommand},
		{name: "version", synopsis: "Show the current " + view.Product + " version", usage: versionUsage, run: versionCommand},
		{name: "workspace", synopsis: "Workspace management", usage: workspaceUsage, run: workspaceCommand},
		{name: "workspace list", synopsis: "List Workspaces", usage: workspaceListUsage, run: workspaceListCommand},
		{name: "workspace new", synopsis: "Create a new workspace", usage: workspaceNewUsage, run: workspaceNewCommand},
		{name: "workspace select", synopsis: "Select a workspace", usage: workspaceSelectUsage, run: workspaceSelectCommand},
		{name: "workspace show", synopsis: "Show the name of the current workspace", usage: workspaceShowUsage, run: workspaceShowCommand},
		{name: "workspace delete", synopsis: "Delete a workspace", usage: workspaceDeleteUsage, run: workspaceDeleteCommand},
	}, slices.Concat(gettingCommands(), estateCommands(), unitCommands())...)
}

// later are the commands of the peers that this program does not have yet.
var later = []string{
	"console", "env", "fmt", "force-unlock", "graph", "import", "metadata",
	"push", "state", "taint", "test", "untaint",
}

// mainCommands is how many of commands are listed first.
const mainCommands = 5

// Main runs the command line in a system and returns the exit status. When a
// second interrupt arrives it returns at once, though work is still going on:
// the caller must end the process then.
func Main(ctx context.Context, system *sys.System) int {
	done := make(chan int, 1)
	s := newSession(system)
	stop := s.watch(ctx)
	defer stop()
	go func() { done <- s.main(system.Args[1:]) }() // owned by this function, but for a second interrupt
	select {
	case code := <-done:
		return code
	case <-s.reach.abort:
		s.kill()
		return 1
	}
}

// main reads the global flags and runs the command.
func (s *session) main(args []string) int {
	dir, args, ok := s.chdir(args)
	if !ok {
		return 1
	}
	if dir != "" {
		s.System = s.System.In(dir)
	}
	if wantsVersion(args) {
		args = []string{"version"}
	}
	first, args := s.leading(args)
	cmd, rest, found := lookup(args)
	if !found {
		return s.noCommand(args)
	}
	rest = append(first, rest...)
	rest, err := withEnvironment(s.Env, cmd.name, rest)
	if err != nil {
		fmt.Fprintf(s.Stderr, "Error parsing extra CLI args from %s\n", err)
		return 1
	}
	if wantsHelp(rest) {
		fmt.Fprintln(s.Stdout, cmd.usage())
		return 0
	}
	rest, err = s.viewFlags(rest)
	if err != nil {
		return s.usageError(cmd.name, "Failed to parse command-line flags", err.Error())
	}
	s.command = cmd.name
	s.openViews()
	return s.profiled(rest, func() int {
		return s.measured(rest, func(ctx context.Context) int {
			if code, ok := s.asUnits(ctx, cmd, rest); ok {
				return code
			}
			return cmd.run(ctx, s, rest)
		})
	})
}

// chdir takes -chdir from the front of the arguments.
func (s *session) chdir(args []string) (dir string, rest []string, ok bool) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return "", args, true
		}
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name != "chdir" {
			continue
		}
		if !has || value == "" {
			fmt.Fprintf(s.Stderr, "Invalid -chdir option: must include an equals sign followed by a directory path, like -chdir=example\n")
			return "", nil, false
		}
		if err := isDir(s.Path(value)); err != nil {
			fmt.Fprintf(s.Stderr, "Error handling -chdir option: chdir %s: %s\n", value, err)
			return "", nil, false
		}
		return value, slices.Delete(slices.Clone(args), i, i+1), true
	}
	return "", args, true
}

// lookup finds the command that the arguments begin with, of two words if there is one.
func lookup(args []string) (command, []string, bool) {
	all := commands()
	for n := min(2, len(args)); n > 0; n-- {
		name := strings.Join(args[:n], " ")
		for _, c := range all {
			if c.name == name {
				return c, args[n:], true
			}
		}
	}
	return command{}, nil, false
}

// noCommand answers what is no command: usage, help, or an error.
func (s *session) noCommand(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(s.Stdout, usage())
		return 127
	}
	if strings.HasPrefix(args[0], "-") {
		if wantsHelp(args) {
			fmt.Fprintln(s.Stdout, usage())
			return 0
		}
		fmt.Fprintf(s.Stderr, "%s has no global option %q. Options of a command stand behind its name.\n\nTo see the global options, run:\n  %s -help\n\n", view.Product, args[0], view.Program)
		return 1
	}
	if slices.Contains(later, args[0]) {
		fmt.Fprintf(s.Stderr, "Error: Command not available\n\nThe command %q is not part of this version of %s. A later version will bring it.\nTo see the commands that there are, run:\n  %s -help\n", args[0], view.Product, view.Program)
		return 1
	}
	names := map[string]bool{}
	for _, c := range commands() {
		names[c.name] = true
	}
	hint := lang.Suggest(args[0], names)
	fmt.Fprintf(s.Stderr, "%s has no command named %q.%s\n\nTo see all of %s's top-level commands, run:\n  %s -help\n\n", view.Product, args[0], hint, view.Product, view.Program)
	return 1
}

func wantsHelp(args []string) bool {
	for _, a := range args {
		switch a {
		case "-h", "-help", "--help":
			return true
		case "--":
			return false
		}
	}
	return false
}

func wantsVersion(args []string) bool {
	for _, a := range args {
		switch a {
		case "-v", "-version", "--version":
			return true
		case "--":
			return false
		}
	}
	return false
}

// usage is the text of -help without a command.
func usage() string {
	var b strings.Builder
	b.WriteString("Usage: " + view.Program + " [global options] <subcommand> [args]\n\n" +
		"The available commands for execution are listed below.\nThe primary workflow commands are given first, followed by\nless common or more advanced commands.\n\nMain commands:\n")
	for i, c := range commands() {
		if i == mainCommands {
			b.WriteString("\nAll other commands:\n")
		}
		if !strings.Contains(c.name, " ") && !c.hidden {
			fmt.Fprintf(&b, "  %-12s  %s\n", c.name, c.synopsis)
		}
	}
	b.WriteString("\nGlobal options (use these before the subcommand, if any):\n" +
		"  -chdir=DIR    Switch to a different working directory before executing the\n                given subcommand.\n" +
		"  -help         Show this help output, or the help for a specified subcommand.\n" +
		"  -version      An alias for the \"version\" subcommand.\n" +
		"  --NAME        Those global options of Terragrunt that mean the same to every\n                command, such as --working-dir=DIR and --log-level=LEVEL.")
	return b.String()
}
