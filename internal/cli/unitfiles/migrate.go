package unitfiles

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/migrate"
)

// MigrateImports declares migrate imports.
func MigrateImports() command.Command {
	return command.Command{
		Name: "migrate imports", Synopsis: "Rewrite unit files from include to import", Usage: "[options] [PATH...]", Units: command.TakesUnitFlags, Mixed: true,
		Help: `Rewrites unit files from include blocks and read_terragrunt_config to import
blocks, where that means the same: every unit that a change touches is rendered
before and after, and what would differ is left alone and listed with the
reason. Before it writes, the command compares the values of all units as
"affected" does. Comments and formatting are kept, and no state moves.

PATH is a unit file, or a directory with units below it; the working directory
if none is given. Other units of the repository that use the same files come
out as before too. Without an option, the files are listed and nothing is
written.`,
		Args:    []command.Arg{{Name: "PATH", Help: "A unit file or a directory.", Optional: true, Repeated: true, Complete: flag.Files}},
		Prepare: preparing(migrate.Imports),
	}
}

// MigrateIncludes declares migrate includes.
func MigrateIncludes() command.Command {
	return command.Command{
		Name: "migrate includes", Synopsis: "Rewrite unit files from import to include, which Terragrunt reads", Usage: "[options] [PATH...]", Units: command.TakesUnitFlags, Mixed: true,
		Help: `Rewrites unit files, and the files that they import, to what Terragrunt reads:
imports that merge become include blocks, others local values with
read_terragrunt_config. Every unit that a change touches is rendered before and
after. What would differ, and what Terragrunt does not have, such as module
blocks and relpath, is left alone and listed with the reason, and so is what
goes with it: a file is rewritten for all units that use it or for none.
Comments outside of import blocks and formatting are kept, and no state moves.

PATH is a unit file, or a directory with units below it; the working directory
if none is given. Without an option, the files are listed and nothing is
written.`,
		Args:    []command.Arg{{Name: "PATH", Help: "A unit file or a directory.", Optional: true, Repeated: true, Complete: flag.Files}},
		Prepare: preparing(migrate.Includes),
	}
}

// preparing returns the Prepare function of a migration.
func preparing(plan migrate.Planner) func() (flag.Flags, command.Run) {
	return func() (flag.Flags, command.Run) {
		f, diff, write := &unitflags.Flags{}, false, false
		fs := flag.Flags{flag.Bool(&diff, "diff", "Show what changes."), flag.Bool(&write, "write", "Write the changes.")}.WithTwoDashesShown()
		return append(fs, f.Declare().Hide().Show("working-dir")...), func(ctx context.Context, c *command.Call) int {
			if err := f.Settle(c.Env); err != nil {
				return c.UsageError("Failed to parse command-line flags", err.Error())
			}
			units.WorkIn(c, f)
			return runMigration(ctx, c, f, plan, diff, write)
		}
	}
}

func runMigration(ctx context.Context, c *command.Call, f *unitflags.Flags, planned migrate.Planner, diff, write bool) int {
	o, ds := units.Options(c, f, "render", nil, nil)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.AboveStatus(ds)
	units, roots, ds := unitsToMigrate(c, c.Args)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if len(units) == 0 {
		return c.Fail(diag.Errorf(diag.CodeCLINoUnit, nil, "No unit", "There is no unit file to migrate."))
	}
	plan, ds := migrate.Among(ctx, planned, o.UnitEnv(c.Dir), units, roots, discovery.Files)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if write {
		if ds := sameValues(ctx, c, f, plan, roots); ds.HasErrors() {
			return c.Fail(ds)
		}
		if ds := plan.Write(); ds.HasErrors() {
			return c.Fail(ds)
		}
	}
	showMigrated(c, plan, diff, write)
	return 0
}

// sameValues compares the values of all units below roots before and after a migration, and returns
// an error that names the differences, or the units that cannot be compared because of errors.
func sameValues(ctx context.Context, c *command.Call, f *unitflags.Flags, plan *migrate.Plan, roots []string) diag.List {
	texts := map[string][]byte{}
	for _, x := range plan.Changes {
		texts[x.Path] = x.After
	}
	if len(texts) == 0 {
		return nil
	}
	o, ds := units.LookOptions(c, f, "plan", nil)
	if ds.HasErrors() {
		return ds
	}
	o.Discovery.Generate = true
	for _, root := range roots {
		if project.IsDir(root) != nil {
			root = filepath.Dir(root)
		}
		found, set, ds := units.CompareFiles(ctx, c, o, root, texts)
		if ds.HasErrors() {
			c.Report.TellFrom(set, ds.Errors())
			return notVerified("errors prevent the comparison of the values of the units in " + units.PathShown(c, root))
		}
		if len(found.NotCompared) > 0 {
			c.Report.TellFrom(found.Head.Files, found.Head.Messages)
			c.Report.TellFrom(found.Base.Files, found.Base.Messages)
			return notVerified("errors prevent the comparison of the values of these units: " + view.ShortList(found.NotCompared))
		}
		if ds := units.ValuesDiffer(found.Units); ds.HasErrors() {
			return ds
		}
	}
	return nil
}

// notVerified returns the error of a migration whose result cannot be compared.
func notVerified(why string) diag.List {
	return diag.Errorf(diag.CodeCLIMigration, nil, "Migration not verified", "Nothing was written, because %s.", why)
}

// unitsToMigrate returns the unit files below the given directories, or below the working
// directory. roots are the directories in which other units may use the same files: the
// repositories of the units.
func unitsToMigrate(c *command.Call, paths []string) (units, roots []string, ds diag.List) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, p := range paths {
		path := c.Path(filepath.Clean(p))
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, nil, diag.Errorf(diag.CodeCLINoUnit, nil, "No unit", "%s.", err)
		case info.IsDir():
			found, more := discovery.Files(path)
			if more.HasErrors() {
				return nil, nil, more
			}
			units = append(units, found...)
		default:
			units = append(units, path)
		}
		if root := repository(path); !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return units, roots, nil
}

// repository returns the root of the git repository that contains a path, or the directory of
// the path if there is none.
func repository(path string) string {
	own := path
	if project.IsDir(path) != nil {
		own = filepath.Dir(path)
	}
	return cmp.Or(git.Root(own), own)
}

// showMigrated reports the changes made or planned, and the files left unchanged, with
// reasons.
func showMigrated(c *command.Call, plan *migrate.Plan, diff, wrote bool) {
	for _, x := range plan.Changes {
		x.Path = units.PathShown(c, x.Path)
		if diff {
			fmt.Fprint(c.Stdout, x.Diff())
		} else {
			fmt.Fprintln(c.Stdout, x.Path)
		}
	}
	for _, l := range plan.Left {
		fmt.Fprintf(c.Stderr, "left alone: %s: %s\n", placeShown(c, l.Path, l.At), l.Reason)
	}
	switch {
	case len(plan.Changes) == 0:
		fmt.Fprintf(c.Stderr, "Nothing to rewrite. Unit files: %d.\n", plan.Units)
		return
	case wrote:
		fmt.Fprintf(c.Stderr, "Files rewritten: %d.", len(plan.Changes))
	default:
		fmt.Fprintf(c.Stderr, "Files to rewrite: %d; --diff shows how, --write does it.", len(plan.Changes))
	}
	fmt.Fprintf(c.Stderr, " Units that use them: %d; all of them come out as before.\n", plan.Touched)
}

func placeShown(c *command.Call, path string, at source.Range) string {
	if at.Filename == "" {
		return units.PathShown(c, path)
	}
	return fmt.Sprintf("%s:%d", units.PathShown(c, at.Filename), at.Start.Line)
}
