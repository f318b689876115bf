// Package document contains texts as editors change them: lines, positions in the encoding of the
// client, and edits.
//
// Main types: Text and Encoding. The one rule: a Text never changes, so that requests that run
// concurrently with an edit see one version.
package document

import (
	"bytes"
	"net/url"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// An Encoding is the unit in which the client counts characters in a line.
type Encoding string

// The encodings of positions. UTF16 is the default of the protocol.
const (
	UTF8  Encoding = "utf-8"
	UTF16 Encoding = "utf-16"
	UTF32 Encoding = "utf-32"
)

// Text is one version of a text.
type Text struct {
	Bytes []byte
	lines []int // offset of the start of each line
}

// New returns a text. The caller must not modify b afterwards.
func New(b []byte) *Text {
	t := &Text{Bytes: b, lines: make([]int, 1, 1+bytes.Count(b, []byte("\n")))}
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return t
		}
		i += n + 1
		t.lines = append(t.lines, i)
	}
}

// Lines returns the number of lines. A text that ends with a line break has an empty last line.
func (t *Text) Lines() int { return len(t.lines) }

// Line returns a line, counted from 0, without its line break.
func (t *Text) Line(n int) []byte {
	if n < 0 || n >= len(t.lines) {
		return nil
	}
	end := len(t.Bytes)
	if n+1 < len(t.lines) {
		end = t.lines[n+1] - 1
	}
	return bytes.TrimSuffix(t.Bytes[t.lines[n]:end], []byte("\r"))
}

// LineStart returns the offset of the start of a line, counted from 0, or the length of the text.
func (t *Text) LineStart(n int) int {
	if n >= len(t.lines) {
		return len(t.Bytes)
	}
	return t.lines[max(n, 0)]
}

// Offset returns the offset of a position. A position behind the end of a line or of the text means
// that end.
func (t *Text) Offset(p protocol.Position, e Encoding) int {
	if p.Line >= len(t.lines) {
		return len(t.Bytes)
	}
	line, left := t.Line(p.Line), p.Character
	at := t.LineStart(p.Line)
	if e == UTF8 {
		n := min(max(left, 0), len(line))
		for n > 0 && n < len(line) && !utf8.RuneStart(line[n]) {
			n--
		}
		return at + n
	}
	i := 0
	for i < len(line) && left > 0 {
		r, size := utf8.DecodeRune(line[i:])
		n := width(r, e)
		if n > left { // the position is inside a surrogate pair
			break
		}
		left -= n
		i += size
	}
	return at + i
}

// width returns the number of characters of a rune.
func width(r rune, e Encoding) int {
	if e == UTF16 && r > 0xffff {
		return 2
	}
	return 1
}

// Position returns the position of an offset.
func (t *Text) Position(offset int, e Encoding) protocol.Position {
	offset = min(max(offset, 0), len(t.Bytes))
	line := sort.SearchInts(t.lines, offset+1) - 1
	start := t.lines[line]
	if e == UTF8 {
		return protocol.Position{Line: line, Character: offset - start}
	}
	n := 0
	for i := start; i < offset; {
		r, size := utf8.DecodeRune(t.Bytes[i:offset])
		n += width(r, e)
		i += size
	}
	return protocol.Position{Line: line, Character: n}
}

// Range returns the range between two offsets.
func (t *Text) Range(start, end int, e Encoding) protocol.Range {
	return protocol.Range{Start: t.Position(start, e), End: t.Position(end, e)}
}

// Apply returns the text after changes, which apply one after the other.
func (t *Text) Apply(changes []protocol.TextDocumentContentChange, e Encoding) *Text {
	for _, c := range changes {
		if c.Range == nil {
			t = New([]byte(c.Text))
			continue
		}
		start := t.Offset(c.Range.Start, e)
		end := max(t.Offset(c.Range.End, e), start)
		next := make([]byte, 0, len(t.Bytes)-(end-start)+len(c.Text))
		next = append(append(append(next, t.Bytes[:start]...), c.Text...), t.Bytes[end:]...)
		t = New(next)
	}
	return t
}

// Edits returns the edits that change the text to another, one for each group of lines that differ: lines
// that are equal are not touched, so that the cursor and folded parts stay as they are.
func (t *Text) Edits(to []byte, e Encoding) []protocol.TextEdit { return t.edits(to, e, true) }

// EditsByLine is Edits with one edit for each line, if no lines are added or removed.
func (t *Text) EditsByLine(to []byte, e Encoding) []protocol.TextEdit { return t.edits(to, e, false) }

func (t *Text) edits(to []byte, e Encoding, grouped bool) []protocol.TextEdit {
	if bytes.Equal(t.Bytes, to) {
		return nil
	}
	next, text := New(to), string(to)
	var out []protocol.TextEdit
	if next.Lines() == t.Lines() {
		same := func(i int) bool {
			return bytes.Equal(t.Bytes[t.LineStart(i):t.LineStart(i+1)], to[next.LineStart(i):next.LineStart(i+1)])
		}
		for i := 0; i < t.Lines(); i++ {
			first := i
			for i < t.Lines() && !same(i) {
				if i++; !grouped {
					break
				}
			}
			if i > first {
				out = append(out, protocol.TextEdit{Range: t.lineRange(first, i, e), NewText: text[next.LineStart(first):next.LineStart(i)]})
				i-- // the loop advances
			}
		}
		return out
	}
	first, same := 0, 0
	at := func(x *Text, i int) []byte { return x.Bytes[x.LineStart(i):x.LineStart(i+1)] }
	for first < min(t.Lines(), next.Lines()) && bytes.Equal(at(t, first), at(next, first)) {
		first++
	}
	for same < min(t.Lines(), next.Lines())-first && bytes.Equal(at(t, t.Lines()-1-same), at(next, next.Lines()-1-same)) {
		same++
	}
	return []protocol.TextEdit{{Range: t.lineRange(first, t.Lines()-same, e), NewText: text[next.LineStart(first):next.LineStart(next.Lines()-same)]}}
}

// lineRange returns the range of the lines from first, before end.
func (t *Text) lineRange(first, end int, e Encoding) protocol.Range {
	out := protocol.Range{Start: protocol.Position{Line: first}, End: protocol.Position{Line: end}}
	if end >= len(t.lines) { // the last line has no line break
		out.End = t.Position(len(t.Bytes), e)
	}
	return out
}

// Path returns the path of a file URI, or "" for other URIs.
func Path(uri string) string {
	path := pathOf(uri, runtime.GOOS == "windows")
	if path == "" {
		return ""
	}
	return filepath.Clean(filepath.FromSlash(path))
}

// pathOf returns the path of a file URI with slashes, or "". Only paths of Windows can have a host.
func pathOf(uri string, windows bool) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return ""
	}
	switch local := u.Host == "" || u.Host == "localhost"; {
	case !windows && local:
		return u.Path
	case !windows:
		return ""
	case !local:
		return "//" + u.Host + u.Path
	}
	path := strings.TrimPrefix(u.Path, "/")
	if len(path) > 1 && path[1] == ':' { // editors write the drive in lower case or in upper case
		path = strings.ToUpper(path[:1]) + path[1:]
	}
	return path
}

// URI returns the URI of an absolute path.
func URI(path string) string {
	path = filepath.ToSlash(path)
	host := ""
	if rest, ok := strings.CutPrefix(path, "//"); ok { // of a server, on Windows
		host, path, _ = strings.Cut(rest, "/")
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Host: host, Path: path}).String()
}
