package hclnative

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Formatting follows github.com/hashicorp/hcl/v2/hclwrite's Format byte for byte. Each line
// has up to three cells: a lead, an assignment and a comment. Lines are indented by the
// number of open brackets. There is one space or none between two tokens of a cell.
// Assignments and comments of consecutive lines are aligned.

// lexeme is a token of a text being formatted.
type lexeme struct {
	kind       kind
	start, end int32
	spaces     int32 // number of spaces before it
}

// line contains the token indexes of a line: lead ends at assign, assign at comment, comment at end.
type line struct{ lead, assign, comment, end int32 }

// Format returns the text in canonical format. Only white space between tokens changes. ok
// is false if the text is not HCL.
func Format(src []byte, name string) ([]byte, bool) {
	t, ok := ScanTokens(src, name)
	if !ok {
		return nil, false
	}
	defer t.Release()
	return t.Format(), true
}

// Tokens is a text with its tokens and its blocks and attributes.
type Tokens struct {
	File *File
	layout
}

// layouts is a pool, because the tokens of a file need several times the memory of its text, and an editor
// formats the same file again and again.
var layouts = sync.Pool{New: func() any { return new(layout) }}

// ScanTokens is Scan for a text that is formatted afterwards. The caller calls Release at the end.
func ScanTokens(src []byte, name string) (*Tokens, bool) {
	t := &Tokens{layout: *layouts.Get().(*layout)}
	t.toks, t.lines = slices.Grow(t.toks[:0], len(src)/3+16), t.lines[:0]
	var ok bool
	if t.File, ok = scanText(src, name, &t.toks); !ok {
		t.Release()
		return nil, false
	}
	t.src = t.File.text
	return t, true
}

// Release allows the memory of the tokens to be used for another text.
func (t *Tokens) Release() {
	layouts.Put(&layout{toks: t.toks, lines: t.lines})
	t.layout = layout{}
}

// Format returns the text in canonical format. It may be called once.
func (t *Tokens) Format() []byte {
	t.lines = slices.Grow(t.lines, strings.Count(t.src, "\n")+1)
	t.cut()
	t.indent()
	t.space()
	t.align(func(in line) (cell, end int32) { return in.assign, in.comment })
	t.align(func(in line) (cell, end int32) { return in.comment, in.end })
	return t.text()
}

type layout struct {
	src   string
	toks  []lexeme
	lines []line
}

// cut splits the tokens into lines and cells.
func (l *layout) cut() {
	last := int32(0)
	for i := range l.toks {
		t := &l.toks[i]
		t.spaces = t.start - last
		last = t.end
		if t.kind == kEOF {
			l.toks = l.toks[:i+1]
			break
		}
	}
	start := int32(0)
	for i, t := range l.toks {
		switch {
		case t.kind == kEOF:
			l.line(start, int32(i))
		case t.kind == kNewline, t.kind == kComment && l.src[t.end-1] == '\n':
			l.line(start, int32(i)+1)
			start = int32(i) + 1
		}
	}
}

func (l *layout) line(start, end int32) {
	in := line{lead: start, assign: end, comment: end, end: end}
	if end-start > 1 && l.toks[end-1].kind == kComment {
		in.comment--
		in.assign--
	}
	for i := start; i < in.comment; i++ {
		if i > start && l.toks[i].kind == kEqual {
			if l.brackets(i, in.comment) == 0 {
				in.assign = i
			}
			break
		}
	}
	l.lines = append(l.lines, in)
}

// brackets returns the number of opening minus closing brackets among some tokens.
func (l *layout) brackets(from, to int32) int {
	n := 0
	for _, t := range l.toks[from:to] {
		n += bracket[t.kind]
	}
	return n
}

var bracket = [kinds]int{
	kOBrace: 1, kOBrack: 1, kOParen: 1, kInterp: 1, kControl: 1,
	kCBrace: -1, kCBrack: -1, kCParen: -1, kSeqEnd: -1, kCBraceTrim: -1,
}

func (l *layout) indent() {
	open := make([]int, 0, 16) // number of brackets at each level of indentation
	for _, in := range l.lines {
		if in.lead == in.assign {
			continue
		}
		first := &l.toks[in.lead]
		if first.kind == kNewline {
			first.spaces = 0
			continue
		}
		n := 0
		for _, t := range l.toks[in.lead:in.assign] {
			n += bracket[t.kind]
			if t.kind == kHeredoc {
				break
			}
		}
		n += l.brackets(in.assign, in.comment)
		for n < 0 && len(open) > 0 {
			top := &open[len(open)-1]
			if -n < *top {
				*top += n
				break
			}
			n += *top
			open = open[:len(open)-1]
		}
		first.spaces = int32(2 * len(open))
		if n > 0 {
			open = append(open, n)
		}
	}
}

func (l *layout) space() {
	for _, in := range l.lines {
		l.spaceCell(in.lead, in.assign)
		if in.assign < in.comment {
			l.toks[in.assign].spaces = 1
			l.spaceCell(in.assign, in.comment)
		}
	}
}

func (l *layout) spaceCell(from, to int32) {
	before := kBad
	for i := from; i+1 < to; i++ {
		t, after := &l.toks[i], &l.toks[i+1]
		after.spaces = 0
		if l.spaced(before, t, after.kind) {
			after.spaces = 1
		}
		before = t.kind
	}
}

// spaced reports whether there is a space between a token and the next one.
func (l *layout) spaced(before kind, t *lexeme, after kind) bool {
	k := t.kind
	switch {
	case after == kNewline,
		k == kIdent && (after == kOParen || after == kDoubleColon),
		k == kDoubleColon && after == kIdent,
		k == kDot, after == kDot,
		after == kComma, after == kEllipsis:
		return false
	case k == kComma:
		return true
	case k == kQuotedLit, k == kStringLit, k == kQuote, k == kHeredoc,
		after == kQuotedLit, after == kStringLit, after == kCQuote, after == kCHeredoc:
		return false
	case k == kIdent && before == kIdent && l.src[t.start:t.end] == "in":
		return true // [for x in [a, b] : x]
	case after == kOBrack && (k == kIdent || k == kNumber || bracket[k] < 0), k == kBang:
		return false
	case k == kMinus:
		return !negates[before]
	case k == kOBrace, after == kCBrace:
		return k != kOBrace || after != kCBrace
	case (k == kInterp || k == kControl) && after == kOBrace, k == kCBrace && closesSequence(after):
		return true
	case closesSequence(k) && (after == kInterp || after == kControl), bracket[k] > 0, bracket[after] < 0:
		return false
	}
	return true
}

func closesSequence(k kind) bool { return k == kSeqEnd || k == kCBraceTrim }

// negates contains the kinds of tokens after which a minus is a sign.
var negates = [kinds]bool{
	kBad:    true, // nothing
	kOParen: true, kOBrace: true, kOBrack: true, kEqual: true, kColon: true, kComma: true, kQuestion: true,
	kPlus: true, kStar: true, kSlash: true, kPercent: true, kMinus: true,
	kEqualOp: true, kNotEqual: true, kGreater: true, kGreaterEq: true, kLess: true, kLessEq: true,
	kAnd: true, kOr: true, kBang: true,
}

// align aligns the cells of consecutive lines, one space after the widest preceding cell.
func (l *layout) align(cell func(line) (cell, end int32)) {
	columns := make([]int32, 0, 16) // the widths of the lines of a run
	widest := int32(0)
	flush := func(next int) {
		for i, n := range columns {
			at, _ := cell(l.lines[next-len(columns)+i])
			l.toks[at].spaces = widest - n + 1
		}
		columns, widest = columns[:0], 0
	}
	for i, in := range l.lines {
		at, end := cell(in)
		if at == end {
			flush(i)
			continue
		}
		n := int32(0)
		for _, t := range l.toks[in.lead:at] {
			n += t.spaces + int32(clusters(l.src[t.start:t.end]))
		}
		columns = append(columns, n)
		widest = max(widest, n)
	}
	flush(len(l.lines))
}

func (l *layout) text() []byte {
	var out bytes.Buffer
	out.Grow(len(l.src) + len(l.src)/8)
	const blanks = "                                "
	for _, t := range l.toks {
		for n := int(t.spaces); n > 0; n -= len(blanks) {
			out.WriteString(blanks[:min(n, len(blanks))])
		}
		out.WriteString(l.src[t.start:t.end])
	}
	return out.Bytes()
}
