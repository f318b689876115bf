package value

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// ConflictError is returned by [DeepMerge] if two values of different kinds have the same key.
type ConflictError struct {
	Path  cty.Path // the path in the merged value
	Left  string   // the kind of the earlier value, such as "a map"
	Right string   // the kind of the later value
}

// Error returns the path and both kinds, never a value.
func (e *ConflictError) Error() string {
	at := PathString(e.Path)
	if at == "" {
		return fmt.Sprintf("%s cannot be merged with %s", e.Right, e.Left)
	}
	return fmt.Sprintf("at %s: %s cannot be merged with %s", at, e.Right, e.Left)
}

// DeepMerge merges the later value b over the earlier value a, by the rule of `deep_merge`
// in unit files:
//
//   - maps and objects are merged key by key, recursively;
//   - lists and tuples are concatenated, a's elements first; sets are united;
//   - null replaces anything and is replaced by anything;
//   - an unknown operand makes the result unknown;
//   - a map or list, and a non-null value of another kind, are a *ConflictError;
//   - for all other values, including false and "", the result is b.
//
// The result has the type of the operands if its elements allow that, and otherwise it is
// an object or a tuple. The merged container keeps the marks of both containers. The marks
// of a replaced value are dropped.
func DeepMerge(a, b cty.Value) (cty.Value, error) {
	path := make(cty.Path, 0, 8)
	v, err := deepMerge(a, b, path)
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		conflict.Path = conflict.Path.Copy() // it shares its array with path
	}
	return v, err
}

func deepMerge(a, b cty.Value, path cty.Path) (cty.Value, error) {
	bareA, marksA := a.Unmark()
	bareB, marksB := b.Unmark()
	switch {
	case bareA.IsNull() || bareB.IsNull():
		return b, nil
	case !bareA.IsKnown() || !bareB.IsKnown():
		return unknownOf(bareA, bareB).WithMarks(marksA, marksB), nil
	}
	kindA, kindB := kindOf(bareA.Type()), kindOf(bareB.Type())
	if kindA != kindB {
		return cty.DynamicVal, &ConflictError{Path: path, Left: kindA.String(), Right: kindB.String()}
	}
	switch kindA {
	case named:
		v, err := mergeNamed(bareA, bareB, path)
		return v.WithMarks(marksA, marksB), err
	case ordered:
		return joinOrdered(bareA, bareB).WithMarks(marksA, marksB), nil
	}
	return b, nil
}

// unknownOf returns an unknown value, with the type of the operands if both have the same.
func unknownOf(a, b cty.Value) cty.Value {
	if a.Type().Equals(b.Type()) && (a.Type().IsPrimitiveType() || a.Type().IsMapType()) {
		return cty.UnknownVal(a.Type())
	}
	return cty.DynamicVal
}

type kind int

const (
	single  kind = iota // neither of the others
	named               // a map or an object
	ordered             // a list, a tuple or a set
)

func (k kind) String() string {
	switch k {
	case named:
		return "a map"
	case ordered:
		return "a list"
	}
	return "a single value"
}

func kindOf(ty cty.Type) kind {
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		return named
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		return ordered
	}
	return single
}

func mergeNamed(a, b cty.Value, path cty.Path) (cty.Value, error) {
	if b.LengthInt() == 0 && (a.LengthInt() > 0 || b.Type().IsObjectType()) {
		return a, nil
	}
	if a.LengthInt() == 0 {
		return b, nil
	}
	parts := a.AsValueMap()
	over := b.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(over)) { // sorted: the first conflict is always the same
		below, ok := parts[name]
		if !ok {
			parts[name] = over[name]
			continue
		}
		merged, err := deepMerge(below, over[name], append(path, cty.GetAttrStep{Name: name}))
		if err != nil {
			return cty.DynamicVal, err
		}
		parts[name] = merged
	}
	if a.Type().IsMapType() && b.Type().IsMapType() && sameType(maps.Values(parts)) {
		return cty.MapVal(parts), nil
	}
	return cty.ObjectVal(parts), nil
}

func joinOrdered(a, b cty.Value) cty.Value {
	typeA, typeB := a.Type(), b.Type()
	if typeA.Equals(typeB) && !typeA.IsTupleType() && (a.LengthInt() == 0 || b.LengthInt() == 0) {
		if a.LengthInt() == 0 {
			return b
		}
		return a
	}
	parts := make([]cty.Value, 0, a.LengthInt()+b.LengthInt())
	for _, part := range a.Elements() {
		parts = append(parts, part)
	}
	for _, part := range b.Elements() {
		parts = append(parts, part)
	}
	switch {
	case typeA.Equals(typeB) && typeA.IsSetType():
		return cty.SetVal(parts)
	case typeA.IsListType() && typeB.IsListType() && len(parts) > 0 && sameType(slices.Values(parts)):
		return cty.ListVal(parts)
	}
	return cty.TupleVal(parts)
}

func sameType(vs func(yield func(cty.Value) bool)) bool {
	var first cty.Type
	for v := range vs {
		if first == cty.NilType {
			first = v.Type()
		} else if !first.Equals(v.Type()) {
			return false
		}
	}
	return true
}
