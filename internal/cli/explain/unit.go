package explain

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// InUnit explains a value of the unit in the working directory, or of its module. It answers
// as much as possible: outputs that do not exist are unknown, and the unit's own parts can be
// explained even if its module cannot be fetched.
func InUnit(ctx context.Context, c *command.Call, cmd *command.Command, f *unitflags.Flags, words []string) int {
	o := &Options{}
	c.Command = cmd
	if !c.Parse(o.Flags(), words) {
		return 1
	}
	if o.Code != "" {
		return explainCode(c, o)
	}
	if !o.Settle(c) {
		return 1
	}
	without := *f
	without.NoOutputs = true // most answers need no outputs of other units
	answers := &unit.Answers{}
	answer, settled := explainIn(ctx, c, &without, o, answers, true)
	if !settled && !f.NoOutputs && ctx.Err() == nil {
		answer, _ = explainIn(ctx, c, f, o, answers, false)
	}
	return answer()
}

// explainIn explains a value with the flags of a unit. settled means that no output of another
// unit can change the answer; the first attempt reads no outputs. The attempts share answers,
// so that no program runs twice.
func explainIn(ctx context.Context, c *command.Call, f *unitflags.Flags, o *Options, answers *unit.Answers, first bool) (answer func() int, settled bool) {
	eo, about := units.LookOptions(c, f, "plan", nil)
	if about.HasErrors() {
		return func() int { return c.Fail(about) }, true
	}
	eo.Tolerant, eo.Machine.Answers = true, answers
	// A value made of mock outputs is not the answer if real outputs exist. The mocks
	// themselves are secret if they would set a sensitive variable.
	eo.Skip.Mocks = first && !strings.HasPrefix(o.Address, "dependency.")
	e, u, ds := estate.OpenUnit(ctx, eo, units.UnitPath(c, f), f.Module)
	fail := func(ds diag.List) (func() int, bool) {
		return func() int { return units.FailWith(c, e, ds) }, false
	}
	if ds.HasErrors() {
		return fail(ds)
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
		return func() int { return printExplained(c, e, out, append(about, ds...), o) }, settledBy(out, ds)
	}
	results := e.Run(ctx, estate.RunOptions{Command: &estate.Command{Look: true, Set: func(*estate.Unit) *source.Set { return c.Report.Set }, Do: func(ctx context.Context, _ *estate.Unit, s *estate.Site) (int, diag.List) {
		n := units.CallIn(c, e, s)
		n.Tolerant, n.View = true, s.Files()
		locate = s.Source
		x.Unit = u.Origin(e.Task(ctx))
		with := *o
		with.Vars = append(givenWords(s.Words()), o.Vars...)
		out, ds := Explain(ctx, n, &with, x)
		answer, settled = func() int { return printExplained(n, e, out, append(about, ds...), o) }, settledBy(out, ds)
		return 0, nil
	}}})
	if answer != nil {
		return answer, settled
	}
	ds = results[0].Diags
	out, more := e.Explain(e.Task(ctx), u, o.Address, x.Show)
	if more.HasErrors() {
		return fail(append(ds, more...))
	}
	return func() int { return printExplained(c, e, out, append(about, ds.AsWarnings()...), o) }, settledBy(out, more)
}

// settledBy reports whether no output of another unit can change an explanation that was made
// without them.
func settledBy(x *engine.Explanation, ds diag.List) bool {
	if x == nil || ds.HasErrors() || !x.Whole && (x.Value == cty.NilVal || !x.Value.IsWhollyKnown()) {
		return false
	}
	return !slices.ContainsFunc(x.Steps, func(s *explanation.Step) bool {
		return slices.Contains([]explanation.Kind{explanation.Dependency, explanation.MockOutputs, explanation.Unknown, explanation.Failed}, s.Kind)
	})
}

// givenWords returns the variables and variable files in words of the command line.
func givenWords(words []string) (given []workdir.VarFlag) {
	_, _ = flag.Vars(&given).Take(words, false) // errors are impossible: every value is accepted
	return given
}

// printExplained prints an explanation. Messages go to Stderr, so that they are not part of
// the output.
func printExplained(c *command.Call, e *estate.Estate, x *engine.Explanation, ds diag.List, o *Options) int {
	ds = slices.DeleteFunc(ds.Once(), func(m *diag.Message) bool { return m.Code == diag.CodeUnitMocksUsed }) // a step of the explanation contains this
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	if len(ds) > 0 {
		c.Report.Set.Include(e.Sources())
		_ = c.Report.Printer(c.Report.Set).Print(c.Stderr, c.Report.Filter(ds))
	}
	return printExplanation(c, x, o.Json)
}

// seenFrom returns path relative to a directory.
func seenFrom(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}
