package unit

import (
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// shape is a block as an object with every argument that its kind has.
type shape struct {
	raw   node
	spec  *blockSpec
	label string
	of    *configNode
}

func (n *shape) open(*calc) node { return n }

func (n *shape) value(c *calc) cty.Value { return objectOf(c, n) }

func (n *shape) where() (*ev, *source.Range) { return n.raw.where() }

func (n *shape) keys(c *calc) ([]string, bool) {
	var names []string
	for i := range n.spec.args {
		if a := &n.spec.args[i]; !a.hidden || n.raw.child(c, a.name) != nil {
			names = append(names, shownName(n.spec, a.name))
		}
	}
	for _, b := range n.spec.blocks {
		switch {
		case b.name == "ignore" && n.raw.child(c, b.name) == nil:
			continue
		}
		names = append(names, b.name)
	}
	if n.spec.label == oneLabel && n.spec.name != "generate" {
		names = append(names, "name")
	}
	switch n.spec.name {
	case "dependency":
		names = append(names, "inputs", "outputs")
	case "feature":
		if n.of.style == importStyle {
			names = append(names, "value")
		}
	}
	return names, true
}

// shownName is how an argument is called in rendered objects.
func shownName(spec *blockSpec, name string) string {
	if spec.name == "dependency" && name == "skip_outputs" {
		return "skip"
	}
	return name
}

func (n *shape) outputs(c *calc) node {
	if n.of.style == renderStyle {
		return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
	}
	d := &depNode{scope: n.of.e, label: n.label, raw: n.raw}
	if out := d.child(c, "outputs"); out != nil {
		return out
	}
	return valueNode{cty.NullVal(cty.DynamicPseudoType), nil, nil}
}

func (n *shape) child(c *calc, key string) node {
	e, at := n.raw.where()
	switch {
	case key == "name" && n.spec.label == oneLabel && n.spec.name != "generate":
		return valueNode{cty.StringVal(n.label), e, at}
	case n.spec.name == "dependency" && key == "outputs":
		return n.outputs(c)
	case n.spec.name == "dependency" && key == "inputs":
		return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
	case n.spec.name == "feature" && key == "value" && n.of.style == importStyle:
		return c.feature(n.label, n.raw)
	case n.spec.name == "dependency" && key == "skip":
		key = "skip_outputs"
	}
	if a := n.spec.arg(key); a != nil {
		if in := n.raw.child(c, key); in != nil {
			return n.path(typed(in, a), in, a)
		}
		if a.required && n.of.style == importStyle {
			return c.absent(n, a)
		}
		if a.def != cty.NilVal {
			return valueNode{a.def, e, at}
		}
		return valueNode{cty.NullVal(a.ty), e, at}
	}
	sub := n.spec.block(key)
	if sub == nil {
		return nil
	}
	in := n.raw.child(c, key)
	switch {
	case in == nil && sub.label == oneLabel && !sub.ordered:
		return valueNode{cty.EmptyObjectVal, e, at}
	case in == nil && sub.name == "retry":
		return valueNode{cty.NullVal(cty.DynamicPseudoType), e, at}
	case in == nil:
		return nil
	case sub.ordered:
		return n.list(c, sub, in)
	case sub.label == oneLabel:
		return &mapped{in, func(label string, b node) node { return n.of.shaped(b, sub, label) }}
	}
	return n.of.shaped(in, sub, "")
}

// absent is a required argument of a file that is imported without merging:
// reading it is the error (rule 12).
func (c *calc) absent(n *shape, a *argSpec) node {
	_, at := n.where()
	c.errorf(at, "unit/missing-argument", "Missing required argument",
		"The argument %q of this %s block is read through an import, but it is not set. Files that gave it: %s.", a.name, n.spec.name, n.of.e.f.path)
	return valueNode{v: cty.DynamicVal}
}

func (n *shape) list(c *calc, sub *blockSpec, in node) node {
	var vals []cty.Value
	labels, _ := in.keys(c)
	for _, l := range labels {
		vals = append(vals, n.of.shaped(in.child(c, l), sub, l).value(c))
	}
	e, at := in.where()
	return valueNode{cty.TupleVal(vals), e, at}
}

// typed converts an argument to its type.
func typed(n node, a *argSpec) node {
	if a.ty == cty.DynamicPseudoType {
		return n
	}
	return &converted{n, func(c *calc, v cty.Value) cty.Value {
		_, at := n.where()
		place := source.Range{}
		if at != nil {
			place = *at
		}
		return c.convert(v, a.ty, a.name, place)
	}}
}

var errHuge = errors.New("the number has too many digits")

// convert converts a value; the error stands at the argument.
func (c *calc) convert(v cty.Value, ty cty.Type, name string, at source.Range) cty.Value {
	if c.stuck() {
		return cty.UnknownVal(ty)
	}
	if v.Type().Equals(ty) || ty == cty.DynamicPseudoType {
		return v
	}
	out, err := v, errHuge
	if !hugeNumber(v) {
		out, err = convert.Convert(v, ty)
	}
	if err != nil {
		c.add(diag.List{{
			Code: "unit/wrong-type", Summary: "Incorrect attribute value type", At: &at,
			Detail: fmt.Sprintf("Inappropriate value for attribute %q: %s.", name, lang.ErrorText(err)),
		}})
		return cty.UnknownVal(ty)
	}
	return out
}

// path shows a path that an import rebased as the unit would write it.
func (n *shape) path(out, in node, a *argSpec) node {
	if e, _ := in.where(); n.of.style != renderStyle || !a.path || e == nil || e.role != importRole {
		return out
	}
	return &converted{out, func(_ *calc, v cty.Value) cty.Value {
		if v.Type().IsListType() && known(v) {
			var all []cty.Value
			for _, p := range v.AsValueSlice() {
				all = append(all, relativeToUnit(p, n.of.e.dir))
			}
			return cty.TupleVal(all)
		}
		return relativeToUnit(v, n.of.e.dir)
	}}
}
