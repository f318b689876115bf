package units

import (
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
)

// CallIn returns a call in the working directory of the unit, with the unit's values and
// environment.
func CallIn(c *command.Call, e *estate.Estate, s *estate.Site) *command.Call {
	n := *c
	n.UnitDir = s.UnitDir()
	n.Enters(s.Directory())
	for _, name := range s.Secret() {
		n.Report.Set.Conceal(name)
	}
	n.Report.Dir = n.Dir
	n.Report.Set.Include(e.Sources())
	return &n
}
