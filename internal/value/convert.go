package value

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// manyElements is from how many elements on a collection is converted here.
const manyElements = 16

// Convert is convert.Convert, in time linear in the number of elements where
// cty compares the type of each with that of every other: in the conversion to a
// collection whose element type is known, in which no two can differ, or in which
// none does.
func Convert(v cty.Value, want cty.Type) (cty.Value, error) {
	if out, ok := convertMany(v, want); ok {
		return out, nil
	}
	return convert.Convert(v, want)
}

// convertMany converts a collection, or an object that may hold some, part by
// part. It leaves to cty what is not known, what is marked as a whole, and what
// fails.
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

// ofOneType is want with the type of the elements of v, where want leaves that
// open and all have the same, so that no other could be found for them.
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

// plain reports whether types that equal this one unify to it.
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

// eachAs converts every element, and reports whether that succeeded.
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
