package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
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
	eo, about := units.LookOptions(c, f, "plan", nil)
	if about.HasErrors() {
		return c.Fail(about)
	}
	eo.Tolerant = true
	e, u, ds := units.OpenUnit(ctx, c, eo, units.UnitPath(c, f), f.Module)
	if ds.HasErrors() {
		return units.FailWith(c, e, ds)
	}
	// Most explanations need no outputs of other units, whose states may be slow to read. Mock
	// outputs are not the answer if a unit has outputs.
	outputs := estate.UnknownOutputs
	if strings.HasPrefix(o.Address, "dependency.") {
		outputs = estate.MockOutputs
	}
	x := explainIn(ctx, c, e, e.Evaluate(u, outputs), o)
	if !x.settled && !f.NoOutputs && ctx.Err() == nil {
		x = explainIn(ctx, c, e, e.Evaluate(u, estate.StoredOutputs), o)
	}
	if x.call == nil {
		return units.FailWith(c, e, x.ds)
	}
	return printExplained(x.call, e, x.explanation, append(about, x.ds...), o)
}

// explained is the result of explainIn.
type explained struct {
	explanation *explanation.Explanation
	ds          diag.List
	call        *command.Call // the call that prints the explanation; nil if neither the module nor the unit has the value
	settled     bool          // no output of another unit can change the explanation
}

// explainIn explains a value of a unit or of its module.
func explainIn(ctx context.Context, c *command.Call, e *estate.Estate, v *estate.Evaluation, o *Options) explained {
	at := c // where the value was explained
	inUnit := func(file string) (string, string) { return sys.RelativeTo(c.Dir, file), "" }
	out, ds := v.Explain(ctx, c.Report.Set, o.Address, inUnit, func(s *run.Site) (*explanation.Explanation, diag.List) {
		at = units.CallIn(c, e, s)
		at.Tolerant, at.View = true, s.Files()
		with := *o
		with.Vars = append(givenWords(s.Words()), o.Vars...)
		var given engine.ExplainOptions
		at.Unit.Explain(&given)
		return Explain(ctx, at, &with, given)
	})
	if out == nil && at == c {
		return explained{ds: ds}
	}
	return explained{out, ds, at, settledBy(out, ds)}
}

// settledBy reports whether no output of another unit can change an explanation that was made
// without them.
func settledBy(x *explanation.Explanation, ds diag.List) bool {
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
func printExplained(c *command.Call, e *estate.Estate, x *explanation.Explanation, ds diag.List, o *Options) int {
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
