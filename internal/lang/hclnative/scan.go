package hclnative

import (
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const bom = "\xef\xbb\xbf"

// kind is the kind of a token outside templates.
type kind uint8

const (
	kBad kind = iota // from here on, the text is not HCL
	kEOF
	kNewline // also a comment up to the end of its line
	kIdent
	kNumber
	kQuote
	kHeredoc
	kOBrace
	kCBrace
	kCBraceTrim // ~}
	kOBrack
	kCBrack
	kOParen
	kCParen
	kDot
	kEllipsis
	kComma
	kColon
	kDoubleColon
	kEqual
	kFatArrow
	kQuestion
	kBang
	kOr
	kAnd
	kEqualOp
	kNotEqual
	kGreater
	kGreaterEq
	kLess
	kLessEq
	kPlus
	kMinus
	kStar
	kSlash
	kPercent

	// These kinds are only used for formatting.
	kComment
	kInterp
	kControl
	kSeqEnd
	kQuotedLit
	kStringLit
	kCQuote
	kCHeredoc
	kinds
)

// class is the kind of token that can begin with a byte.
type class uint8

const (
	cOther class = iota
	cIdent
	cDigit
	cSpace
	cSingle // a token of one byte, see single
)

var classes = func() (t [256]class) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = cIdent, cIdent
	}
	t['_'] = cIdent
	for c := '0'; c <= '9'; c++ {
		t[c] = cDigit
	}
	t[' '], t['\t'] = cSpace, cSpace
	for c, k := range singles {
		if k != kBad {
			t[c] = cSingle
		}
	}
	return t
}()

var singles = [256]kind{
	'{': kOBrace, '}': kCBrace, '[': kOBrack, ']': kCBrack, '(': kOParen, ')': kCParen,
	',': kComma, '?': kQuestion, '+': kPlus, '-': kMinus, '*': kStar, '%': kPercent, '"': kQuote,
}

// inIdent contains the bytes that can continue a name.
var inIdent = func() (t [256]bool) {
	for c := range t {
		t[c] = classes[c] == cIdent || classes[c] == cDigit || c == '-'
	}
	return t
}()

// mark is a position in the text. Columns count grapheme clusters, token by token: bol is
// the offset at which the line would begin if each cluster had one byte.
type mark struct{ off, line, bol int }

func (m mark) pos() hcl.Pos { return hcl.Pos{Line: m.line, Column: m.off - m.bol + 1, Byte: m.off} }

// token is the next token. Its end line is not set for line breaks and the start of a
// heredoc, where no caller needs it.
type token struct {
	kind kind
	mark
	end, endLine, endBol int
}

func (t *token) endMark() mark { return mark{t.end, t.endLine, t.endBol} }

// scanner splits a text into tokens. Inside templates, the parser moves it.
type scanner struct {
	src  string
	mark // the next position to scan
	tok  token
	rec  *[]lexeme // collects tokens; nil unless a text is formatted
}

// scan reads the next token outside templates.
func (s *scanner) scan() {
	s.token()
	if s.rec != nil {
		k := s.tok.kind
		if k == kNewline && s.src[s.tok.off] != '\n' && s.src[s.tok.off] != '\r' {
			k = kComment
		}
		s.note(k, s.tok.off, s.tok.end)
	}
}

func (s *scanner) note(k kind, start, end int) {
	if s.rec != nil {
		*s.rec = append(*s.rec, lexeme{kind: k, start: int32(start), end: int32(end)})
	}
}

func (s *scanner) token() {
	src, i := s.src, s.off
again:
	for i < len(src) && classes[src[i]] == cSpace {
		i++
	}
	s.off = i
	t := &s.tok
	t.mark = s.mark
	if i == len(src) {
		t.kind, t.end, t.endLine, t.endBol = kEOF, i, s.line, s.bol
		return
	}
	c := src[i]
	k := kBad
	switch classes[c] {
	case cIdent:
		s.ident()
		return
	case cDigit:
		k = kNumber
		i = numberEnd(src, i)
	case cSingle:
		k = singles[c]
		i++
	default:
		next := byte(0)
		if i+1 < len(src) {
			next = src[i+1]
		}
		two := func(want byte, long, short kind) kind {
			i++
			if next == want {
				i++
				return long
			}
			return short
		}
		switch c {
		case '\n':
			i++
			s.newline(i)
			return
		case '\r':
			if next == '\n' {
				s.newline(i + 2)
				return
			}
		case '#':
			if s.comment() {
				return
			}
			i = s.off
			goto again
		case '/':
			switch next {
			case '/':
				if s.comment() {
					return
				}
				i = s.off
				goto again
			case '*':
				if n := strings.Index(src[i+2:], "*/"); n >= 0 {
					s.note(kComment, i, i+2+n+2)
					s.cross(i + 2 + n + 2)
					i = s.off
					goto again
				}
			}
			k = kSlash
			i++
		case '=':
			switch next {
			case '=':
				k = kEqualOp
				i += 2
			case '>':
				k = kFatArrow
				i += 2
			default:
				k = kEqual
				i++
			}
		case '.':
			if next == '.' && i+2 < len(src) && src[i+2] == '.' {
				k = kEllipsis
				i += 3
			} else {
				k = kDot
				i++
			}
		case ':':
			k = two(':', kDoubleColon, kColon)
		case '!':
			k = two('=', kNotEqual, kBang)
		case '>':
			k = two('=', kGreaterEq, kGreater)
		case '&':
			k = two('&', kAnd, kBad)
		case '|':
			k = two('|', kOr, kBad)
		case '~':
			k = two('}', kCBraceTrim, kBad)
		case '<':
			if next == '<' {
				if end := heredocEnd(src, i); end > 0 {
					t.kind, t.end = kHeredoc, end
					s.cross(end)
					return
				}
			}
			k = two('=', kLessEq, kLess)
		default:
			if c >= utf8.RuneSelf {
				s.ident()
				return
			}
		}
	}
	t.kind, t.end, t.endLine, t.endBol = k, i, s.line, s.bol
	s.off = i
}

func (s *scanner) newline(end int) {
	s.tok.kind, s.tok.end = kNewline, end
	s.off, s.bol = end, end
	s.line++
}

// comment reads a comment to the end of its line, which counts as a line break. At the end
// of the text, there is none.
func (s *scanner) comment() bool {
	if n := strings.IndexByte(s.src[s.off:], '\n'); n >= 0 {
		end := s.off + n + 1
		if isASCII(s.src[s.off:end]) {
			s.newline(end)
		} else {
			s.tok.kind, s.tok.end = kNewline, end
			s.cross(end)
		}
		return true
	}
	s.note(kComment, s.off, len(s.src))
	s.cross(len(s.src))
	return false
}

// ident reads a name.
func (s *scanner) ident() {
	src, i := s.src, s.off
	ascii := true
	for i < len(src) {
		c := src[i]
		if inIdent[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		n := letter(src, i, i > s.off)
		if n == 0 {
			break
		}
		ascii = false
		i += n
	}
	t := &s.tok
	t.kind = kIdent
	if i == s.off {
		t.kind = kBad
	}
	if ascii {
		s.off = i
	} else {
		s.cross(i)
	}
	t.end, t.endLine, t.endBol = i, s.line, s.bol
}

// letter returns the length of the non-ASCII letter at i, or 0. hclsyntax decides which
// letters are allowed in names; it accepts some invalid UTF-8.
func letter(src string, i int, within bool) int {
	if !within && strings.HasPrefix(src[i:], bom) {
		return 0 // hclsyntax would remove it
	}
	for n := 2; n <= 4 && i+n <= len(src); n++ {
		name := src[i : i+n]
		if within {
			name = "a" + name
		}
		if hclsyntax.ValidIdentifier(name) {
			return n
		}
	}
	return 0
}

// numberEnd returns the end of the number at i. ParseNumberVal checks the number.
func numberEnd(src string, i int) int {
	i++
	end := i
	for i < len(src) {
		switch c := src[i]; {
		case c >= '0' && c <= '9':
			i++
			end = i
		case c == '.':
			i++
		case c == 'e' || c == 'E':
			j := i + 1
			if j < len(src) && (src[j] == '+' || src[j] == '-') {
				j++
			}
			if j >= len(src) || src[j] < '0' || src[j] > '9' {
				return end
			}
			i = j + 1
			end = i
		default:
			return end
		}
	}
	return end
}

// heredocEnd returns the end of the line that opens a heredoc at i, or 0.
func heredocEnd(src string, i int) int {
	i += 2
	if i < len(src) && src[i] == '-' {
		i++
	}
	if i >= len(src) || classes[src[i]] != cIdent && src[i] < utf8.RuneSelf {
		return 0
	}
	in := scanner{src: src, mark: mark{off: i}}
	if in.ident(); in.tok.kind != kIdent {
		return 0
	}
	i = in.tok.end
	if i < len(src) && src[i] == '\r' {
		i++
	}
	if i < len(src) && src[i] == '\n' {
		return i + 1
	}
	return 0
}

// cross moves to end inside one token, which may contain line breaks and non-ASCII text.
func (s *scanner) cross(end int) {
	rest := s.src[s.off:end]
	if isASCII(rest) {
		if n := strings.LastIndexByte(rest, '\n'); n >= 0 {
			s.line += strings.Count(rest, "\n")
			s.bol = s.off + n + 1
		}
		s.off = end
		return
	}
	b := []byte(rest)
	col := s.off - s.bol
	for len(b) > 0 {
		n := nextCluster(b)
		if string(b[:n]) == "\n" || string(b[:n]) == "\r\n" {
			s.line++
			col = 0
		} else {
			col++
		}
		b = b[n:]
	}
	s.off, s.bol = end, end-col
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// wide returns the length of the non-ASCII character at i, or 0. Like HCL's templates, it
// accepts overlong encodings and surrogates.
func wide(src string, i int) int {
	n := 0
	switch c := src[i]; {
	case c >= 0xC0 && c <= 0xDF:
		n = 2
	case c >= 0xE0 && c <= 0xEF:
		n = 3
	case c >= 0xF0 && c <= 0xF7:
		n = 4
	default:
		return 0
	}
	if i+n > len(src) {
		return 0
	}
	for _, c := range []byte(src[i+1 : i+n]) {
		if c&0xC0 != 0x80 {
			return 0
		}
	}
	return n
}
