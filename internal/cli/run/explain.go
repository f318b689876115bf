package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/explain"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/vars"
	"github.com/terrace-iac/terrace/source"
)

// explainUnit tells where a value of the unit in the working folder, or of its
// module, comes from. What can be answered without something that is missing is:
// outputs that do not exist are unknown, and a module that cannot be brought here
// keeps nobody from asking for the unit's own parts.
func explainUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, words []string) int {
	o := &explain.Options{}
	c.Command = cmd
	if !c.Parse(o.Flags(), words) {
		return 1
	}
	if o.Code != "" {
		return explain.ExplainCode(c, o)
	}
	if !o.Settle(c) {
		return 1
	}
	eo, about := units.LookOptions(c, f, "plan", nil)
	if about.HasErrors() {
		return c.Fail(about)
	}
	eo.Tolerant = true
	e, u, ds := estate.OpenUnit(ctx, eo, units.UnitPath(c, f), f.Module)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	t := e.Task(ctx)
	x := engine.ExplainOptions{Unit: u.Origin(t), UnitSet: e.Sources()}
	locate := func(file string) (path, layer string) { return file, "" }
	x.Show = func(file string) (string, string) {
		path, layer := locate(file)
		return seenFrom(c.Dir, path), layer
	}
	if estate.OfUnit(t, u, o.Address) && !e.AtHand(ctx, u) {
		out, ds := e.Explain(t, u, o.Address, x.Show)
		return printExplained(c, e, out, append(about, ds...), o)
	}
	w, code, explained := &unitView{Call: c, estate: e}, 0, false
	results := e.Run(ctx, estate.RunOptions{Command: &estate.Command{Look: true, Set: func(*estate.Unit) *source.Set { return c.Report.Set }, Do: func(ctx context.Context, _ *estate.Unit, s *estate.Site) (int, diag.List) {
		n := w.call(s)
		n.Unit.Tolerant, n.Unit.Files = true, s.Files()
		locate, explained = s.Locate, true
		x.Unit = u.Origin(e.Task(ctx))
		var given []vars.Flag
		for _, a := range s.Words() {
			if file, ok := strings.CutPrefix(a, "-var-file="); ok {
				given = append(given, vars.Flag{File: true, Value: file})
			} else if value, ok := strings.CutPrefix(a, "-var="); ok {
				given = append(given, vars.Flag{Value: value})
			}
		}
		o.Vars = append(given, o.Vars...)
		out, ds := explain.Explain(ctx, n, o, x)
		code = printExplained(n, e, out, append(about, ds...), o)
		return 0, nil
	}}})
	if explained {
		return code
	}
	ds = results[0].Diags
	out, more := e.Explain(e.Task(ctx), u, o.Address, x.Show)
	if more.HasErrors() {
		return units.FailWith(c, e, append(ds, more...))
	}
	return printExplained(c, e, out, append(about, ds.AsWarnings()...), o)
}

// printExplained prints an explanation, and what there is to tell besides where it
// does not disturb those who read the output.
func printExplained(c *command.Call, e *estate.Estate, x *engine.Explanation, ds diag.List, o *explain.Options) int {
	ds = slices.DeleteFunc(ds, func(m *diag.Message) bool { return m.Code == "unit/mocks-used" }) // a step says so
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Filter(ds))
	}
	return explain.PrintExplanation(c, x, o.Json)
}

// fromHere is a path as seen from the working folder.
func fromHere(c *command.Call, path string) string { return seenFrom(c.Dir, path) }

func seenFrom(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}
