package value

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth is the maximum nesting of MessagePack values.
const maxDepth = 512

var errShort = errors.New("the value is cut off")

// CheckMsgpack checks that b is one complete value. Bytes from outside must be checked
// before cty decodes them.
func CheckMsgpack(b []byte) error {
	rest, err := SkipMsgpack(b)
	if err == nil && len(rest) > 0 {
		err = errors.New("more follows the value")
	}
	return err
}

// SkipMsgpack returns the bytes after the first MessagePack value in b. It checks that
// the value is complete, is not nested too deeply, and contains no length that is greater
// than the remaining bytes. The decoder trusts lengths: a few bytes could make it
// allocate all memory. Source: the MessagePack specification.
func SkipMsgpack(b []byte) (rest []byte, err error) {
	var left [maxDepth]int // number of remaining items at each depth
	depth := 0
	left[0] = 1
	for {
		for left[depth] == 0 {
			if depth == 0 {
				return b, nil
			}
			depth--
		}
		left[depth]--
		skip, items, err := msgpackItem(b)
		if err != nil {
			return nil, err
		}
		b = b[skip:]
		if items > len(b) {
			return nil, errShort
		}
		if items > 0 {
			if depth++; depth == maxDepth {
				return nil, fmt.Errorf("the value is nested more than %d levels deep", maxDepth)
			}
			left[depth] = items
		}
	}
}

// msgpackItem returns the length of the first item in b. For a container, skip excludes
// its items, and items is their number.
func msgpackItem(b []byte) (skip, items int, err error) {
	if len(b) == 0 {
		return 0, 0, errShort
	}
	head, size, unit := 1, 0, 0 // bytes of the head, the length in it, items per unit of that length
	c := b[0]
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // small numbers, null, booleans
	case c <= 0x8f:
		size, unit = int(c&0x0f), 2
	case c <= 0x9f:
		size, unit = int(c&0x0f), 1
	case c <= 0xbf:
		size = int(c & 0x1f)
	case c >= 0xc4 && c <= 0xc9: // bytes, extensions
		head, size, err = msgpackLen(b, 1<<((c-0xc4)%3))
		if c >= 0xc7 {
			head++
		}
	case c >= 0xca && c <= 0xd3: // numbers of fixed size
		size = [...]int{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[c-0xca]
	case c >= 0xd4 && c <= 0xd8: // extensions of fixed size
		head, size = 2, 1<<(c-0xd4)
	case c >= 0xd9 && c <= 0xdb:
		head, size, err = msgpackLen(b, 1<<(c-0xd9))
	case c == 0xdc || c == 0xdd:
		head, size, err = msgpackLen(b, 2<<(c-0xdc))
		unit = 1
	case c == 0xde || c == 0xdf:
		head, size, err = msgpackLen(b, 2<<(c-0xde))
		unit = 2
	default:
		return 0, 0, fmt.Errorf("the value has a byte 0x%02x where a value should start", c)
	}
	if err != nil {
		return 0, 0, err
	}
	if unit > 0 {
		return head, size * unit, nil
	}
	if size > len(b)-head {
		return 0, 0, errShort
	}
	return head + size, 0, nil
}

// msgpackLen reads a length of n bytes after the first byte.
func msgpackLen(b []byte, n int) (head, size int, err error) {
	if len(b) < 1+n {
		return 0, 0, errShort
	}
	switch n {
	case 1:
		size = int(b[1])
	case 2:
		size = int(binary.BigEndian.Uint16(b[1:]))
	default:
		size = int(binary.BigEndian.Uint32(b[1:]))
	}
	return 1 + n, size, nil
}
