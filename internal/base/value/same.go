package value

import (
	"unsafe"

	"github.com/zclconf/go-cty/cty"
)

// Identical reports whether two values are the same object in memory, for example a value
// that a provider returned unchanged. Equal values are not always identical.
func Identical(a, b cty.Value) bool {
	type bytes [unsafe.Sizeof(cty.Value{})]byte
	return *(*bytes)(unsafe.Pointer(&a)) == *(*bytes)(unsafe.Pointer(&b))
}

// Same reports whether a.RawEquals(b). RawEquals compares the types of objects again at
// each level; Same compares them once.
func Same(a, b cty.Value) bool {
	if Identical(a, b) {
		return true
	}
	if a == cty.NilVal || b == cty.NilVal {
		return a.RawEquals(b)
	}
	return a.Type().Equals(b.Type()) && sameOfType(a, b)
}

// sameOfType compares values of equal types.
func sameOfType(a, b cty.Value) bool {
	if a.IsMarked() || b.IsMarked() || !a.IsKnown() || !b.IsKnown() {
		return a.RawEquals(b)
	}
	if a.IsNull() || b.IsNull() {
		return a.IsNull() == b.IsNull()
	}
	switch ty := a.Type(); {
	case ty == cty.String:
		return a.AsString() == b.AsString()
	case ty == cty.Bool:
		return a.True() == b.True()
	case ty == cty.Number:
		x, y := a.AsBigFloat(), b.AsBigFloat()
		return x.Prec() == y.Prec() && x.Cmp(y) == 0 || a.RawEquals(b)
	case ty.IsObjectType():
		for name := range ty.AttributeTypes() {
			if !sameOfType(a.GetAttr(name), b.GetAttr(name)) {
				return false
			}
		}
		return true
	case ty.IsListType(), ty.IsTupleType(), ty.IsMapType():
		if a.LengthInt() != b.LengthInt() {
			return false
		}
		x, y := a.ElementIterator(), b.ElementIterator()
		for x.Next() && y.Next() {
			k, v := x.Element()
			l, w := y.Element()
			if ty.IsMapType() && k.AsString() != l.AsString() || !sameOfType(v, w) {
				return false
			}
		}
		return true
	}
	return a.RawEquals(b)
}
