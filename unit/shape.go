package unit

import (
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// shape is a block as an object with every argument of its type.
type shape struct {
	raw   node
	spec  *syntax.BlockSpec
	label string
	of    *configNode
}

func (n *shape) open(*evaluator) node { return n }

func (n *shape) value(c *evaluator) cty.Value { return objectOf(c, n) }

func (n *shape) where() (*evaluation, *source.Range) { return n.raw.where() }

func (n *shape) keys(c *evaluator) ([]string, bool) {
	var names []string
	for i := range n.spec.Args {
		if a := &n.spec.Args[i]; !a.Hidden || n.raw.child(c, a.Name) != nil {
			names = append(names, a.ShownName())
		}
	}
	for _, b := range n.spec.Blocks {
		if b.Showing != syntax.ShownIfSet || n.raw.child(c, b.Name) != nil {
			names = append(names, b.Name)
		}
	}
	if n.hasName() {
		names = append(names, "name")
	}
	for _, m := range n.spec.Computed {
		if n.of.style == importStyle || !m.ImportsOnly {
			names = append(names, m.Name)
		}
	}
	return names, true
}

// hasName reports whether the object has the block's label as its name.
func (n *shape) hasName() bool { return n.spec.Label == syntax.OneLabel && !n.spec.Unnamed }

// computed returns a computed member of a block (syntax.BlockSpec.Computed).
func (n *shape) computed(c *evaluator, name string) node {
	switch name {
	case "outputs":
		return n.outputs(c)
	case "value":
		return c.feature(n.label, n.raw)
	}
	e, at := n.raw.where()
	return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
}

func (n *shape) outputs(c *evaluator) node {
	if n.of.style == renderStyle {
		return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
	}
	d := &depNode{scope: n.of.e, label: n.label, raw: n.raw}
	if out := d.child(c, "outputs"); out != nil {
		return out
	}
	return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
}

func (n *shape) child(c *evaluator, key string) node {
	e, at := n.raw.where()
	if key == "name" && n.hasName() {
		return valueNode{cty.StringVal(n.label), e, at}
	}
	if m := n.spec.Member(key); m != nil && (n.of.style == importStyle || !m.ImportsOnly) {
		return n.computed(c, key)
	}
	if a := n.spec.ShownArg(key); a != nil {
		if in := n.raw.child(c, a.Name); in != nil {
			return n.path(typed(in, a), in, a)
		}
		if a.Required && n.of.style == importStyle {
			return c.absent(n, a)
		}
		if a.Def != cty.NilVal {
			return valueNode{a.Def, e, at}
		}
		return valueNode{cty.NullVal(a.Ty), e, at}
	}
	sub := n.spec.Block(key)
	if sub == nil {
		return nil
	}
	in := n.raw.child(c, key)
	switch {
	case in == nil && sub.Showing == syntax.ShownIfSet:
		return nil
	case in == nil && sub.Ordered:
		return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
	case in == nil:
		return valueNode{cty.EmptyObjectVal, e, at}
	case sub.Ordered:
		return n.list(c, sub, in)
	case sub.Label == syntax.OneLabel:
		return &mapped{in, func(_ *evaluator, label string, b node) node { return n.of.shaped(b, sub, label) }}
	}
	return n.of.shaped(in, sub, "")
}

// absent is a missing required argument of a file that is imported without merging. Only
// reading it is an error (rule 12).
func (c *evaluator) absent(n *shape, a *syntax.ArgSpec) node {
	_, at := n.where()
	c.errorf(at, diag.CodeUnitMissingArgument, "Missing required argument",
		"The argument %q of this %s block is read through an import, but it is not set. Files that gave it: %s.", a.Name, n.spec.Name, n.of.e.file().Path)
	return valueNode{v: cty.DynamicVal}
}

func (n *shape) list(c *evaluator, sub *syntax.BlockSpec, in node) node {
	var vals []cty.Value
	labels, _ := in.keys(c)
	for _, l := range labels {
		vals = append(vals, n.of.shaped(in.child(c, l), sub, l).value(c))
	}
	e, at := in.where()
	return valueNode{cty.TupleVal(vals), e, at}
}

// typed converts an argument to its type.
func typed(n node, a *syntax.ArgSpec) node {
	if a.Ty == cty.DynamicPseudoType {
		return n
	}
	return &converted{n, func(c *evaluator, v cty.Value) cty.Value {
		_, at := n.where()
		place := source.Range{}
		if at != nil {
			place = *at
		}
		return c.convert(v, a.Ty, a.Name, place)
	}}
}

var errHuge = errors.New("the number has too many digits")

// convert converts a value. An error refers to the range at.
func (c *evaluator) convert(v cty.Value, ty cty.Type, name string, at source.Range) cty.Value {
	if c.stuck() {
		return cty.UnknownVal(ty)
	}
	if v.Type().Equals(ty) || ty == cty.DynamicPseudoType {
		return v
	}
	out, err := v, errHuge
	if !syntax.HugeNumber(v) {
		out, err = convert.Convert(v, ty)
	}
	if err != nil {
		c.add(diag.List{{
			Code: diag.CodeUnitWrongType, Summary: "Incorrect attribute value type", At: &at,
			Detail: fmt.Sprintf("Inappropriate value for attribute %q: %s.", name, lang.ErrorText(err)),
		}})
		return cty.UnknownVal(ty)
	}
	return out
}

// path makes a path that an import rebased relative to the unit again, as the unit would
// write it.
func (n *shape) path(out, in node, a *syntax.ArgSpec) node {
	if e, _ := in.where(); n.of.style != renderStyle || a.Path == syntax.NoPath || e == nil || e.role != importRole {
		return out
	}
	return &converted{out, func(_ *evaluator, v cty.Value) cty.Value {
		if v.Type().IsListType() && syntax.Known(v) {
			var all []cty.Value
			for _, p := range v.AsValueSlice() {
				all = append(all, relativeToUnit(p, n.of.e.dir))
			}
			return cty.TupleVal(all)
		}
		return relativeToUnit(v, n.of.e.dir)
	}}
}
