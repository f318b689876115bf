// Package wrap breaks lines for people at spaces.
//
// Main functions: Lines for text in paragraphs, Fit for text that is already broken into lines
// for a terminal of 80 columns. The one rule: lines that begin with a space or tab are lists,
// code or tables, and stay as they are.
package wrap

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Lines breaks lines longer than limit columns at spaces. It does not change lines that begin
// with a space or tab, and does not break long words.
func Lines(text string, limit int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		wrapLine(&b, line, limit, 0)
	}
	return b.String()
}

// Words is Lines for text in which all white space only separates words.
func Words(text string, limit int) string {
	return Lines(strings.Join(strings.Fields(text), " "), limit)
}

// Fit returns text for a terminal of the given number of columns; 0 means that the output is
// not a terminal, and Fit returns the text unchanged. at is the number of columns before the
// text in its first line. If a line of a paragraph is too long, Fit undoes the line breaks of
// the paragraph that were made for a terminal of 80 columns, and breaks it again.
func Fit(text string, columns, at int) string {
	if columns <= 0 {
		return text
	}
	limit := max(columns-1, minimum)
	lines := strings.Split(text, "\n")
	var b strings.Builder
	for i := 0; i < len(lines); {
		if i > 0 {
			b.WriteByte('\n')
			at = 0
		}
		end, long := i, at+Columns(lines[i]) > limit
		for before := at; end+1 < len(lines) && broken(lines[end], lines[end+1], before); before = 0 {
			end++
			long = long || Columns(lines[end]) > limit
		}
		if long {
			wrapLine(&b, strings.Join(lines[i:end+1], " "), limit, at)
		} else {
			b.WriteString(strings.Join(lines[i:end+1], "\n"))
		}
		i = end + 1
	}
	return b.String()
}

const (
	minimum = 20 // columns of a line at least, also on a narrower terminal
	usual   = 78 // columns for which text was broken into lines
	ragged  = 10 // columns that such a line may be shorter than usual
)

// broken reports whether the break after a line was made because the line was full. The other
// breaks, as after a sentence, stay. at is the number of columns before the line.
func broken(line, next string, at int) bool {
	if line == "" || fixed(line, at) || strings.HasSuffix(line, ".") || strings.HasSuffix(line, ":") || next == "" || fixed(next, 0) {
		return false
	}
	word, _, _ := strings.Cut(next, " ")
	return at+Columns(line)+1+Columns(word) > usual-ragged
}

// fixed reports whether a line is part of a list, code or table. at is the number of columns
// before the line.
func fixed(line string, at int) bool {
	return at == 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"))
}

// wrapLine writes one line that begins after at columns.
func wrapLine(b *strings.Builder, line string, limit, at int) {
	if fixed(line, at) || at+Columns(line) <= limit {
		b.WriteString(line)
		return
	}
	column := at
	for line != "" {
		word := strings.TrimLeft(line, " ")
		spaces := len(line) - len(word)
		end := strings.IndexByte(word, ' ')
		if end < 0 {
			end = len(word)
		}
		n := Columns(word[:end])
		switch {
		case column > 0 && n > 0 && column+spaces+n > limit:
			b.WriteByte('\n')
			column = 0
		case column > 0:
			b.WriteString(line[:spaces])
			column += spaces
		}
		b.WriteString(word[:end])
		column += n
		line = word[end:]
	}
}

// Columns returns the number of columns of a line on a terminal. Escape sequences for colors
// have none.
func Columns(line string) int {
	n := 0
	for color := false; line != ""; {
		r, size := utf8.DecodeRuneInString(line)
		switch {
		case color:
			color = r != 'm'
		case strings.HasPrefix(line, "\x1b["):
			color = true
		default:
			n += Of(r)
		}
		line = line[size:]
	}
	return n
}

// Of returns the number of columns of a character.
func Of(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// OneLine returns a text in one line: without escape sequences of terminals and without characters
// that change the direction of text, and with a space in place of each other control character and
// line separator.
func OneLine(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if n := Escape(text[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			continue
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// Visible replaces control characters except line breaks ("\n" and "\r\n") and tabs, and characters that reverse the order
// of text, by their codes. A terminal or a browser would follow them: the text that a reader sees
// could be another one.
func Visible(text string) string {
	if strings.IndexFunc(text, obeyed) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\r' && (i+1 == len(text) || text[i+1] == '\n'):
			b.WriteRune(r)
		case obeyed(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func obeyed(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || Reorders(r)
}

// Reorders reports whether a character embeds, isolates or overrides a direction of text. Such a
// character changes the order in which the characters after it are shown.
func Reorders(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Escape returns the length of the escape sequence at the start of text, in bytes, or 0.
func Escape(text string) int {
	switch {
	case strings.HasPrefix(text, "\x1b["):
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
		return len(text)
	case strings.HasPrefix(text, "\x1b]"):
		if i := strings.IndexAny(text, "\a\\"); i >= 0 {
			return i + 1
		}
		return len(text)
	}
	return 0
}
