package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/estate"
)

// explainUnit tells where a value of the unit in the working folder, or of its
// module, comes from. What can be answered without something that is missing is:
// outputs that do not exist are unknown, and a module that cannot be brought here
// keeps nobody from asking for the unit's own parts.
func explainUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitFlags, words []string) int {
	o := &explainOptions{}
	c.Command = cmd
	if !c.Parse(o.flags(), words) || !o.settle(c) {
		return 1
	}
	eo, about := estateOptions(c, f, "plan", nil, nil)
	if about.HasErrors() {
		return c.Fail(about)
	}
	eo.Tolerant = true
	e, u, ds := estate.OpenUnit(ctx, eo, unitPath(c, f), f.module)
	if ds.HasErrors() {
		return failWith(c, e, ds)
	}
	here := c.Dir
	var single *estate.Single // once its working folder was made
	t := e.Task(ctx)
	x := engine.ExplainOptions{Unit: u.Origin(t), UnitSet: e.Sources()}
	x.Show = func(file string) (string, string) {
		path, layer := single.Locate(file)
		return seenFrom(here, path), layer
	}
	if estate.OfUnit(t, u, o.address) && !e.AtHand(ctx, u) {
		out, ds := e.Explain(t, u, o.address, x.Show)
		return printExplained(c, e, out, append(about, ds...), o)
	}
	single, ds = e.Look(ctx, u)
	if about = append(about, ds.Warnings()...); ds.HasErrors() {
		out, more := e.Explain(t, u, o.address, x.Show)
		if more.HasErrors() {
			return failWith(c, e, append(ds, more...))
		}
		return printExplained(c, e, out, append(about, asWarnings(ds)...), o)
	}
	extra, env := single.Extra()
	dir := single.Dir()
	c.Work(c.System.In(dir))
	c.Launch, c.Unit = dir, surroundings(c, single.Values, e.Sources(), nil)
	c.Unit.Files = single.Files()
	c.Unit.Tolerant = true
	for _, name := range single.Secret() {
		c.Report.Set.Conceal(name)
	}
	c.Env = c.Env.With(env...)
	var given []vars.Flag
	for _, a := range extra {
		if file, ok := strings.CutPrefix(a, "-var-file="); ok {
			given = append(given, vars.Flag{File: true, Value: file})
		} else if value, ok := strings.CutPrefix(a, "-var="); ok {
			given = append(given, vars.Flag{Value: value})
		}
	}
	o.vars = append(given, o.vars...)
	out, ds := explain(ctx, c, o, x)
	return printExplained(c, e, out, append(about, ds...), o)
}

// printExplained prints an explanation, and what there is to tell besides where it
// does not disturb those who read the output.
func printExplained(c *command.Call, e *estate.Estate, x *engine.Explanation, ds diag.List, o *explainOptions) int {
	ds = slices.DeleteFunc(ds, func(m *diag.Message) bool { return m.Code == "unit/mocks-used" }) // a step says so
	if ds.HasErrors() {
		return failWith(c, e, ds)
	}
	if len(ds) > 0 {
		_ = c.Report.Printer(e.Sources()).Print(c.Stderr, c.Report.Filter(ds))
	}
	return printExplanation(c, x, o.json)
}

// fromHere is a path as seen from the working folder.
func fromHere(c *command.Call, path string) string { return seenFrom(c.Dir, path) }

func seenFrom(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}
