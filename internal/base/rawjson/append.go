package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

var words = [256]string{'t': "true", 'f': "false", 'n': "null"}

const hex = "0123456789abcdef"

// safe contains the bytes that are not escaped in a string.
var safe = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if safe[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(append(dst, s[start:i]...), `\ufffd`...)
				start = i + 1
			case r == '\u2028' || r == '\u2029':
				dst = append(append(dst, s[start:i]...), `\u202`...)
				dst = append(dst, hex[r&0xf])
				start = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendEscaped appends the text of a JSON string with its quotes, and escapes characters
// that are special in HTML. It keeps other escapes.
func appendEscaped(dst, text []byte) []byte {
	if bytes.IndexByte(text, '<') < 0 && bytes.IndexByte(text, '>') < 0 && bytes.IndexByte(text, '&') < 0 && bytes.IndexByte(text, 0xe2) < 0 {
		return append(dst, text...)
	}
	start := 0
	for i, c := range text {
		switch {
		case c == '<' || c == '>' || c == '&':
			dst = append(append(dst, text[start:i]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			start = i + 1
		case c == 0xe2 && i+2 < len(text) && text[i+1] == 0x80 && text[i+2]&^1 == 0xa8:
			dst = append(append(dst, text[start:i]...), '\\', 'u', '2', '0', '2', hex[text[i+2]&0xf])
			start = i + 3
		}
	}
	return append(dst, text[start:]...)
}

// AppendIndent appends compact JSON text with two spaces of indentation per level, like
// json.Indent. level is the number of open brackets before the text, and the result the
// number after it. A text may be written in pieces, if no piece ends with an opening
// bracket or within a token.
func AppendIndent(dst, compact []byte, level int) ([]byte, int) {
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; c {
		case '"':
			end := stringEnd(compact, i)
			dst = append(dst, compact[i:end]...)
			i = end - 1
		case '{', '[':
			dst = append(dst, c)
			if i+1 < len(compact) && compact[i+1] == c+2 {
				dst = append(dst, c+2)
				i++
				continue
			}
			level++
			dst = appendNewLine(dst, level)
		case '}', ']':
			level--
			dst = append(appendNewLine(dst, level), c)
		case ',':
			dst = appendNewLine(append(dst, ','), level)
		case ':':
			dst = append(dst, ':', ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst, level
}

// stringEnd returns the offset after the string that starts at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// maxIndent is the maximum indentation in levels, so that the size of a deeply nested
// document does not grow quadratically.
const maxIndent = 128

var spaces = "\n" + strings.Repeat("  ", maxIndent)

// appendNewLine appends a line break and the indentation of a level.
func appendNewLine(dst []byte, level int) []byte {
	return append(dst, spaces[:1+2*min(max(level, 0), maxIndent)]...)
}

// Deeper reports whether arrays and objects in a JSON text are nested more than n levels
// deep.
func Deeper(text []byte, n int) bool {
	if len(text) <= n {
		return false
	}
	level := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			if level++; level > n {
				return true
			}
		case '}', ']':
			level--
		}
	}
	return false
}
