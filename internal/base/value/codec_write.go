package value

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// First bytes of MessagePack values. Strings, arrays and maps have two entries: the
// shortest form, which contains the length, and the form with the shortest separate
// length. Source: the MessagePack specification.
const (
	mpMap     = 0x80
	mpArray   = 0x90
	mpString  = 0xa0
	mpNil     = 0xc0
	mpFalse   = 0xc2
	mpTrue    = 0xc3
	mpUint    = 0xcc
	mpInt     = 0xd0
	mpString8 = 0xd9
	mpArray16 = 0xdc
	mpMap16   = 0xde
)

// mpUnknown is cty's encoding of an unknown value without refinements: an extension of
// one byte.
const mpUnknown = "\xd4\x00\x00"

// append appends the encoding of v to b. ok is false if v is not one of the common cases.
func (c *Codec) append(b []byte, v cty.Value) ([]byte, bool) {
	if v == cty.NilVal || v.IsMarked() || !c.of(v.Type()) {
		return nil, false
	}
	switch {
	case c.kind == other || c.kind == dynamic && v.Type() != c.ty:
		return c.appendOther(b, v)
	case !v.IsKnown():
		if c.kind > boolean || v != c.unknown {
			return c.appendOther(b, v)
		}
		return append(b, mpUnknown...), true
	case v.IsNull():
		return append(b, mpNil), c.kind < object || v.Type().Equals(c.ty)
	}
	switch c.kind {
	case text:
		return appendString(b, v.AsString()), true
	case number:
		return c.appendNumber(b, v)
	case boolean:
		if v.True() {
			return append(b, mpTrue), true
		}
		return append(b, mpFalse), true
	case list, set:
		return c.appendElements(appendLength(b, v.LengthInt(), mpArray, mpArray16), v)
	case dictionary:
		return c.appendElements(appendLength(b, v.LengthInt(), mpMap, mpMap16), v)
	case object:
		return c.appendObject(b, v)
	case tuple:
		return c.appendTuple(b, v)
	}
	return c.appendOther(b, v)
}

// of reports whether the codec encodes values of a type. The attributes of objects and
// the elements of tuples are checked when they are encoded.
func (c *Codec) of(ty cty.Type) bool {
	switch c.kind {
	case dynamic, other:
		return true
	case object:
		return ty.IsObjectType() && len(ty.AttributeTypes()) == len(c.names)
	case tuple:
		return ty.IsTupleType() && len(ty.TupleElementTypes()) == len(c.parts)
	case list, set, dictionary:
		return ty.Equals(c.ty)
	}
	return ty == c.ty
}

// appendOther appends a value with cty.
func (c *Codec) appendOther(b []byte, v cty.Value) ([]byte, bool) {
	if v.Type().TestConformance(c.ty) != nil {
		return nil, false
	}
	out, err := msgpack.Marshal(v, c.ty)
	return append(b, out...), err == nil
}

func (c *Codec) appendElements(b []byte, v cty.Value) ([]byte, bool) {
	ok := true
	for it := v.ElementIterator(); ok && it.Next(); {
		key, e := it.Element()
		if c.kind == dictionary {
			b = appendString(b, key.AsString())
		}
		b, ok = c.elem.append(b, e)
	}
	return b, ok
}

func (c *Codec) appendObject(b []byte, v cty.Value) ([]byte, bool) {
	has := v.Type().AttributeTypes()
	b = appendLength(b, len(c.names), mpMap, mpMap16)
	for i, name := range c.names {
		if _, ok := has[name]; !ok {
			return nil, false
		}
		var ok bool
		if b, ok = c.parts[i].append(appendString(b, name), v.GetAttr(name)); !ok {
			return nil, false
		}
	}
	return b, true
}

func (c *Codec) appendTuple(b []byte, v cty.Value) ([]byte, bool) {
	b, i, ok := appendLength(b, len(c.parts), mpArray, mpArray16), 0, true
	for it := v.ElementIterator(); ok && it.Next(); i++ {
		_, e := it.Element()
		b, ok = c.parts[i].append(b, e)
	}
	return b, ok
}

// appendNumber appends an integer in the shortest form.
func (c *Codec) appendNumber(b []byte, v cty.Value) ([]byte, bool) {
	n, acc := v.AsBigFloat().Int64()
	if acc != big.Exact {
		return c.appendOther(b, v)
	}
	switch {
	case n >= 0 && n <= math.MaxInt8, n < 0 && n >= -32:
		return append(b, byte(n)), true
	case n >= 0 && n <= math.MaxUint8:
		return append(b, mpUint, byte(n)), true
	case n >= 0 && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, mpUint+1), uint16(n)), true
	case n >= 0 && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, mpUint+2), uint32(n)), true
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(b, mpUint+3), uint64(n)), true
	case n >= math.MinInt8:
		return append(b, mpInt, byte(n)), true
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, mpInt+1), uint16(n)), true
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, mpInt+2), uint32(n)), true
	}
	return binary.BigEndian.AppendUint64(append(b, mpInt+3), uint64(n)), true
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, mpString|byte(n))
	case n <= math.MaxUint8:
		b = append(b, mpString8, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, mpString8+1), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, mpString8+2), uint32(n))
	}
	return append(b, s...)
}

// appendLength appends the length of an array or a map.
func appendLength(b []byte, n int, short, long byte) []byte {
	switch {
	case n < 16:
		return append(b, short|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, long), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, long+1), uint32(n))
}
