package migrate

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/unit"
)

// A Planner plans the migration of units. others are units that may share files with them.
// Imports, Includes and IncludeBlocks are planners.
type Planner func(ctx context.Context, env unit.Env, units, others []string) (*Plan, error)

// Among plans the migration of units, with all other units below roots as those that may use the
// same files. files returns the unit files below a directory. If a file outside of roots would
// change, units elsewhere may use it too. In this case, Among also reads the units below the
// directory that contains the file and the units.
func Among(ctx context.Context, planned Planner, env unit.Env, units, roots []string, files func(dir string) ([]string, diag.List)) (*Plan, diag.List) {
	requested := make(map[string]bool, len(units))
	for _, u := range units {
		requested[u] = true
	}
	for {
		var others []string
		for _, root := range roots {
			found, ds := files(root)
			if ds.HasErrors() {
				return nil, ds
			}
			others = append(others, slices.DeleteFunc(found, func(p string) bool { return requested[p] })...)
		}
		plan, err := planned(ctx, env, units, others)
		if err != nil {
			return nil, diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "Nothing was written: %s.", err)
		}
		grown := len(roots)
		for _, c := range plan.Changes {
			if requested[c.Path] || slices.ContainsFunc(roots, func(r string) bool { return isWithin(r, c.Path) }) {
				continue
			}
			root := commonDir(append(slices.Clone(units), c.Path))
			if root == filepath.Dir(root) {
				return nil, diag.Errorf(diag.CodeCLISharedFile, nil, "Shared file far away", "The file %s would be rewritten, and only the root of the file system contains it and the units. Which other units use it is not known, so nothing is rewritten.", c.Path)
			}
			roots = append(roots[:grown:grown], root)
			break
		}
		if len(roots) == grown {
			return plan, nil
		}
	}
}

// isWithin reports whether a path is inside a directory.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// commonDir returns the deepest directory that contains all of the files.
func commonDir(paths []string) string {
	dir := filepath.Dir(paths[0])
	for _, p := range paths[1:] {
		for !isWithin(dir, p) {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}
