package value

import "github.com/zclconf/go-cty/cty"

// Placeholders that [Redact] inserts for values that are not shown.
const (
	SecretText    = "(sensitive value)"
	EphemeralText = "(ephemeral value)"
)

// Redact returns v without marks. It replaces sensitive and hidden parts with SecretText
// and ephemeral parts with EphemeralText. Because a placeholder is a string, lists and
// maps that contain one become tuples and objects: the result is for printing, not for
// computing. Unknown values stay unknown.
func Redact(v cty.Value) cty.Value {
	if !Marked(v) {
		return v
	}
	return redact(v)
}

func redact(v cty.Value) cty.Value {
	switch {
	case Secret(v):
		return cty.StringVal(SecretText)
	case v.HasMark(Ephemeral):
		return cty.StringVal(EphemeralText)
	}
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() {
		return v
	}
	ty := v.Type()
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		return redactNamed(v)
	case ty.IsTupleType() || ty.IsListType():
		return redactOrdered(v)
	}
	return v // elements of a set carry no marks
}

func redactNamed(v cty.Value) cty.Value {
	if v.LengthInt() == 0 || !Marked(v) {
		return v
	}
	parts := v.AsValueMap()
	for name, part := range parts {
		parts[name] = redact(part)
	}
	return cty.ObjectVal(parts)
}

func redactOrdered(v cty.Value) cty.Value {
	if v.LengthInt() == 0 || !Marked(v) {
		return v
	}
	parts := v.AsValueSlice()
	for i, part := range parts {
		parts[i] = redact(part)
	}
	return cty.TupleVal(parts)
}
