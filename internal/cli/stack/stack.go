// Package stack implements the commands on the units that stack files generate.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/unit"
)

// Commands declares the commands of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "stack", Synopsis: "Work with the units of stack files", Usage: "<generate|run|output|clean> [options]", Help: "Generates, runs and removes the units that terragrunt.stack.hcl files describe.",
			Prepare: command.Group},
		{
			Name: "stack generate", Synopsis: "Generate the units of stack files", Usage: "[options]", Units: command.TakesUnitFlags,
			Help: `Generates the units and stacks of all stack files below the working directory,
in directories .terragrunt-stack beside them.`,
			Prepare: func() (flag.Flags, command.Run) {
				f := &unitflags.Flags{}
				return f.Declare().Hide().Show("filter", "working-dir"), stackRun(f, func(ctx context.Context, c *command.Call) int {
					if len(c.Args) > 0 {
						return c.UsageError("Too many command line arguments", "The command takes flags alone.")
					}
					return runStackGenerate(ctx, c, f)
				})
			},
		},
		{
			Name: "stack run", Synopsis: "Run a command on the units of stack files", Usage: "[options] [--] COMMAND [ARGS]", Units: command.TakesUnitFlags,
			Help: `Generates the units of stack files and runs a command on all units below the
working directory, as run --all does.`,
			Hint: run.Command().Hint, Args: run.Command().Args,
			Prepare: func() (flag.Flags, command.Run) {
				f := &unitflags.Flags{}
				fs := f.Declare()
				f.All = true
				return fs, func(ctx context.Context, c *command.Call) int {
					c.Command = c.Table.Named("run")
					return run.Words(ctx, c, f)
				}
			},
		},
		{
			Name: "stack output", Synopsis: "Show the outputs of the units of stack files", Usage: "[options] [NAME]", Units: command.TakesUnitFlags,
			Help: `Shows the outputs of the units of stack files, nested as the stacks are. NAME
is a part of them, as in unit.output or stack.unit.`,
			Args: []command.Arg{{Name: "NAME", Help: "A part of the outputs.", Optional: true}},
			Prepare: func() (flag.Flags, command.Run) {
				f, o := &unitflags.Flags{}, &stackOutputOptions{format: "default"}
				fs := flag.Flags{
					flag.Text(&o.format, "format", "FORMAT", "default, json or raw."),
					flag.Bool(&o.json, "json", "As JSON."), flag.Bool(&o.raw, "raw", "One value, without quotes."),
				}.WithTwoDashesShown()
				return append(fs, f.Declare().Hide().Show("no-stack-generate", "working-dir")...), stackRun(f, func(ctx context.Context, c *command.Call) int {
					return runStackOutput(ctx, c, f, o)
				})
			},
		},
		{
			Name: "stack clean", Synopsis: "Remove the files generated from stack files", Usage: "[options]", Units: command.TakesUnitFlags,
			Help: "Removes all .terragrunt-stack directories below the working directory.",
			Prepare: func() (flag.Flags, command.Run) {
				f, force := &unitflags.Flags{}, false
				fs := flag.Flags{flag.Bool(&force, "force", "Even if they hold state that still has resources in it.")}.WithTwoDashesShown()
				return append(fs, f.Declare().Hide().Show("working-dir")...), stackRun(f, func(ctx context.Context, c *command.Call) int {
					return runStackClean(ctx, c, f, force)
				})
			},
		},
	}
}

// stackRun returns a function that settles the flags of units and then runs a command on
// stacks.
func stackRun(f *unitflags.Flags, run command.Run) command.Run {
	return func(ctx context.Context, c *command.Call) int {
		if err := f.Settle(c.Env); err != nil {
			return c.UsageError("Failed to parse command-line flags", err.Error())
		}
		units.WorkIn(c, f)
		return run(ctx, c)
	}
}

// runStackGenerate generates the units and stacks of all stack files below the working
// directory.
func runStackGenerate(ctx context.Context, c *command.Call, f *unitflags.Flags) int {
	f.NoUse("stack generate", unitflags.Choosing)
	o, ds := units.Options(c, f, "generate", nil, nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	o.Discovery.OnlyStacks, o.Discovery.Whole = true, true // generate the valid units even if others are invalid
	made := 0
	var mu sync.Mutex
	o.Discovery.Generated = func(it *unit.StackItem) {
		mu.Lock()
		defer mu.Unlock()
		made++
		c.Report.Say(fmt.Sprintf("Generated %s %s in %s\n", it.Kind, it.Address(), sys.RelativeTo(c.Dir, it.Dir)))
	}
	var empty []string
	o.Discovery.Empty = func(path string) {
		mu.Lock()
		defer mu.Unlock()
		empty = append(empty, sys.RelativeTo(c.Dir, path))
	}
	if ds = append(ds, estate.GenerateStacks(ctx, o, c.Report.Set)...); len(ds) > 0 {
		c.Report.Tell(ds)
	}
	if ds.HasErrors() {
		return 1
	}
	if made == 0 && len(empty) > 0 {
		c.Report.Say(fmt.Sprintf("Nothing to generate: every unit and stack in %s is disabled, or expands to no instances.\n", view.ShortList(empty)))
		return 0
	}
	if made == 0 {
		c.Report.Tell(diag.Warnf(diag.CodeCLINoStackFiles, nil, "No stack files found", "There is no file %s with units or stacks in it in %s or below it.", unit.StackName, c.Dir))
	}
	return 0
}

// runStackClean removes the directories of generated units. Without --force, it keeps a
// directory that contains a state with resources.
func runStackClean(ctx context.Context, c *command.Call, f *unitflags.Flags, force bool) int {
	for _, name := range f.Given {
		if strings.Contains(name, "filter") || strings.HasPrefix(name, "queue-") { // ignoring the filter would remove more than intended
			return c.UsageError("Failed to parse command-line flags", "--"+name+" cannot be given: everything that was generated below the working directory is removed. Name a directory with --working-dir.")
		}
	}
	if len(c.Args) > 0 {
		return c.UsageError("Too many command line arguments", "The command takes flags alone.")
	}
	f.NoUse("stack clean", "")
	c.Report.Tell(f.WithoutEffect())
	var dirs, states []string
	err := filepath.WalkDir(c.Dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
		case d.Name() == unit.StackDir:
			dirs = append(dirs, p)
			states = append(states, statesBelow(p)...)
			return fs.SkipDir
		case p != c.Dir && (d.Name() == ".terragrunt-cache" || d.Name() == ".terraform" || d.Name() == ".git"):
			return fs.SkipDir
		}
		return ctx.Err()
	})
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for generated units", "%s.", err))
	}
	if len(states) > 0 && !force {
		return c.Fail(diag.Errorf(diag.CodeCLIStateLost, nil, "State would be lost",
			"What was generated holds the state of things that still exist: %s. Removing it would leave them with nothing that knows of them. Destroy them first with \"run --all destroy\", or use --force.", view.ShortList(states)))
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to remove generated units", "%s.", err))
		}
		c.Report.Say("Removed " + sys.RelativeTo(c.Dir, dir) + "\n")
	}
	return 0
}

// statesBelow returns the local states below a directory that contain resources. It searches
// the text, since a state that cannot be parsed must not be removed either.
func statesBelow(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "terraform.tfstate" || filepath.Base(filepath.Dir(p)) == ".terraform" {
			return nil // the copy of a backend's settings in .terraform is not a state
		}
		b, err := readfile.Whole(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || strings.Contains(string(b), `"instances"`) || strings.Contains(string(b), `"encrypted_data"`) {
			out = append(out, p)
		}
		return nil
	})
	return out
}
