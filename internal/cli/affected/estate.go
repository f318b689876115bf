package affected

import (
	"context"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/revision"
)

// overUnits reports whether units are compared, and not the configuration of one directory: the
// directory is a unit, or contains no configuration of its own.
func overUnits(c *command.Call, o *options, r *revision.Revision) bool {
	at := *c
	at.Directory = c.Directory.In(r.Dir, c.Env, nil)
	at.Files = r.Files(c.Files)
	return units.IsUnit(&at, &o.units.Selection) || !config.IsConfigDir(r.Dir, config.Options{FS: at.Files})
}

// The comparison of two units makes much more garbage than it keeps. So the heap may grow by garbage times
// what the units keep before it is collected, up to mostHeap bytes.
const (
	garbage  = 3
	mostHeap = 436 << 20
)

// compareEstates compares the units below the working directory in two revisions.
func compareEstates(ctx context.Context, c *command.Call, o *options, pair *revision.Pair, r *affected.Report) diag.List {
	eo, ds := units.LookOptions(c, &o.units, "plan", nil)
	if ds.HasErrors() {
		return ds
	}
	eo.Discovery.Generate = !o.units.NoStackGenerate
	if !o.exec {
		units.SkipEffects(&eo)
	}
	if leave := c.System.LeaveHeap; leave != nil {
		eo.Discovery.Expect = func(bytes int64) { leave(min(garbage*bytes, mostHeap)) }
	}
	found, set, more := units.CompareRevisions(ctx, c, eo, pair, o.warnings.of(pair))
	c.Report.Set.Include(set)
	if found != nil {
		r.Units, r.NotCompared, o.errors = found.Units, found.NotCompared, []units.Located{found.Head, found.Base}
	}
	return append(ds, more...)
}
