package view

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// shape is the form of a value in JSON.
type shape uint8

const (
	shapeNone shape = iota
	shapeNull
	shapePrimitive
	shapeList
	shapeObject
)

func shapeOf(v cty.Value) shape {
	if v == cty.NilVal {
		return shapeNone
	}
	ty := v.Type()
	switch {
	case v.IsNull():
		return shapeNull
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		return shapeList
	case ty.IsMapType() || ty.IsObjectType():
		return shapeObject
	}
	return shapePrimitive
}

func stringOf(v cty.Value) (string, bool) {
	if v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

// elements returns the parts of a map or object by name.
func elements(v cty.Value) map[string]cty.Value {
	if v == cty.NilVal || !v.IsKnown() || shapeOf(v) != shapeObject {
		return nil
	}
	return v.AsValueMap()
}

func nilIfMissing(m map[string]cty.Value, name string) cty.Value {
	if v, ok := m[name]; ok {
		return v
	}
	return cty.NilVal
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func unionNames[V any](a, b map[string]V) []string {
	names := make([]string, 0, max(len(a), len(b)))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// equal compares two values by their JSON form, in which lists and tuples are the same.
func equal(a, b cty.Value) bool {
	if !a.IsKnown() || !b.IsKnown() {
		return !a.IsKnown() && !b.IsKnown()
	}
	sa, sb := shapeOf(a), shapeOf(b)
	if sa != sb {
		return false
	}
	switch sa {
	case shapeNull:
		return true
	case shapePrimitive:
		return equalPrimitive(a, b)
	case shapeObject:
		return equalParts(elements(a), elements(b))
	}
	if a.Type().IsSetType() && b.Type().Equals(a.Type()) {
		return a.RawEquals(b)
	}
	as, bs := slice(a), slice(b)
	return slices.EqualFunc(as, bs, equal)
}

func equalPrimitive(a, b cty.Value) bool {
	ty := a.Type()
	if !ty.Equals(b.Type()) {
		return false
	}
	switch ty {
	case cty.String:
		return a.AsString() == b.AsString()
	case cty.Number:
		return a.AsBigFloat().Cmp(b.AsBigFloat()) == 0
	}
	return a.RawEquals(b)
}

func equalParts(a, b map[string]cty.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !equal(v, w) {
			return false
		}
	}
	return true
}

// slice returns the parts of a list, set or tuple.
func slice(v cty.Value) []cty.Value {
	if v == cty.NilVal || !v.IsKnown() || shapeOf(v) != shapeList {
		return nil
	}
	return v.AsValueSlice()
}

// number formats a number as in JSON, without an exponent: with the fewest digits that its
// precision distinguishes.
func number(f *big.Float) string {
	if n, acc := f.Int64(); acc == big.Exact {
		return strconv.FormatInt(n, 10)
	}
	return f.Text('f', -1)
}
