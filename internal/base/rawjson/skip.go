package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// skipString consumes a string and returns its text with the quotes, which is part of the
// document. plain reports that the text between the quotes is the string itself: it has no
// escapes and is valid UTF-8.
func (s *Scanner) skipString() (text []byte, plain bool, err error) {
	n := 1 // number of checked bytes
	plain = true
	ascii := true
	for {
		b := s.b[s.i:]
		for n < len(b) {
			if n+8 <= len(b) { // up to the next special byte, but at most eight
				w := unusual(binary.LittleEndian.Uint64(b[n:]))
				n += bits.TrailingZeros64(w) / 8
				if w == 0 {
					continue
				}
			}
			switch c := b[n]; {
			case c == '"':
				n++
				s.i += n
				if !ascii && plain {
					plain = utf8.Valid(b[:n])
				}
				return b[:n], plain, nil
			case c == '\\':
				plain = false
				l := escapeLen(b[n:])
				if l == 0 {
					if len(b)-n < 6 && s.more() {
						b = s.b[s.i:]
						continue
					}
					s.i += n
					return nil, false, s.errorf("a backslash in a string starts no escape that JSON has")
				}
				n += l
			case c < 0x20:
				s.i += n
				return nil, false, s.errorf("a string holds a control character")
			default:
				if c >= utf8.RuneSelf {
					ascii = false
				}
				n++
			}
		}
		if !s.more() {
			s.i = len(s.b)
			return nil, false, s.errorf("the document ends within a string")
		}
	}
}

// unusual finds the first of eight bytes that is a quote, a backslash, a control character
// or not ASCII. In the result, the highest bit of that byte is set, and no bit before it.
// The result is 0 if there is none.
func unusual(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w - ones*0x20) | (quote - ones) | (slash - ones) | w) & high
}

// Skip consumes any value and returns its text, which is part of the document.
func (s *Scanner) Skip() ([]byte, error) {
	s.Peek()
	s.mark, s.holding = s.i, true
	_, err := s.walk(nil, false)
	s.holding = false
	return s.b[s.mark:s.i], err
}

// Discard consumes any value.
func (s *Scanner) Discard() error {
	_, err := s.walk(nil, false)
	return err
}

// AppendCompact consumes any value and appends it to dst in canonical form: without white
// space, and with strings escaped like encoding/json escapes them.
func (s *Scanner) AppendCompact(dst []byte) ([]byte, error) { return s.walk(dst, true) }

// walk consumes one value without recursion. kinds is the stack of open brackets.
func (s *Scanner) walk(dst []byte, keep bool) ([]byte, error) {
	var room [64]byte
	kinds := room[:0]
	for {
		c := s.Peek()
		switch {
		case c == '{' || c == '[':
			if len(kinds)+s.depth >= MaxDepth {
				return dst, s.errorf("arrays and objects are nested more than %d deep", MaxDepth)
			}
			s.i++
			if keep {
				dst = append(dst, c)
			}
			if next := s.Peek(); next != c+2 { // in ASCII, '}' and ']' are two after their opening brackets
				kinds = append(kinds, c)
				if c == '{' {
					var err error
					if dst, err = s.key(dst, keep); err != nil {
						return dst, err
					}
				}
				continue
			}
			s.i++
			if keep {
				dst = append(dst, c+2)
			}
		case c == '"':
			text, _, err := s.skipString()
			if err != nil {
				return dst, err
			}
			if keep {
				dst = appendEscaped(dst, text)
			}
		case c == 't', c == 'f', c == 'n':
			word := words[c]
			if err := s.literal(word); err != nil {
				return dst, err
			}
			if keep {
				dst = append(dst, word...)
			}
		default:
			n, err := s.Number()
			if err != nil {
				return dst, s.unexpected("a value")
			}
			if keep {
				dst = append(dst, n...)
			}
		}
		// After a value: close the brackets that end here, or continue with the next value.
		for {
			if len(kinds) == 0 {
				return dst, nil
			}
			top := kinds[len(kinds)-1]
			c := s.Peek()
			if c == top+2 {
				s.i++
				kinds = kinds[:len(kinds)-1]
				if keep {
					dst = append(dst, c)
				}
				continue
			}
			if c != ',' {
				return dst, s.unexpected("a comma or a closing bracket")
			}
			s.i++
			if keep {
				dst = append(dst, ',')
			}
			if top == '{' {
				var err error
				if dst, err = s.key(dst, keep); err != nil {
					return dst, err
				}
			}
			break
		}
	}
}

// key consumes the name of a property and the colon after it.
func (s *Scanner) key(dst []byte, keep bool) ([]byte, error) {
	if s.Peek() != '"' {
		return dst, s.unexpected("the name of a property")
	}
	text, _, err := s.skipString()
	if err != nil {
		return dst, err
	}
	if keep {
		dst = appendEscaped(dst, text)
	}
	if s.Peek() != ':' {
		return dst, s.unexpected("a colon")
	}
	s.i++
	if keep {
		dst = append(dst, ':')
	}
	return dst, nil
}
