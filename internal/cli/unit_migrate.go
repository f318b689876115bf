package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
)

// migrateCommand is `migrate imports [PATH…] [--diff|--write]`.
func migrateCommand(ctx context.Context, s *session, args []string) int {
	f, args, err := takeUnitFlags(args, s.Env)
	if err != nil {
		return s.usageError("migrate imports", "Failed to parse command-line flags", err.Error())
	}
	fl := newFlags("migrate imports")
	var diff, write bool
	fl.BoolVar(&diff, "diff", false, "")
	fl.BoolVar(&write, "write", false, "")
	paths, ok := s.parseMixed(fl, args)
	if !ok {
		return 1
	}
	s.workIn(f)
	o, ds := s.estateOptions(f, "render", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	s.aside(ds)
	units, roots, ds := s.unitsToMigrate(paths)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if len(units) == 0 {
		return s.fail(diag.Errorf(nil, "No unit", "There is no unit file to migrate."))
	}
	plan, ds := migrateAmong(ctx, o.UnitEnv(), units, roots)
	if ds.HasErrors() {
		return s.fail(ds)
	}
	if write {
		if ds := s.writeMigrated(plan); ds.HasErrors() {
			return s.fail(ds)
		}
	}
	s.showMigrated(plan, diff, write)
	return 0
}

// parseMixed reads flags that may stand between and behind other arguments.
func (s *session) parseMixed(f interface {
	Parse([]string) error
	Args() []string
}, args []string) (rest []string, ok bool) {
	for {
		if err := f.Parse(args); err != nil {
			s.usageError("migrate imports", "Failed to parse command-line flags", err.Error())
			return nil, false
		}
		if args = f.Args(); len(args) == 0 {
			return rest, true
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// unitsToMigrate finds the unit files below the given folders, or the working
// folder, and the folders in which other units may use the same files: the
// repositories that they lie in.
func (s *session) unitsToMigrate(paths []string) (units, roots []string, ds diag.List) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, p := range paths {
		path := s.Path(filepath.Clean(p))
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, nil, diag.Errorf(nil, "No unit", "%s.", err)
		case info.IsDir():
			found, more := estate.UnitFiles(path)
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

// migrateAmong plans the migration of units with regard to the other units in some
// folders. Where a shared file lies outside of these, others that use it may too: so
// the folder that holds it and the units is looked through as well.
func migrateAmong(ctx context.Context, env unit.Env, units, roots []string) (*migrate.Plan, diag.List) {
	asked := make(map[string]bool, len(units))
	for _, u := range units {
		asked[u] = true
	}
	for {
		var others []string
		for _, root := range roots {
			found, ds := estate.UnitFiles(root)
			if ds.HasErrors() {
				return nil, ds
			}
			others = append(others, slices.DeleteFunc(found, func(p string) bool { return asked[p] })...)
		}
		plan, err := migrate.Imports(ctx, env, units, others)
		if err != nil {
			return nil, diag.Errorf(nil, "Migration was interrupted", "Nothing was written: %s.", err)
		}
		grown := len(roots)
		for _, c := range plan.Changes {
			if asked[c.Path] || slices.ContainsFunc(roots, func(r string) bool { return below(r, c.Path) }) {
				continue
			}
			root := commonFolder(append(slices.Clone(units), c.Path))
			if root == filepath.Dir(root) {
				return nil, diag.Errorf(nil, "Shared file far away", "The file %s would be rewritten, and only the root of the file system holds it together with the units. Which other units use it cannot be told, so nothing is rewritten.", c.Path)
			}
			roots = append(roots, root)
			break
		}
		if len(roots) == grown {
			return plan, nil
		}
	}
}

// below reports whether a path lies in a folder.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// commonFolder is the deepest folder that holds all of some files.
func commonFolder(paths []string) string {
	dir := filepath.Dir(paths[0])
	for _, p := range paths[1:] {
		for !below(dir, p) {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}

// repository is the folder of the git repository that a path lies in; without one
// its own folder.
func repository(path string) string {
	own := path
	if isDir(path) != nil {
		own = filepath.Dir(path)
	}
	for dir := own; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return own
		}
	}
}

// writeMigrated writes the changed files. Each must be as it was when the plan was
// made.
func (s *session) writeMigrated(plan *migrate.Plan) diag.List {
	for _, c := range plan.Changes {
		if now, err := os.ReadFile(c.Path); err != nil || string(now) != string(c.Before) {
			return diag.Errorf(nil, "File changed meanwhile", "The file %s is no longer as it was when the migration began. Nothing was written.", c.Path)
		}
	}
	for i, c := range plan.Changes {
		if err := writeOver(c.Path, c.After); err != nil {
			return diag.Errorf(nil, "Failed to write file", "%d of %d files were written; then: %s. What was written and what was not go together only as a whole: run the command again when the reason is gone.", i, len(plan.Changes), err)
		}
	}
	return nil
}

// showMigrated tells what changed or would, and what is left alone and why.
func (s *session) showMigrated(plan *migrate.Plan, diff, wrote bool) {
	for _, c := range plan.Changes {
		c.Path = s.pathShown(c.Path)
		if diff {
			fmt.Fprint(s.Stdout, c.Diff())
		} else {
			fmt.Fprintln(s.Stdout, c.Path)
		}
	}
	for _, l := range plan.Left {
		fmt.Fprintf(s.Stderr, "left alone: %s: %s\n", s.placeShown(l.Path, l.At), l.Reason)
	}
	switch {
	case len(plan.Changes) == 0:
		fmt.Fprintf(s.Stderr, "Nothing to rewrite. Unit files: %d.\n", plan.Units)
		return
	case wrote:
		fmt.Fprintf(s.Stderr, "Files rewritten: %d.", len(plan.Changes))
	default:
		fmt.Fprintf(s.Stderr, "Files to rewrite: %d; --diff shows how, --write does it.", len(plan.Changes))
	}
	fmt.Fprintf(s.Stderr, " Units that use them: %d; all of them come out as before.\n", plan.Touched)
}

func (s *session) placeShown(path string, at source.Range) string {
	if at.Filename == "" {
		return s.pathShown(path)
	}
	return fmt.Sprintf("%s:%d", s.pathShown(at.Filename), at.Start.Line)
}

func migrateUsage() string {
	return usageText("Usage: "+view.Program+" [global options] migrate imports [options] [PATH...]\n\n"+
		"  Rewrites unit files from include blocks and read_terragrunt_config to import\n  blocks, where that means the same: every unit that a change touches is rendered\n  before and after, and what would differ is left alone and listed with the\n  reason. Comments and formatting are kept, and no state moves.\n\n"+
		"  PATH is a unit file, or a folder with units below it; the working folder if\n  none is given. Other units of the repository that use the same files come out\n  as before too. Without an option, the files are listed and nothing is written.",
		option("--diff", "Show what changes."),
		option("--write", "Write the changes."),
		option("--working-dir=PATH", "The folder to work in."))()
}
