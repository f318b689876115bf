package state

import (
	"fmt"
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Encode writes a wholly known value without marks in the JSON form of state files: compact,
// with sorted properties, and with {"value":…,"type":…} where ty is dynamic. v must conform to
// ty.
func Encode(v cty.Value, ty cty.Type) ([]byte, error) {
	return appendValue(make([]byte, 0, 256), v, ty)
}

func appendValue(b []byte, v cty.Value, ty cty.Type) ([]byte, error) {
	switch {
	case v.IsMarked():
		return nil, fmt.Errorf("a value with marks cannot be stored")
	case !v.IsKnown():
		return nil, fmt.Errorf("a value that is not known cannot be stored")
	case ty == cty.DynamicPseudoType && v.Type() != cty.DynamicPseudoType:
		return appendDynamic(b, v)
	case v.IsNull():
		return append(b, "null"...), nil
	case !v.Type().Equals(ty) && !sameShape(v.Type(), ty):
		return nil, fmt.Errorf("there is a value of type %s where %s is needed", v.Type().FriendlyName(), ty.FriendlyName())
	}
	switch {
	case ty == cty.String:
		return rawjson.AppendString(b, v.AsString()), nil
	case ty == cty.Bool:
		if v.True() {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case ty == cty.Number:
		return appendNumber(b, v)
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return appendElements(b, v, ty)
	case ty.IsMapType():
		return appendMap(b, v, ty.ElementType())
	case ty.IsObjectType():
		return appendObject(b, v, ty.AttributeTypes())
	}
	return nil, fmt.Errorf("a value of type %s cannot be stored", ty.FriendlyName())
}

// sameShape reports whether the outermost kinds of two types agree. If they do, the accessors
// for ty do not panic on a value of type have.
func sameShape(have, ty cty.Type) bool {
	switch {
	case ty.IsListType():
		return have.IsListType()
	case ty.IsSetType():
		return have.IsSetType()
	case ty.IsMapType():
		return have.IsMapType()
	case ty.IsTupleType():
		return have.IsTupleType() && have.Length() == ty.Length()
	case ty.IsObjectType():
		return have.IsObjectType()
	}
	return false
}

func appendDynamic(b []byte, v cty.Value) ([]byte, error) {
	ty, err := EncodeType(v.Type())
	if err != nil {
		return nil, err
	}
	if b, err = appendValue(append(b, `{"value":`...), v, v.Type()); err != nil {
		return nil, err
	}
	return append(append(append(b, `,"type":`...), ty...), '}'), nil
}

// EncodeType writes a type in the JSON form of state files.
func EncodeType(ty cty.Type) ([]byte, error) {
	return appendType(nil, ty)
}

func appendType(b []byte, ty cty.Type) ([]byte, error) {
	of := func(word string, elem cty.Type) ([]byte, error) {
		b, err := appendType(append(b, word...), elem)
		return append(b, ']'), err
	}
	switch {
	case ty == cty.String:
		return append(b, `"string"`...), nil
	case ty == cty.Number:
		return append(b, `"number"`...), nil
	case ty == cty.Bool:
		return append(b, `"bool"`...), nil
	case ty == cty.DynamicPseudoType:
		return append(b, `"dynamic"`...), nil
	case ty.IsListType():
		return of(`["list",`, ty.ElementType())
	case ty.IsSetType():
		return of(`["set",`, ty.ElementType())
	case ty.IsMapType():
		return of(`["map",`, ty.ElementType())
	case ty.IsTupleType():
		b = append(b, `["tuple",[`...)
		for i, elem := range ty.TupleElementTypes() {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendType(b, elem); err != nil {
				return nil, err
			}
		}
		return append(b, "]]"...), nil
	case ty.IsObjectType() && len(ty.OptionalAttributes()) == 0:
		attrs := ty.AttributeTypes()
		b = append(b, `["object",{`...)
		for i, name := range slices.Sorted(maps.Keys(attrs)) {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendType(append(rawjson.AppendString(b, name), ':'), attrs[name]); err != nil {
				return nil, err
			}
		}
		return append(b, "}]"...), nil
	}
	raw, err := ctyjson.MarshalType(ty)
	if err != nil {
		return nil, err
	}
	return rawjson.NewScanner(raw).AppendCompact(b)
}

func appendNumber(b []byte, v cty.Value) ([]byte, error) {
	f := v.AsBigFloat()
	if f.IsInf() {
		return nil, fmt.Errorf("infinity cannot be stored")
	}
	const bits = maxDigits * 4 // a decimal digit has 3.3 bits
	if exp := f.MantExp(nil); exp > bits || exp < -bits {
		return nil, errNumber
	}
	return value.AppendNumber(b, f), nil
}

func appendElements(b []byte, v cty.Value, ty cty.Type) ([]byte, error) {
	b = append(b, '[')
	n := 0
	for it := v.ElementIterator(); it.Next(); n++ {
		if n > 0 {
			b = append(b, ',')
		}
		var ety cty.Type
		if ty.IsTupleType() {
			ety = ty.TupleElementType(n)
		} else {
			ety = ty.ElementType()
		}
		_, ev := it.Element()
		var err error
		if b, err = appendValue(b, ev, ety); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, v cty.Value, ety cty.Type) ([]byte, error) {
	b = append(b, '{')
	first := true
	for it := v.ElementIterator(); it.Next(); { // in order of the keys
		if !first {
			b = append(b, ',')
		}
		first = false
		k, ev := it.Element()
		b = append(rawjson.AppendString(b, k.AsString()), ':')
		var err error
		if b, err = appendValue(b, ev, ety); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendObject(b []byte, v cty.Value, atys map[string]cty.Type) ([]byte, error) {
	names := make([]string, 0, len(atys))
	for name := range atys {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if !v.Type().HasAttribute(name) {
			return nil, fmt.Errorf("the value has no attribute %q", name)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(b, name), ':')
		var err error
		if b, err = appendValue(b, v.GetAttr(name), atys[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
