// Package rawjson reads and writes JSON text without building trees: state files are large,
// and most of their content is passed on unchanged.
//
// Main type: Scanner, which reads a document from memory or from a reader. The one rule:
// text from outside is checked by a Scanner once; the Append functions do not check their
// arguments.
//
// A Scanner accepts exactly RFC 8259, like encoding/json, with at most MaxDepth levels.
// Strings are written like encoding/json writes them, with <, >, &, U+2028 and U+2029
// escaped. OpenTofu does the same, so equal content is equal text.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting of arrays and objects.
const MaxDepth = 10000

// A Scanner reads one JSON document. After an error its position is undefined. The zero
// Scanner reads an empty document.
type Scanner struct {
	b     []byte // the document, or the part of it that was read last
	i     int
	depth int

	r    io.Reader // the source of further bytes; nil: b is complete
	base int       // offset of b in the document
	mark int       // if holding is set, the bytes from here on must be kept
	// holding means that a text that starts at mark is being collected.
	holding bool
	err     error
}

// NewScanner returns a scanner of a document. b must not change meanwhile.
func NewScanner(b []byte) *Scanner { return &Scanner{b: b} }

// NewReader returns a scanner that reads its document from r. Parts of the document that
// methods return are valid until the next call only.
func NewReader(r io.Reader) *Scanner { return &Scanner{r: r} }

// Err returns the error of the reader. After a read error the document appears to end.
func (s *Scanner) Err() error { return s.err }

// Sizes of the buffer, in bytes. It starts small, because many small documents are read at
// the same time, and then doubles.
const (
	firstRead = 4 << 10
	readSize  = 128 << 10
)

// more reads further bytes into b and reports whether there were any. It discards bytes
// that are not needed any more.
func (s *Scanner) more() bool {
	if s.r == nil {
		return false
	}
	from := s.i
	if s.holding {
		from = s.mark
	}
	rest := s.b[from:]
	if cap(s.b) < readSize || len(rest) > cap(s.b)/2 {
		s.b = make([]byte, max(firstRead, 2*cap(s.b)))
	}
	s.b = s.b[:copy(s.b[:cap(s.b)], rest)]
	s.base, s.i, s.mark = s.base+from, s.i-from, s.mark-from
	n, err := io.ReadAtLeast(s.r, s.b[len(s.b):cap(s.b)], 1)
	if err != nil {
		if err != io.EOF {
			s.err = err
		}
		s.r = nil
		return false
	}
	s.b = s.b[:len(s.b)+n]
	return true
}

// has ensures that n bytes follow, and returns false at the end of the document.
func (s *Scanner) has(n int) bool {
	for len(s.b)-s.i < n {
		if !s.more() {
			return false
		}
	}
	return true
}

// A SyntaxError reports that a document is not JSON, or not of the expected form.
type SyntaxError struct {
	Offset int // in bytes from the beginning
	Msg    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Msg) }

func (s *Scanner) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: s.Offset(), Msg: fmt.Sprintf(format, args...)}
}

// Offset returns the position in bytes from the beginning.
func (s *Scanner) Offset() int { return s.base + s.i }

// Peek returns the first byte of the next token, or 0 at the end. A value starts with '{',
// '[', '"', 't', 'f', 'n', '-' or a digit.
func (s *Scanner) Peek() byte {
	if s.i < len(s.b) && s.b[s.i] > ' ' {
		return s.b[s.i]
	}
	return s.skipSpace()
}

func (s *Scanner) skipSpace() byte {
	for {
		b, i := s.b, s.i
		for i < len(b) {
			c := b[i]
			if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				s.i = i
				return c
			}
			i++
			for i+8 <= len(b) { // an indentation
				w := binary.LittleEndian.Uint64(b[i:]) ^ eightSpaces
				if w != 0 {
					i += bits.TrailingZeros64(w) / 8
					break
				}
				i += 8
			}
		}
		s.i = i
		if !s.more() {
			return 0
		}
	}
}

const eightSpaces = 0x2020202020202020

// End returns an error unless only white space is left.
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

// Object reads an object and calls f for each property. f must consume the value. The key
// is valid until then.
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
		if s.r != nil && (s.i == len(s.b) || s.b[s.i] != ':') { // reading more bytes overwrites the key
			key = bytes.Clone(key)
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

// Array reads an array and calls f for each element. f must consume the element.
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

// Sequence reads values that are separated by commas up to the end of the document, and calls f
// for each. f must consume the value.
func (s *Scanner) Sequence(f func() error) error {
	for {
		if err := f(); err != nil {
			return err
		}
		if s.Peek() == 0 {
			return s.End()
		}
		if s.b[s.i] != ',' {
			return s.unexpected("a comma or the end of the document")
		}
		s.i++
	}
}

// Ahead consumes the text of an array's next elements, and the comma after them, and returns a
// scanner of this text. It reads at most len(buf) bytes ahead, and looks for the last comma there
// that is between before and after, such as `}` and "\n  {". Without one, it consumes nothing and
// returns nil. The comma may also be inside an element: then the text is no sequence of values,
// and Sequence returns an error. buf must not change while the result is used.
func (s *Scanner) Ahead(buf []byte, before, after string) *Scanner {
	n := copy(buf, s.b[s.i:])
	if n < len(buf) && s.r != nil {
		m, err := io.ReadFull(s.r, buf[n:])
		n += m
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				s.err = err
			}
			s.r = nil
		}
	}
	read := buf[:n]
	at := s.Offset()
	end := bytes.LastIndex(read, []byte(before+","+after))
	size := 0
	if end >= 0 {
		size = end + len(before) + 1
	}
	if s.i+n > len(s.b) { // more was read
		rest := read[size:]
		s.b = append(make([]byte, 0, max(readSize, len(rest))), rest...)
		s.base, s.i = at+size, 0
	} else {
		s.i += size
	}
	if end < 0 {
		return nil
	}
	return &Scanner{b: read[:size-1], base: at, depth: s.depth}
}

// Null consumes null, if it is next, and reports whether it was.
func (s *Scanner) Null() bool {
	if s.Peek() == 'n' && s.has(4) && bytes.HasPrefix(s.b[s.i:], []byte("null")) {
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
	s.has(len(want))
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
	text, plain, err := s.skipString()
	if err != nil {
		return nil, err
	}
	if plain {
		return text[1 : len(text)-1], nil
	}
	if out, ok := unescape(text[1 : len(text)-1]); ok {
		return out, nil
	}
	var out string
	if err := json.Unmarshal(text, &out); err != nil {
		s.i -= len(text)
		return nil, s.errorf("the string is not well formed")
	}
	return []byte(out), nil
}

// unescape returns a copy of an ASCII text in which escapes of two characters are replaced. It
// returns false for texts with other characters or escapes.
func unescape(text []byte) ([]byte, bool) {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			return nil, false
		}
		if c == '\\' {
			i++
			if c = shortEscapes[text[i]]; c == 0 {
				return nil, false
			}
		}
		out = append(out, c)
	}
	return out, true
}

// shortEscapes contains the character for each that can follow a backslash, except u.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapeLen returns the length of the escape at the beginning of b, or 0.
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

// Number consumes a number and returns its text, which is part of the document.
func (s *Scanner) Number() ([]byte, error) {
	c := s.Peek()
	if c != '-' && (c < '0' || c > '9') {
		return nil, s.unexpected("a number")
	}
	for {
		n := numberLen(s.b[s.i:])
		if s.i+max(n, -n) == len(s.b) && s.more() { // the number may continue
			continue
		}
		if n <= 0 {
			s.i -= n
			return nil, s.errorf("the number is not well formed")
		}
		s.i += n
		return s.b[s.i-n : s.i], nil
	}
}

// numberLen returns the length of the number at the beginning of b. If it is invalid, the
// result is the negative offset of the error.
func numberLen(b []byte) int {
	i := 0
	if b[0] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		n := digits(b[i:])
		if i += n; n == 0 {
			return -i
		}
	}
	if i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if i += 1 + n; n == 0 {
			return -i
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if i += n; n == 0 {
			return -i
		}
	}
	return i
}

func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
