package value

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// manyElements is the number of elements from which a collection is converted here.
const manyElements = 16

// Convert has the results of cty's convert.Convert, but takes linear time for large
// collections. cty compares the type of each element with every other one. That is not
// needed if the element type is given, or if all elements have the same type.
func Convert(v cty.Value, want cty.Type) (cty.Value, error) {
	if out, ok := convertMany(v, want); ok {
		return out, nil
	}
	return convert.Convert(v, want)
}

// convertMany converts a collection, or an object that may contain collections, element
// by element. ok is false if cty must convert the value: it is unknown or marked, or the
// conversion of an element fails.
func convertMany(v cty.Value, want cty.Type) (cty.Value, bool) {
	if v == cty.NilVal || v.IsMarked() || v.IsNull() || !v.IsKnown() {
		return cty.NilVal, false
	}
	want = ofOneType(v, want)
	if want.HasDynamicTypes() {
		return cty.NilVal, false
	}
	from := v.Type()
	switch {
	case want.IsObjectType() && from.IsObjectType():
		return convertObject(v, want)
	case !from.IsCollectionType() && !from.IsTupleType() && !from.IsObjectType() || v.LengthInt() < manyElements:
		return cty.NilVal, false
	case want.IsMapType() && (from.IsMapType() || from.IsObjectType()):
		elems := make(map[string]cty.Value, v.LengthInt())
		ok := eachAs(v, want.ElementType(), func(k, e cty.Value) { elems[k.AsString()] = e })
		if !ok {
			return cty.NilVal, false
		}
		return cty.MapVal(elems), true
	case (want.IsListType() || want.IsSetType()) && (from.IsListType() || from.IsTupleType()):
		elems := make([]cty.Value, 0, v.LengthInt())
		if !eachAs(v, want.ElementType(), func(_, e cty.Value) { elems = append(elems, e) }) {
			return cty.NilVal, false
		}
		if want.IsSetType() {
			return cty.SetVal(elems), true
		}
		return cty.ListVal(elems), true
	}
	return cty.NilVal, false
}

// ofOneType returns want with the element type of v, if want leaves it open and all
// elements of v have the same type.
func ofOneType(v cty.Value, want cty.Type) cty.Type {
	if !want.IsCollectionType() || want.ElementType() != cty.DynamicPseudoType || !v.Type().IsTupleType() && !v.Type().IsObjectType() || v.LengthInt() < manyElements {
		return want
	}
	one := cty.NilType
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if one == cty.NilType {
			one = e.Type()
		}
		if !one.Equals(e.Type()) || !plain(one) {
			return want
		}
	}
	switch {
	case want.IsListType():
		return cty.List(one)
	case want.IsSetType():
		return cty.Set(one)
	default:
		return cty.Map(one)
	}
}

// plain reports whether several equal types unify to the same type.
func plain(ty cty.Type) bool {
	if ty.IsObjectType() {
		for _, a := range ty.AttributeTypes() {
			if !plain(a) {
				return false
			}
		}
		return true
	}
	return ty.IsPrimitiveType()
}

// eachAs converts every element. It reports whether all conversions succeeded.
func eachAs(v cty.Value, want cty.Type, take func(k, e cty.Value)) bool {
	is := want.WithoutOptionalAttributesDeep()
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		out, err := Convert(e, want)
		if err != nil || !out.Type().Equals(is) {
			return false
		}
		take(k, out)
	}
	return true
}

func convertObject(v cty.Value, want cty.Type) (cty.Value, bool) {
	attrs := make(map[string]cty.Value, len(want.AttributeTypes()))
	for name, ty := range want.AttributeTypes() {
		switch {
		case v.Type().HasAttribute(name):
			out, err := Convert(v.GetAttr(name), ty)
			if err != nil {
				return cty.NilVal, false
			}
			attrs[name] = out
		case want.AttributeOptional(name):
			attrs[name] = cty.NullVal(ty.WithoutOptionalAttributesDeep())
		default:
			return cty.NilVal, false
		}
	}
	return cty.ObjectVal(attrs), true
}

// WithDefaults applies the defaults of optional attributes to a value that may contain marks.
func WithDefaults(apply func(cty.Value) cty.Value, v cty.Value) cty.Value {
	if !Marked(v) {
		return apply(v)
	}
	plain, marks := v.UnmarkDeepWithPaths()
	return apply(plain).MarkWithPaths(marks)
}
