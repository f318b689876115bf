package value

import (
	"encoding/binary"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// read decodes the first value in b and returns the remaining bytes. ok is false if the
// value is not one of the common cases.
func (c *Codec) read(b []byte) (v cty.Value, rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return cty.NilVal, nil, false
	case c.kind == other:
		return c.readOther(b)
	case b[0] == mpNil:
		return c.null, b[1:], true
	case len(b) >= len(mpUnknown) && string(b[:len(mpUnknown)]) == mpUnknown:
		return c.unknown, b[len(mpUnknown):], true
	}
	switch c.kind {
	case text:
		s, rest, ok := readString(b)
		if !ok {
			return c.readOther(b)
		}
		return cty.StringVal(string(s)), rest, true
	case number:
		return c.readNumber(b)
	case boolean:
		return cty.BoolVal(b[0] == mpTrue), b[1:], b[0] == mpTrue || b[0] == mpFalse
	case list, set:
		return c.readElements(b)
	case dictionary:
		return c.readMap(b)
	case object:
		return c.readObject(b)
	case tuple:
		return c.readTuple(b)
	}
	return c.readOther(b)
}

// readOther decodes a value with cty.
func (c *Codec) readOther(b []byte) (v cty.Value, rest []byte, ok bool) {
	rest, err := SkipMsgpack(b)
	if err != nil {
		return cty.NilVal, nil, false
	}
	v, err = msgpack.Unmarshal(b[:len(b)-len(rest)], c.ty)
	return v, rest, err == nil && BoundedNumbers(v) == nil
}

func (c *Codec) readElements(b []byte) (cty.Value, []byte, bool) {
	n, b, ok := readLength(b, mpArray, mpArray16, 1)
	if !ok {
		return cty.NilVal, nil, false
	}
	vals := make([]cty.Value, n)
	for i := range vals {
		if vals[i], b, ok = c.elem.read(b); !ok {
			return cty.NilVal, nil, false
		}
	}
	switch {
	case c.kind == list && n == 0:
		return cty.ListValEmpty(c.elem.ty), b, true
	case c.kind == list:
		return cty.ListVal(vals), b, true
	case n == 0:
		return cty.SetValEmpty(c.elem.ty), b, true
	}
	return cty.SetVal(vals), b, true
}

func (c *Codec) readMap(b []byte) (cty.Value, []byte, bool) {
	n, b, ok := readLength(b, mpMap, mpMap16, 2)
	if !ok {
		return cty.NilVal, nil, false
	}
	vals := make(map[string]cty.Value, n)
	for range n {
		var key []byte
		if key, b, ok = readString(b); !ok {
			return cty.NilVal, nil, false
		}
		var v cty.Value
		if v, b, ok = c.elem.read(b); !ok {
			return cty.NilVal, nil, false
		}
		vals[string(key)] = v
	}
	if n == 0 {
		return cty.MapValEmpty(c.elem.ty), b, true
	}
	return cty.MapVal(vals), b, true
}

// readObject decodes an object. Its attributes are usually in the order of names.
func (c *Codec) readObject(b []byte) (cty.Value, []byte, bool) {
	n, b, ok := readLength(b, mpMap, mpMap16, 2)
	if !ok || n != len(c.names) {
		return cty.NilVal, nil, false
	}
	vals := make(map[string]cty.Value, n)
	for i := range n {
		var key []byte
		if key, b, ok = readString(b); !ok {
			return cty.NilVal, nil, false
		}
		if c.names[i] != string(key) {
			if i, ok = c.index[string(key)]; !ok {
				return cty.NilVal, nil, false
			}
		}
		var v cty.Value
		if v, b, ok = c.parts[i].read(b); !ok {
			return cty.NilVal, nil, false
		}
		vals[c.names[i]] = v
	}
	return OfType(cty.ObjectVal(vals), c.ty), b, len(vals) == n
}

func (c *Codec) readTuple(b []byte) (cty.Value, []byte, bool) {
	n, b, ok := readLength(b, mpArray, mpArray16, 1)
	if !ok || n != len(c.parts) {
		return cty.NilVal, nil, false
	}
	vals := make([]cty.Value, n)
	for i := range vals {
		if vals[i], b, ok = c.parts[i].read(b); !ok {
			return cty.NilVal, nil, false
		}
	}
	return cty.TupleVal(vals), b, true
}

// readNumber decodes an integer.
func (c *Codec) readNumber(b []byte) (cty.Value, []byte, bool) {
	first := b[0]
	if first <= 0x7f || first >= 0xe0 {
		return cty.NumberIntVal(int64(int8(first))), b[1:], true
	}
	signed := first >= mpInt && first <= mpInt+3
	if !signed && (first < mpUint || first > mpUint+3) {
		return c.readOther(b)
	}
	n, u, ok := readUint(b, 1<<((first-mpUint)%4))
	switch {
	case !ok:
		return cty.NilVal, nil, false
	case !signed:
		return cty.NumberUIntVal(u), b[n:], true
	}
	shift := 64 - 8*(n-1)
	return cty.NumberIntVal(int64(u<<shift) >> shift), b[n:], true
}

// readUint reads an unsigned integer of size bytes after the first byte. n is the number
// of bytes including the first.
func readUint(b []byte, size int) (n int, u uint64, ok bool) {
	if len(b) < 1+size {
		return 0, 0, false
	}
	switch b = b[1:]; size {
	case 1:
		u = uint64(b[0])
	case 2:
		u = uint64(binary.BigEndian.Uint16(b))
	case 4:
		u = uint64(binary.BigEndian.Uint32(b))
	default:
		u = binary.BigEndian.Uint64(b)
	}
	return 1 + size, u, true
}

// readString decodes a string. The result shares the memory of b.
func readString(b []byte) (s, rest []byte, ok bool) {
	n, size := 1, uint64(0)
	switch {
	case len(b) == 0:
		return nil, nil, false
	case b[0]&0xe0 == mpString:
		size = uint64(b[0] & 0x1f)
	case b[0] >= mpString8 && b[0] <= mpString8+2:
		if n, size, ok = readUint(b, 1<<(b[0]-mpString8)); !ok {
			return nil, nil, false
		}
	default:
		return nil, nil, false
	}
	if size > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end], b[end:], true
}

// readLength reads the length of an array or a map. items is the number of encoded items
// per element. The length is never greater than the remaining bytes allow.
func readLength(b []byte, short, long byte, items uint64) (n int, rest []byte, ok bool) {
	head, size := 1, uint64(0)
	switch {
	case len(b) == 0:
		return 0, nil, false
	case b[0]&0xf0 == short:
		size = uint64(b[0] & 0x0f)
	case b[0] == long || b[0] == long+1:
		if head, size, ok = readUint(b, 2<<(b[0]-long)); !ok {
			return 0, nil, false
		}
	default:
		return 0, nil, false
	}
	if size*items > uint64(len(b)-head) {
		return 0, nil, false
	}
	return int(size), b[head:], true
}
