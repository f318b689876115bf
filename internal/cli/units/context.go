package units

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/estate"
)

// initUnit runs init in the working directory of a unit, without output.
func initUnit(ctx context.Context, c *command.Call, in estate.Installing) diag.List {
	inner := c.Inside(in.Directory)
	inner.Report.Set.Include(in.Sources)
	return initialize.Quietly(ctx, inner, in.Words)
}

// CallIn returns a call in the working directory of the unit, with the unit's values and
// environment.
func CallIn(c *command.Call, e *estate.Estate, s *estate.Site) *command.Call {
	n := *c
	n.Enters(s.Directory())
	n.Origins = s
	for _, name := range s.Secret() {
		n.Report.Set.Conceal(name)
	}
	n.Report.Dir = n.Dir
	n.Report.Set.Include(e.Sources())
	return &n
}
