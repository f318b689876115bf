package value

import "github.com/zclconf/go-cty/cty"

// OfType returns a value with ty itself for its type, if the types are equal, and
// else the value as it is. cty makes a type anew with each object, which takes as
// much memory as what the object holds; values that stay should share one.
func OfType(v cty.Value, ty cty.Type) cty.Value {
	if v == cty.NilVal || v.IsMarked() || !v.Type().Equals(ty) || !ty.IsObjectType() {
		return v
	}
	return ofSameType(v, ty)
}

// ofSameType is OfType where the types are known to be equal.
func ofSameType(v cty.Value, ty cty.Type) cty.Value {
	// The elements of a list have the type of the first.
	return cty.ListVal([]cty.Value{cty.NullVal(ty), v}).Index(cty.NumberIntVal(1))
}
