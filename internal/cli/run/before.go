package run

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate"
)

// # The check before a run
//
// Whatever runs over an estate, the estate is checked as a whole first. What would
// change something is refused where there are errors. What only reads is not: in an
// incident the outputs are needed, whatever is wrong elsewhere. There the errors are
// reported as warnings, behind the command, but for those that units reported themselves.

// checked checks an estate for a command that runs on one unit after the other. ds is
// what was said when it was opened. With found it goes on, and that is reported behind it.
func (r *estateRun) checked(ctx context.Context, cmd *command.Command, ds diag.List) (found diag.List, ok bool) {
	ds = append(ds, r.estate.Check(ctx, r.f.Strict)...).Once()
	if cmd.Units.Has(command.OnlyReads) && r.estate.Found.Chosen {
		return ds.Errors(), true
	}
	if ds.HasErrors() {
		return ds, false
	}
	return nil, true
}

// afterwards reports the errors of the check that were not reported yet, as warnings.
func afterwards(c *command.Call, e *estate.Estate, found diag.List, reported *report.Reported) {
	var ds diag.List
	for _, m := range found.Once() {
		if !reported.Has(m) {
			ds = append(ds, m)
		}
	}
	units.Beside(c, e, ds.AsWarnings())
}
