package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// RenderHCL returns the effective configuration as a unit file.
func (u *Unit) RenderHCL(t *demand.Task) ([]byte, diag.List) {
	c := u.on(t, true)
	w := &hclRenderer{c: c, u: u, n: u.whole(), spec: syntax.Language().Unit, left: maxParts}
	for _, b := range w.spec.Blocks {
		w.top(b)
	}
	for i := range w.spec.Args {
		a := &w.spec.Args[i]
		switch n := w.n.child(c, a.Name); {
		case u.field(c, a.Name) == nil:
		case a.Keyed:
			w.attr(a.Name, u.shown(c, a.Name, n))
		default:
			w.attr(a.Name, n.value(c))
		}
	}
	c.add(u.checkBlocks(t))
	if c.ds.HasErrors() {
		return nil, c.ds // the text is not shown
	}
	return w.text.formatted(), c.ds
}

type hclRenderer struct {
	c    *evaluator
	u    *Unit
	n    *configNode
	spec *syntax.BlockSpec
	left int // the number of values that may still be written
	text configText
}

// top writes the blocks of one type at the top.
func (w *hclRenderer) top(spec *syntax.BlockSpec) {
	if inMembers(spec.Name) {
		if hasLocals(w.u.e) {
			w.text.block(spec.Name, nil, func() { w.object(w.u.shown(w.c, spec.Name, w.n.child(w.c, spec.Name))) })
		}
		return
	}
	if w.u.field(w.c, spec.Name) == nil || spec.Showing == syntax.NeverShown || spec.Showing == syntax.ShownImports {
		return
	}
	shown := w.n.child(w.c, spec.Name)
	if spec.Label != syntax.OneLabel {
		w.block(spec, "", shown)
		return
	}
	w.labelled(spec, shown)
}

func (w *hclRenderer) labelled(spec *syntax.BlockSpec, n node) {
	o := n.open(w.c)
	labels, _ := o.keys(w.c)
	if spec.Sorted {
		labels = slices.Sorted(slices.Values(labels))
	}
	for _, l := range labels {
		in := o.child(w.c, l)
		if x, ok := in.(*expandedNode); ok { // each instance has a label of its own, so that the text can be read again
			for _, i := range x.instances(w.c) {
				w.block(spec, l+i.address().String(), x.of(&i))
			}
			continue
		}
		w.block(spec, l, in)
	}
}

// block writes one block: first the arguments that differ from their defaults, then the
// nested blocks.
func (w *hclRenderer) block(spec *syntax.BlockSpec, label string, n node) {
	var labels []string
	if spec.Label == syntax.OneLabel {
		labels = []string{label}
	}
	w.text.block(spec.Name, labels, func() {
		if s, ok := n.(*shape); ok {
			w.body(spec, s)
		}
	})
}

// body writes the arguments and nested blocks of a block.
func (w *hclRenderer) body(spec *syntax.BlockSpec, s *shape) {
	for i := range spec.Args {
		a := &spec.Args[i]
		if s.raw.child(w.c, a.Name) == nil && a.HCL != syntax.WriteAlways {
			continue
		}
		v := blank(s.child(w.c, a.Name).value(w.c))
		if a.HCL != syntax.IfSet && v.IsKnown() && v.IsNull() {
			continue
		}
		w.attr(a.Name, v)
	}
	for _, sub := range spec.Blocks {
		raw := s.raw.child(w.c, sub.Name)
		if raw == nil {
			continue
		}
		if sub.Label == syntax.OneLabel {
			o := raw.open(w.c)
			names, _ := o.keys(w.c)
			for _, l := range names {
				w.block(sub, l, s.of.shaped(o.child(w.c, l), sub, l))
			}
			continue
		}
		w.block(sub, "", s.of.shaped(raw, sub, ""))
	}
}

func (w *hclRenderer) object(v cty.Value) {
	names, _ := valueKeys(v)
	slices.Sort(names)
	for _, k := range names {
		w.attr(k, valueNode{v: v}.child(nil, k).(valueNode).v)
	}
}

func (w *hclRenderer) attr(name string, v cty.Value) {
	if w.c.ds.HasErrors() {
		return // the text is not shown, and the error may be about its size
	}
	if !w.c.fits(w.u, v, &w.left) {
		return
	}
	w.text.attribute(name, showable(w.u.revealed(v)))
}

// showable replaces values that cannot be written: unknown ones by null, and secret ones by
// hiddenText.
func showable(v cty.Value) cty.Value {
	if v.IsMarked() {
		if value.Secret(v) {
			return cty.StringVal(hiddenText)
		}
		v, _ = v.Unmark()
	}
	ty := v.Type()
	switch {
	case !v.IsKnown() || syntax.HugeNumber(v):
		return cty.NullVal(cty.DynamicPseudoType)
	case v.IsNull():
		return v
	case ty.IsObjectType() || ty.IsMapType():
		m := v.AsValueMap()
		for k, in := range m {
			m[k] = showable(in)
		}
		return cty.ObjectVal(m)
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		var out []cty.Value
		for _, in := range v.AsValueSlice() {
			out = append(out, showable(in))
		}
		return cty.TupleVal(out)
	}
	return v
}
