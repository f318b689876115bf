package lang

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Eval evaluates the body in a scope to an object of the schema's implied type, with marks.
// Where an error occurred, the value is unknown.
func (b *Body) Eval(t *demand.Task, s Scope) (cty.Value, diag.List) {
	vals, ds := b.Values(t, s)
	return cty.ObjectVal(vals), ds
}

// Values is Eval with the attributes of the object.
func (b *Body) Values(t *demand.Task, s Scope) (vals map[string]cty.Value, ds diag.List) {
	vals = maps.Clone(b.schema.Absent)
	for i := range b.attrs {
		a := &b.attrs[i]
		if a.constant != cty.NilVal {
			vals[a.name] = a.constant
			if a.readOnly {
				ds = append(ds, a.decided(a.constant)...)
			}
			continue
		}
		v, more := Eval(t, s, a.expr, a.ty)
		if len(more) > 0 {
			ds = append(ds, inAttribute(more, a.name)...)
		}
		if a.readOnly {
			ds = append(ds, a.decided(v)...)
		}
		vals[a.name] = v
	}
	for i := range b.blocks {
		v, more := b.blocks[i].eval(t, s)
		ds = append(ds, more...)
		vals[b.blocks[i].name] = v
	}
	return vals, ds
}

// element is one evaluated nested block.
type element struct {
	label string
	value cty.Value
}

func (bb *bodyBlocks) eval(t *demand.Task, s Scope) (cty.Value, diag.List) {
	var elems []element
	var ds diag.List
	marks := cty.ValueMarks{}
	unknown := false
	for i := range bb.items {
		it := &bb.items[i]
		if it.dynamic == nil {
			v, more := it.body.Eval(t, s)
			ds = append(ds, more...)
			elems = append(elems, element{it.label, v})
			continue
		}
		more, u, m, moreDiags := it.expand(t, s)
		ds = append(ds, moreDiags...)
		if !u && len(m) > 0 {
			m = bb.markEach(it, more, m)
		}
		elems = append(elems, more...)
		unknown = unknown || u
		for k := range m {
			marks[k] = struct{}{}
		}
	}
	if bb.asAttr != nil && len(elems) == 0 && !unknown {
		// Without a block the argument is not set, as without a dynamic block. An empty
		// collection would instruct the provider to remove existing elements.
		if bb.asAttr.Required && !ds.HasErrors() {
			ds = append(ds, missing(bb.name, bb.items[0].at)...)
		}
		return cty.NullVal(bb.asAttr.Type), ds
	}
	v, more := bb.collect(elems, unknown)
	if unknown && single(bb.nb) {
		v = bb.unknown()
	}
	if len(marks) > 0 {
		v = v.WithMarks(marks)
	}
	return v, append(ds, more...)
}

// couldIterate reports whether values of a type may have elements.
func couldIterate(ty cty.Type) bool {
	return ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType()
}

func (it *bodyItem) expand(t *demand.Task, s Scope) (out []element, unknown bool, marks cty.ValueMarks, ds diag.List) {
	coll, ds := Eval(t, s, it.dynamic.forEach, cty.DynamicPseudoType)
	coll, marks = coll.Unmark()
	at := it.dynamic.forEach.Range()
	switch {
	case ds.HasErrors() || !coll.IsKnown() && couldIterate(coll.Type()):
		return nil, true, marks, ds
	case coll.IsKnown() && coll.IsNull() || !coll.CanIterateElements():
		return nil, false, marks, append(ds, notIterable(coll, &at)...)
	}
	isSet := coll.Type().IsSetType()
	for el := coll.ElementIterator(); el.Next(); {
		k, v := el.Element()
		if isSet {
			k = v
		}
		child := iteration{Scope: s, name: it.dynamic.iterator, value: cty.ObjectVal(map[string]cty.Value{"key": k.WithMarks(marks), "value": v.WithMarks(marks)})}
		e := element{}
		for _, l := range it.dynamic.labels {
			lv, more := Eval(t, child, l, cty.String)
			ds = append(ds, more...)
			lv, _ = lv.Unmark()
			if !lv.IsKnown() {
				return nil, true, marks, ds
			}
			if lv.IsNull() {
				at := l.Range()
				return nil, false, marks, append(ds, diag.Errorf(diag.CodeLangDynamicBlock, &at, "Invalid dynamic block label", "Cannot use a null value as a dynamic block label.")...)
			}
			e.label = lv.AsString()
		}
		var more diag.List
		e.value, more = it.body.Eval(t, child)
		ds = append(ds, more...)
		out = append(out, e)
	}
	return out, false, marks, ds
}

func notIterable(coll cty.Value, at *source.Range) diag.List {
	if coll.IsKnown() && coll.IsNull() {
		return diag.Errorf(diag.CodeLangDynamicBlock, at, "Invalid dynamic for_each value", "Cannot use a null value in for_each.")
	}
	return diag.Errorf(diag.CodeLangDynamicBlock, at, "Invalid dynamic for_each value", "Cannot use a %s value in for_each. An iterable collection is required.", coll.Type().FriendlyName())
}

// iteration is the scope of the content of a dynamic block.
type iteration struct {
	Scope
	name  string
	value cty.Value
}

func (s iteration) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	if ref.RootName() == s.name {
		return s.value, 1, nil
	}
	return s.Scope.Resolve(t, ref, at)
}

// collect builds the value of a nested block type from its blocks.
func (bb *bodyBlocks) collect(elems []element, unknown bool) (cty.Value, diag.List) {
	nb := bb.nb
	ty := nb.Block.ImpliedType()
	dyn := ty.HasDynamicTypes()
	if unknown {
		switch {
		case single(nb):
			return cty.UnknownVal(ty), nil
		case dyn && nb.Nesting != schema.Set:
			return cty.DynamicVal, nil
		case nb.Nesting == schema.List:
			return cty.UnknownVal(cty.List(ty)), nil
		case nb.Nesting == schema.Map:
			return cty.UnknownVal(cty.Map(ty)), nil
		default:
			return cty.UnknownVal(cty.Set(ty)), nil
		}
	}
	at := bb.items[len(bb.items)-1].at
	if n := nb.MaxItems; n > 0 && len(elems) > n || len(elems) > 1 && single(nb) {
		return cty.UnknownVal(ty), diag.Errorf(diag.CodeLangBlockCount, &at, "Too many "+bb.name+" blocks", "No more than %d %q blocks are allowed.", max(n, 1), bb.name)
	}
	if len(elems) < nb.MinItems {
		return nb.EmptyValue(), diag.Errorf(diag.CodeLangBlockCount, &at, "Insufficient "+bb.name+" blocks", "At least %d %q blocks are required.", nb.MinItems, bb.name)
	}
	if len(elems) == 0 {
		return nb.EmptyValue(), nil
	}
	vals := make([]cty.Value, len(elems))
	for i, e := range elems {
		vals[i] = e.value
	}
	switch nb.Nesting {
	case schema.Single, schema.Group:
		return vals[0], nil
	case schema.List:
		if dyn {
			return cty.TupleVal(vals), nil
		}
		return cty.ListVal(vals), nil
	case schema.Set:
		if dyn {
			return unifiedSet(vals, at)
		}
		return cty.SetVal(vals), nil
	default:
		m := make(map[string]cty.Value, len(elems))
		for _, e := range elems {
			if _, dup := m[e.label]; dup {
				return nb.EmptyValue(), diag.Errorf(diag.CodeConfigDuplicateBlock, &at, "Duplicate "+bb.name+" block", "A block of type %q with the label %q was already defined.", bb.name, e.label)
			}
			m[e.label] = e.value
		}
		if dyn {
			return cty.ObjectVal(m), nil
		}
		return cty.MapVal(m), nil
	}
}

func unifiedSet(vals []cty.Value, at source.Range) (cty.Value, diag.List) {
	types := make([]cty.Type, len(vals))
	for i, v := range vals {
		types[i] = v.Type()
	}
	ty, convs := convert.UnifyUnsafe(types)
	if ty == cty.NilType {
		return cty.DynamicVal, diag.Errorf(diag.CodeLangInconsistentTypes, &at, "Inconsistent types", "The elements of a set must all be of the same type.")
	}
	for i, c := range convs {
		if c == nil {
			continue
		}
		v, err := c(vals[i])
		if err != nil {
			return cty.DynamicVal, diag.Errorf(diag.CodeLangInconsistentTypes, &at, "Inconsistent types", "The elements of a set must all be of the same type: %s.", ErrorText(err))
		}
		vals[i] = v
	}
	return cty.SetVal(vals), nil
}
