package value

import "github.com/zclconf/go-cty/cty"

// OfType returns v with ty as its type object if the types are equal, else v itself. cty
// creates a new type for each object, which needs as much memory as the object. Values
// that are kept should share one type.
func OfType(v cty.Value, ty cty.Type) cty.Value {
	if v == cty.NilVal || v.IsMarked() || !v.Type().Equals(ty) || !ty.IsObjectType() {
		return v
	}
	return ofSameType(v, ty)
}

// ofSameType is like OfType for types that are equal.
func ofSameType(v cty.Value, ty cty.Type) cty.Value {
	// All elements of a cty list get the type of the first one.
	return cty.ListVal([]cty.Value{cty.NullVal(ty), v}).Index(cty.NumberIntVal(1))
}
