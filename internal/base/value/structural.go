package value

import "github.com/zclconf/go-cty/cty"

// Structural returns a value as it is after encoding it to JSON and decoding it: lists and
// sets become tuples, maps become objects, null has no type, and zero has no sign. Marks
// are kept. An unknown list, set or map becomes unknown without a type, because its
// elements determine the type. keep leaves it unchanged, for callers that convert the
// result to another type.
func Structural(v cty.Value, keep bool) cty.Value {
	bare, marks := v.Unmark()
	ty := bare.Type()
	switch {
	case ty == cty.Number && !bare.IsNull() && bare.IsKnown() && bare.AsBigFloat().Sign() == 0:
		return cty.Zero.WithMarks(marks)
	case ty.IsPrimitiveType() && !bare.IsNull(), ty == cty.DynamicPseudoType, ty.IsCapsuleType():
		return v
	case bare.IsNull():
		return cty.NullVal(cty.DynamicPseudoType).WithMarks(marks)
	case !bare.IsKnown():
		if keep {
			return v
		}
		return cty.DynamicVal.WithMarks(marks)
	case ty.IsMapType() || ty.IsObjectType():
		m := make(map[string]cty.Value, bare.LengthInt())
		for it := bare.ElementIterator(); it.Next(); {
			k, e := it.Element()
			m[k.AsString()] = Structural(e, keep)
		}
		return cty.ObjectVal(m).WithMarks(marks)
	}
	if !bare.Length().IsKnown() { // a set with unknown elements
		if keep {
			return v
		}
		return cty.DynamicVal.WithMarks(marks)
	}
	list := make([]cty.Value, 0, bare.LengthInt())
	for it := bare.ElementIterator(); it.Next(); {
		_, e := it.Element()
		list = append(list, Structural(e, keep))
	}
	return cty.TupleVal(list).WithMarks(marks)
}
