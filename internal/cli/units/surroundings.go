package units

import (
	"context"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/initialize"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Surroundings are what a unit adds to the folder that a call works in: its inputs, which
// stand in sources, and the environment of its programs.
func Surroundings(c *command.Call, inputs func(root *config.Module) (map[string]engine.InputValue, diag.List), sources *source.Set, programs func() sys.Env) *command.Surroundings {
	return &command.Surroundings{Programs: programs, Values: func(_ context.Context, values map[string]engine.InputValue, root *config.Module) diag.List {
		given, ds := inputs(root)
		addInputs(values, given, ds, sources, c.Report.Set)
		return ds
	}}
}

// addInputs adds a unit's inputs to values that were given by other ways. The files
// that they, and messages about them, stand in join a set.
func addInputs(values, given map[string]engine.InputValue, ds diag.List, from, into *source.Set) {
	for name := range maps.Keys(given) {
		if _, ok := values[name]; !ok {
			values[name] = given[name]
		}
	}
	join(ds, from, into)
	for _, in := range given {
		joinAt(in.At, from, into)
	}
}

// join has the files that messages stand in join a set.
func join(ds diag.List, from, into *source.Set) {
	for _, m := range ds {
		joinAt(m.At, from, into)
	}
}

func joinAt(at *source.Range, from, into *source.Set) {
	if at == nil {
		return
	}
	if f := from.File(at.Filename); f != nil {
		into.Add(f)
	}
}

// locating is a folder.Folder.Locate whose places can be shown from a set.
func locating(locate func(diag.List) diag.List, from, into *source.Set) func(diag.List) diag.List {
	return func(ds diag.List) diag.List {
		ds = locate(ds)
		join(ds, from, into)
		return ds
	}
}

// initUnit runs init in the working folder of a unit, and says nothing.
func initUnit(ctx context.Context, c *command.Call, in estate.Installing) diag.List {
	inner := within(c, in.Folder)
	inner.Unit = Surroundings(inner, in.Values, in.Sources, in.Programs)
	inner.Unit.Value, inner.Unit.Locate = in.Value, locating(in.Folder.Locate, in.Sources, inner.Report.Set)
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
	n.Unit = Surroundings(&n, s.Values, e.Sources(), func() sys.Env { return s.Programs(n.Report.Context) })
	n.Unit.Sources, n.Unit.KeepDir, n.Unit.Locate = s.Sources(), s.Home(), locating(s.OfBackend, e.Sources(), n.Report.Set)
	n.Unit.Moves, n.Unit.Value, n.Unit.Note = s.Moves(), s.Value, s.Note
	n.Unit.Refer = func(_ context.Context, ref hcl.Traversal) (cty.Value, diag.List) { return s.Refer(ref) }
	return &n
}
