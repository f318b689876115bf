// Package rawjson reads and writes JSON text without building trees of it:
// state files are large, and most of what is in them passes through unchanged.
//
// Main type: Scanner, which walks over a document in memory. The one rule:
// text that came from outside goes through a Scanner once, which checks it; the
// Append functions trust what they are given.
//
// It accepts exactly RFC 8259, as encoding/json does, with nesting of at most
// MaxDepth, and writes strings as encoding/json does: with <, >, &, U+2028 and
// U+2029 escaped. That is what OpenTofu writes, so equal content is equal text.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 10000

// A Scanner walks over one JSON document. After an error, or past what it was
// asked for, its position does not matter any more. The zero Scanner has
// nothing to scan.
type Scanner struct {
	b     []byte
	i     int
	depth int
}

// NewScanner starts at the front of a document. b must not change meanwhile.
func NewScanner(b []byte) *Scanner { return &Scanner{b: b} }

// A SyntaxError says that a document is not JSON, or not of the expected form.
type SyntaxError struct {
	Offset int // bytes from the front
	Msg    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Msg) }

func (s *Scanner) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: s.i, Msg: fmt.Sprintf(format, args...)}
}

// Offset is the position in bytes from the front.
func (s *Scanner) Offset() int { return s.i }

// Peek returns the first byte of the next token, or 0 at the end: '{', '[',
// '"', 't', 'f', 'n', '-' or a digit where a value starts.
func (s *Scanner) Peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// End checks that nothing but white space is left.
func (s *Scanner) End() error {
	if c := s.Peek(); c != 0 || s.i < len(s.b) {
		return s.errorf("there is text after the end of the document")
	}
	return nil
}

func (s *Scanner) unexpected(want string) error {
	switch c := s.Peek(); {
	case s.i >= len(s.b):
		return s.errorf("the document ends where %s is needed", want)
	default:
		return s.errorf("there is %q where %s is needed", rune(c), want)
	}
}

func (s *Scanner) open(c byte, want string) error {
	if s.Peek() != c {
		return s.unexpected(want)
	}
	if s.depth++; s.depth > MaxDepth {
		return s.errorf("arrays and objects are nested more than %d deep", MaxDepth)
	}
	s.i++
	return nil
}

// Object walks over an object and calls f for each property, which must
// consume the value. The key is valid during the call only.
func (s *Scanner) Object(f func(key []byte) error) error {
	if err := s.open('{', "an object"); err != nil {
		return err
	}
	if s.Peek() == '}' {
		s.i++
		s.depth--
		return nil
	}
	for {
		if s.Peek() != '"' {
			return s.unexpected("the name of a property")
		}
		key, err := s.bytes()
		if err != nil {
			return err
		}
		if s.Peek() != ':' {
			return s.unexpected("a colon")
		}
		s.i++
		if err := f(key); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			s.depth--
			return nil
		default:
			return s.unexpected("a comma or the end of the object")
		}
	}
}

// Array walks over an array and calls f for each element, which must consume it.
func (s *Scanner) Array(f func() error) error {
	if err := s.open('[', "an array"); err != nil {
		return err
	}
	if s.Peek() == ']' {
		s.i++
		s.depth--
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			s.depth--
			return nil
		default:
			return s.unexpected("a comma or the end of the array")
		}
	}
}

// Null consumes null and reports whether it was there.
func (s *Scanner) Null() bool {
	if s.Peek() == 'n' && bytes.HasPrefix(s.b[s.i:], []byte("null")) {
		s.i += 4
		return true
	}
	return false
}

// Bool consumes true or false.
func (s *Scanner) Bool() (bool, error) {
	switch s.Peek() {
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	}
	return false, s.unexpected("true or false")
}

func (s *Scanner) literal(want string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(want)) {
		return s.errorf("there is a word that JSON does not have")
	}
	s.i += len(want)
	return nil
}

// String consumes a string.
func (s *Scanner) String() (string, error) {
	b, err := s.bytes()
	return string(b), err
}

// Bytes consumes a string. The result may be a part of the document.
func (s *Scanner) Bytes() ([]byte, error) { return s.bytes() }

func (s *Scanner) bytes() ([]byte, error) {
	if s.Peek() != '"' {
		return nil, s.unexpected("a string")
	}
	start := s.i
	plain, err := s.skipString()
	if err != nil {
		return nil, err
	}
	if plain {
		return s.b[start+1 : s.i-1], nil
	}
	var out string
	if err := json.Unmarshal(s.b[start:s.i], &out); err != nil {
		s.i = start
		return nil, s.errorf("the string is not well formed")
	}
	return []byte(out), nil
}

// escapeLen is the length of the escape that b starts with, or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// Number consumes a number and returns its text, a part of the document.
func (s *Scanner) Number() ([]byte, error) {
	c := s.Peek()
	if c != '-' && (c < '0' || c > '9') {
		return nil, s.unexpected("a number")
	}
	start := s.i
	if c == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if s.digits() == 0 {
		return nil, s.errorf("the number is not well formed")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return nil, s.errorf("the number is not well formed")
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return nil, s.errorf("the number is not well formed")
		}
	}
	return s.b[start:s.i], nil
}

func (s *Scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}
