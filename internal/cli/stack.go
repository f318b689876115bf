package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/unit"
)

// stackCommands are the commands on stacks.
func stackCommands() []command {
	return []command{
		{name: "stack", synopsis: "Work with the units that stack files stand for", usage: stackUsage, run: stackCommand},
		{name: "stack generate", synopsis: "Make the units of stack files", usage: stackGenerateUsage, run: stackGenerateCommand},
		{name: "stack run", synopsis: "Run a command on the units of stack files", usage: stackRunUsage, run: stackRunCommand},
		{name: "stack output", synopsis: "Show the outputs of the units of stack files", usage: stackOutputUsage, run: stackOutputCommand},
		{name: "stack clean", synopsis: "Remove what was generated from stack files", usage: stackCleanUsage, run: stackCleanCommand},
	}
}

func stackCommand(_ context.Context, s *session, _ []string) int {
	return s.usageError("stack", "No command given", "The commands are \"stack generate\", \"stack run\", \"stack output\" and \"stack clean\".")
}

// stackFlags reads the flags that all commands on stacks have.
func (s *session) stackFlags(name string, args []string) (*unitFlags, []string, bool) {
	f, rest, err := takeUnitFlags(args, s.Env)
	if err != nil {
		s.usageError(name, "Failed to parse command-line flags", err.Error())
		return nil, nil, false
	}
	if f.working != "" {
		s.System = s.System.In(f.working)
	}
	return f, rest, true
}

// stackGenerateCommand makes the units and stacks of all stack files below the
// working folder.
func stackGenerateCommand(ctx context.Context, s *session, args []string) int {
	f, rest, ok := s.stackFlags("stack generate", args)
	if !ok {
		return 1
	}
	if len(rest) > 0 {
		return s.usageError("stack generate", "Too many command line arguments", "The command takes flags alone.")
	}
	f.noUse("stack generate", choosing)
	o, ds := s.estateOptions(f, "generate", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	o.Look.OnlyStacks = true
	made := 0
	var mu sync.Mutex
	o.Look.Generated = func(it *unit.StackItem) {
		mu.Lock()
		defer mu.Unlock()
		made++
		s.say(fmt.Sprintf("Generated %s %s in %s\n", it.Kind, it.Name, relativeTo(s.Dir, it.Dir)))
	}
	if ds = append(ds, estate.GenerateStacks(ctx, o, s.set)...); len(ds) > 0 {
		s.tell(ds)
	}
	if ds.HasErrors() {
		return 1
	}
	if made == 0 {
		s.tell(diag.Warnf(nil, "No stack files found", "There is no file %s with units or stacks in it in %s or below it.", unit.StackName, s.Dir))
	}
	return 0
}

// stackRunCommand is run --all on what the stack files below the working folder
// stand for.
func stackRunCommand(ctx context.Context, s *session, args []string) int {
	return runCommand(ctx, s, append([]string{"--all"}, args...))
}

// stackCleanCommand removes the folders that units were generated in. A state in
// one of them that still holds something is not removed without --force.
func stackCleanCommand(ctx context.Context, s *session, args []string) int {
	f, rest, ok := s.stackFlags("stack clean", args)
	if !ok {
		return 1
	}
	fl := newFlags("stack clean")
	var force bool
	fl.BoolVar(&force, "force", false, "")
	if !s.parse(fl, rest) {
		return 1
	}
	for _, name := range f.given {
		if strings.Contains(name, "filter") || strings.HasPrefix(name, "queue-") { // to go on would remove more than was meant
			return s.usageError("stack clean", "Failed to parse command-line flags", "--"+name+" cannot be given: everything that was generated below the working folder is removed. Name a folder with --working-dir.")
		}
	}
	if fl.NArg() > 0 {
		return s.usageError("stack clean", "Too many command line arguments", "The command takes flags alone.")
	}
	f.noUse("stack clean", "")
	s.tell(f.withoutEffect())
	var dirs, states []string
	err := filepath.WalkDir(s.Dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
		case d.Name() == unit.StackDir:
			dirs = append(dirs, p)
			states = append(states, statesBelow(p)...)
			return fs.SkipDir
		case p != s.Dir && (d.Name() == ".terragrunt-cache" || d.Name() == ".terraform" || d.Name() == ".git"):
			return fs.SkipDir
		}
		return ctx.Err()
	})
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to look for generated units", "%s.", err))
	}
	if len(states) > 0 && !force {
		return s.fail(diag.Errorf(nil, "State would be lost",
			"What was generated holds the state of things that still exist: %s. Removing it would leave them with nothing that knows of them. Destroy them first with \"run --all destroy\", or use --force.", shortList(states)))
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return s.fail(diag.Errorf(nil, "Failed to remove generated units", "%s.", err))
		}
		s.say("Removed " + relativeTo(s.Dir, dir) + "\n")
	}
	return 0
}

// statesBelow are the local states below a folder that hold resources. It looks at
// the text alone, since a state that cannot be read must not be removed either.
func statesBelow(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "terraform.tfstate" || filepath.Base(filepath.Dir(p)) == ".terraform" {
			return nil // the copy of a backend's settings in .terraform is no state
		}
		b, err := os.ReadFile(p)
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

func stackUsage() string {
	return usageText("Usage: " + view.Program + " [global options] stack <generate|run|output|clean> [options]\n\n  Works with the units that terragrunt.stack.hcl files stand for.")()
}

func stackGenerateUsage() string {
	return usageText("Usage: "+view.Program+" [global options] stack generate [options]\n\n  Makes the units and stacks of all stack files below the working folder, in\n  folders .terragrunt-stack beside them.",
		option("--filter=QUERY", "Take the stack files whose folders a query matches."), option("--working-dir=PATH", "The folder to work in."))()
}

func stackRunUsage() string {
	return usageText("Usage: "+view.Program+" [global options] stack run [options] [--] COMMAND [ARGS]\n\n  Generates the units of stack files and runs a command on all units below the\n  working folder, as run --all does.", slices.Concat(unitOptions()[1:], turnOptions(), reportOptions())...)()
}

func stackOutputUsage() string {
	return usageText("Usage: "+view.Program+" [global options] stack output [options] [NAME]\n\n  Shows the outputs of the units of stack files, nested as the stacks are. NAME\n  is a part of them, as in unit.output or stack.unit.",
		option("--format=FORMAT", "default, json or raw."), option("--json", "As JSON."), option("--raw", "One value, without quotes."),
		option("--no-stack-generate", "Do not generate the units first."), option("--working-dir=PATH", "The folder to work in."))()
}

func stackCleanUsage() string {
	return usageText("Usage: "+view.Program+" [global options] stack clean [options]\n\n  Removes the folders .terragrunt-stack below the working folder.",
		option("--force", "Even if they hold state that still has resources in it."), option("--working-dir=PATH", "The folder to work in."))()
}
