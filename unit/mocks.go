package unit

import (
	"fmt"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// withMocks replaces missing outputs by mock outputs.
func (n *depNode) withMocks(c *evaluator, v cty.Value, has bool) cty.Value {
	if has && n.plainMocks(c) {
		return v
	}
	mocks := n.Arg(c, "mock_outputs")
	allowed := n.mocksAllowed(c)
	if c.stuck() {
		return cty.DynamicVal
	}
	_, at := n.where()
	if has {
		if mocks == cty.NilVal || !allowed {
			return v
		}
		return n.mixMocks(c, v, mocks)
	}
	if mocks != cty.NilVal && (allowed || c.l.env.Tolerant) && !c.l.noMocks {
		target, _ := n.target(c)
		c.add(c.l.mockWarning(at, string(target), fmt.Sprintf("The dependency %q (%s) has no outputs, so its mock_outputs are used.", n.label, target)))
		return mocks
	}
	if c.l.env.Tolerant {
		return cty.DynamicVal
	}
	if v.RawEquals(cty.EmptyObjectVal) {
		return v // a stack or unit that has no outputs at all
	}
	mock := "give this block mock_outputs"
	if mocks != cty.NilVal {
		mock = fmt.Sprintf("let its mock_outputs_allowed_terraform_commands name the command %q", c.l.env.Request.Command)
	}
	target, _ := n.target(c)
	return c.errorf(at, diag.CodeUnitNoOutputs, "Dependency without outputs", "The dependency %q (%s) has no outputs in its state, most likely since it was not applied yet or is destroyed, and this run plans none for it. "+
		"Apply it first; or take it into the run, where its planned outputs stand in for those that do not exist yet: \"run --all plan\" in a directory above both, with --filter 'NAME...' for a unit and all that it needs; or %s.", n.label, target, mock)
}

// plainMocks reports whether the mock outputs are constant, so that they have no errors, and are not merged with
// real outputs.
func (n *depNode) plainMocks(c *evaluator) bool {
	if n.raw.child(c, "mock_outputs_merge_strategy_with_state") != nil || n.raw.child(c, "mock_outputs_merge_with_state") != nil {
		return false
	}
	mocks, allowed := n.raw.child(c, "mock_outputs"), n.raw.child(c, "mock_outputs_allowed_terraform_commands")
	return (mocks == nil || hasKeys(constantOf(mocks))) && (allowed == nil || isTexts(constantOf(allowed)))
}

// mocksWithoutOutputs returns the mock outputs of a dependency that is disabled or skips its
// outputs. It returns nil if the block has none, or if the command may not use them.
func (n *depNode) mocksWithoutOutputs(c *evaluator, enabled bool) node {
	mocks := n.raw.child(c, "mock_outputs")
	if mocks == nil {
		return nil
	}
	allowed := n.mocksAllowed(c)
	if c.stuck() {
		return nil
	}
	why := "skips its outputs"
	if !enabled {
		why = "is disabled"
	}
	if !allowed && !c.l.env.Tolerant {
		n.refused = fmt.Sprintf("The dependency %q %s, and its mock_outputs_allowed_terraform_commands does not name the command %q, so it has no outputs. Let the list name the command, or read the outputs of the unit.", n.label, why, c.l.env.Request.Command)
		return nil
	}
	if _, at := n.where(); c.full {
		c.add(c.l.mockWarning(at, n.label, fmt.Sprintf("The dependency %q %s, so its mock_outputs are used.", n.label, why)))
	}
	return mocks
}

func (n *depNode) mocksAllowed(c *evaluator) bool {
	const name = "mock_outputs_allowed_terraform_commands"
	var v cty.Value
	if v = constantOf(n.raw.child(c, name)); !isTexts(v) { // texts need no conversion
		v = n.Arg(c, name)
	}
	if v == cty.NilVal || !syntax.Known(v) || v.LengthInt() == 0 {
		return true
	}
	return slices.ContainsFunc(v.AsValueSlice(), func(w cty.Value) bool { return syntax.IsString(w) && w.AsString() == c.l.env.Request.Command })
}

// isTexts reports whether a value is a tuple of strings without marks.
func isTexts(v cty.Value) bool {
	if v == cty.NilVal || v.IsMarked() || !v.Type().IsTupleType() || !v.IsWhollyKnown() {
		return false
	}
	return !slices.ContainsFunc(v.Type().TupleElementTypes(), func(ty cty.Type) bool { return ty != cty.String })
}

// mixMocks adds mock outputs to real ones if the block requests it.
func (n *depNode) mixMocks(c *evaluator, v, mocks cty.Value) cty.Value {
	strategy := "no_merge"
	if s := n.Arg(c, "mock_outputs_merge_strategy_with_state"); s != cty.NilVal && syntax.Known(s) {
		strategy = s.AsString()
	} else if n.flag(c, "mock_outputs_merge_with_state", false) {
		strategy = "shallow"
	}
	if c.stuck() || !v.IsKnown() {
		return v
	}
	switch strategy {
	case "no_merge":
		return v
	case "shallow", "deep_map_only":
		return fill(mocks, v, strategy != "shallow")
	}
	_, at := n.where()
	return c.errorf(at, diag.CodeUnitMockStrategy, "Unknown mock strategy", "%s is not a merge strategy of mock outputs. The strategies are no_merge, shallow and deep_map_only.", c.quoted(n.raw.child(c, "mock_outputs_merge_strategy_with_state"), strategy))
}

// fill adds members of mocks that v does not have.
func fill(mocks, v cty.Value, recursive bool) cty.Value {
	bare, marks := v.Unmark()
	names, ok := valueKeys(bare)
	mockNames, mok := valueKeys(mocks)
	if !ok || !mok {
		return v
	}
	vals := make(map[string]cty.Value, len(names))
	for _, k := range mockNames {
		vals[k] = valueNode{v: mocks}.child(nil, k).(valueNode).v
	}
	for _, k := range names {
		real := valueNode{v: bare}.child(nil, k).(valueNode).v
		if mock, both := vals[k]; both && recursive {
			real = fill(mock, real, true)
		}
		vals[k] = real
	}
	return cty.ObjectVal(vals).WithMarks(marks)
}

// mockWarning returns the warning about the mocks of a dependency block. In an imported
// file, one block may have several targets. All readers of the block share the message.
func (l *Loader) mockWarning(at *source.Range, target, text string) diag.List {
	return l.warns.Pure(at.String()+"\x00"+target, func() diag.List {
		return diag.Warnf(diag.CodeUnitMocksUsed, at, "Mock outputs are used", "%s", text)
	})
}
