package units

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Context are what a unit adds to the folder that a call works in: its inputs, which
// stand in sources, and the environment of its programs.
func Context(c *command.Call, inputs func(root *config.Module) (map[string]engine.InputValue, diag.List), sources *source.Set, programs workdir.ProgramEnv) *command.UnitContext {
	c.Report.Set.Include(sources)
	return &command.UnitContext{Programs: programs, Values: func(_ context.Context, values map[string]engine.InputValue, root *config.Module) diag.List {
		given, ds := inputs(root)
		for name, in := range given {
			if _, ok := values[name]; !ok { // else another way of giving it wins
				values[name] = in
			}
		}
		return ds
	}}
}

// initUnit runs init in the working folder of a unit, and says nothing.
func initUnit(ctx context.Context, c *command.Call, in estate.Installing) diag.List {
	inner := within(c, in.Directory)
	inner.Unit = Context(inner, in.Values, in.Sources, in.Programs)
	inner.Unit.Value, inner.Unit.Locate = in.Value, in.Directory.Locate
	return initialize.Quietly(ctx, inner, in.Words)
}

// CallIn is a call of a command in the working folder of the unit, with the unit's values and
// environment.
func CallIn(c *command.Call, e *estate.Estate, s *estate.Site) *command.Call {
	n := *c
	n.Dir, n.Env, n.Launch = s.Dir(), s.Environ(), s.Dir()
	for _, name := range s.Secret() {
		n.Report.Set.Conceal(name)
	}
	n.Report.Dir = s.Dir()
	n.Unit = Context(&n, s.Values, e.Sources(), s.Programs)
	n.Unit.Sources, n.Unit.KeepDir, n.Unit.Locate = s.Sources(), s.Home(), s.OfBackend
	n.Unit.Moves, n.Unit.Value, n.Unit.Note = s.Moves(), s.Value, s.Note
	n.Unit.Origin, n.Unit.Show = s.Origin, s.Locate
	n.Unit.Refer = func(_ context.Context, ref hcl.Traversal) (cty.Value, diag.List) { return s.Refer(ref) }
	return &n
}
