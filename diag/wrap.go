package diag

import (
	"strings"
	"unicode/utf8"

	"github.com/terrace-iac/terrace/internal/base/wrap"
)

// clean makes text safe for a terminal: it removes escape sequences for colors, and replaces
// other control characters except line breaks and tabs by \xNN, and characters that change the
// direction of text by \uNNNN.
func clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return isControl(r) || wrap.Reorders(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := colorSequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case isControl(r):
			const digits = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(digits[r>>4&0xf])
			b.WriteByte(digits[r&0xf])
		case wrap.Reorders(r):
			b.WriteString(wrap.Visible(string(r)))
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// isControl reports whether r is a C0 or C1 control character, which a terminal may interpret.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

// colorSequence returns the length of the SGR sequence at the beginning of s, or 0.
func colorSequence(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}
