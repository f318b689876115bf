package rawjson

import (
	"unicode/utf8"
)

// skipString consumes a string; plain tells that it has no escapes and is
// valid UTF-8, so that its text is the string.
func (s *Scanner) skipString() (plain bool, err error) {
	start := s.i
	i, b := s.i+1, s.b
	plain = true
	ascii := true
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			if !ascii && plain {
				plain = utf8.Valid(b[start:i])
			}
			return plain, nil
		case c == '\\':
			plain = false
			n := escapeLen(b[i:])
			if n == 0 {
				s.i = i
				return false, s.errorf("a backslash in a string starts no escape that JSON has")
			}
			i += n
		case c < 0x20:
			s.i = i
			return false, s.errorf("a string holds a control character")
		default:
			if c >= utf8.RuneSelf {
				ascii = false
			}
			i++
		}
	}
	s.i = len(b)
	return false, s.errorf("the document ends within a string")
}

// Skip consumes any value and returns its text, a part of the document.
func (s *Scanner) Skip() ([]byte, error) {
	s.Peek()
	start := s.i
	_, err := s.walk(nil, false)
	return s.b[start:s.i], err
}

// AppendCompact consumes any value and appends it to dst in canonical form:
// without white space and with strings escaped as encoding/json escapes them.
func (s *Scanner) AppendCompact(dst []byte) ([]byte, error) { return s.walk(dst, true) }

// walk consumes one value without recursion. kinds is a stack of what is open.
func (s *Scanner) walk(dst []byte, keep bool) ([]byte, error) {
	var room [64]byte
	kinds := room[:0]
	for {
		c := s.Peek()
		start := s.i
		switch {
		case c == '{' || c == '[':
			if len(kinds)+s.depth >= MaxDepth {
				return dst, s.errorf("arrays and objects are nested more than %d deep", MaxDepth)
			}
			s.i++
			if keep {
				dst = append(dst, c)
			}
			if next := s.Peek(); next != c+2 { // '}' and ']' follow two after their openers
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
			if _, err := s.skipString(); err != nil {
				return dst, err
			}
			if keep {
				dst = appendEscaped(dst, s.b[start:s.i])
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
		// A value has ended: close what ends with it, or go on to the next.
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

// key consumes the name of a property and the colon behind it.
func (s *Scanner) key(dst []byte, keep bool) ([]byte, error) {
	if s.Peek() != '"' {
		return dst, s.unexpected("the name of a property")
	}
	start := s.i
	if _, err := s.skipString(); err != nil {
		return dst, err
	}
	if keep {
		dst = appendEscaped(dst, s.b[start:s.i])
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
