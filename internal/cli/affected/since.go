package affected

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/revision"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// Since returns the texts that lines of the working directory had in a revision, by FILE:LINE, for
// the lines that change a value of its configuration.
func Since(ctx context.Context, c *command.Call, base string, vars []workdir.VarFlag) (map[string]string, diag.List) {
	return since(ctx, c, base, func(pair *revision.Pair, r *affected.Report) diag.List {
		return compareDirectories(ctx, c, &options{vars: vars}, pair, r)
	})
}

// EstateSince is like Since for the units of an estate.
func EstateSince(ctx context.Context, c *command.Call, base string, o estate.Options) (map[string]string, diag.List) {
	return since(ctx, c, base, func(pair *revision.Pair, r *affected.Report) diag.List {
		units.SkipEffects(&o)
		found, set, ds := units.CompareRevisions(ctx, c, o, pair, nil)
		if found != nil { // the texts of units with errors are missing
			r.Units = found.Units
		}
		c.Report.Set.Include(set)
		return ds
	})
}

// UnitSince is like Since for a command that runs in a unit. Files are named relative to the directory
// of the unit.
func UnitSince(ctx context.Context, c *command.Call, base string) (map[string]string, diag.List) {
	at, f := *c, &unitflags.Flags{}
	at.Directory, at.UnitDir = c.Directory.In(c.UnitDir, c.Env, nil), ""
	if err := f.Settle(c.Env); err != nil {
		return nil, diag.Errorf(diag.CodeCLIRevision, nil, "Invalid revision", "The revisions cannot be compared: %s.", diag.Reason(err))
	}
	o, ds := units.LookOptions(&at, f, "plan", nil)
	if ds.HasErrors() {
		return nil, ds
	}
	o.Discovery.Generate = true
	return EstateSince(ctx, &at, base, o)
}

func since(ctx context.Context, c *command.Call, base string, compare func(*revision.Pair, *affected.Report) diag.List) (map[string]string, diag.List) {
	trees := &estate.Worktrees{}
	c.Interrupts.Removes(trees.Remove)
	pair, ds := units.Revisions(ctx, c, trees, c.Dir, []string{base}, false)
	if ds.HasErrors() {
		return nil, ds
	}
	defer pair.Close(ctx)
	r := &affected.Report{Base: pair.Base.Name, Head: pair.Head.Name}
	if ds = compare(pair, r); ds.HasErrors() {
		return nil, ds.Errors()
	}
	r.Finish()
	return affected.Was(r.Causes), nil
}
