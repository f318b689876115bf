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
// Every run first checks the whole estate. Commands that change something do not start if
// there are errors. Commands that only read start anyway, because an operator needs the
// outputs during an incident, whatever is wrong elsewhere. They report the errors at the end
// as warnings, unless a unit has already reported them.

// checked checks an estate for a command that runs once for each unit. ds are the messages
// from opening it. If ok is true, the command starts, and the caller reports found at the end.
// If ok is false, found contains the errors that prevent the start.
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

// afterwards reports, as warnings, the errors in found that were not reported yet.
func afterwards(c *command.Call, e *estate.Estate, found diag.List, reported *report.Reported) {
	var ds diag.List
	for _, m := range found.Once() {
		if !reported.Has(m) {
			ds = append(ds, m)
		}
	}
	units.Beside(c, e, ds.AsWarnings())
}
