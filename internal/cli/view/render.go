package view

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/zclconf/go-cty/cty"
)

// A Style determines the form of text.
type Style struct {
	Color bool
	Width int        // columns of the terminal; 0 if the output is not a terminal
	Names diag.Names // the program's names in texts
}

// Escape sequences for colors.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	gray   = "\x1b[90m"
)

// A printer writes nodes. It keeps the first error of the writer until Flush.
type printer struct {
	*bufio.Writer
	color bool
	width int
	names diag.Names
	bare  map[string]string // cache of bareName

	// lines counts the lines of a text whose causes are in the list causes. nil writes causes into
	// the text.
	lines  *lineCounter
	causes []LineCause
}

func newPrinter(w io.Writer, style Style) *printer {
	size := 64 << 10
	lines, counts := w.(*lineCounter)
	if _, memory := w.(*bytes.Buffer); memory || counts {
		size = 2 << 10 // a flush to memory is cheap
	}
	return &printer{Writer: bufio.NewWriterSize(w, size), color: style.Color, width: style.Width, names: style.Names, bare: make(map[string]string), lines: lines}
}

// sentences writes strings that together are sentences for people, which begin after at columns
// of a line. It wraps them at the width of the terminal.
func (p *printer) sentences(at int, ss ...string) { p.str(wrap.Fit(strings.Join(ss, ""), p.width, at)) }

// str writes strings.
func (p *printer) str(ss ...string) {
	for _, s := range ss {
		_, _ = p.WriteString(s)
	}
}

// dressed writes a string in a color.
func (p *printer) dressed(style, s string) {
	if p.color {
		p.str(style, s, reset)
		return
	}
	p.str(s)
}

// flags are settings from the parent of a node.
type flags struct {
	all    bool // write unchanged parts too
	plain  bool // write no symbols
	noNull bool // write no "-> null" at the end
	forces bool // write "forces replacement" even if the node does not force it
}

const blanks = "                                                                "

func (p *printer) indent(n int) {
	for n *= 4; n > len(blanks); n -= len(blanks) {
		p.str(blanks)
	}
	p.str(blanks[:n])
}

// symbol writes the four columns before a part.
func (p *printer) symbol(o op, f flags) {
	if f.plain {
		return
	}
	switch o {
	case create:
		p.sign(green, "+")
	case remove:
		p.sign(red, "-")
	case update:
		p.sign(yellow, "~")
	default:
		p.str("    ")
	}
}

func (p *printer) sign(style, s string) {
	p.str("  ")
	p.dressed(style, s)
	p.str(" ")
}

// null writes the end of a removed part.
func (p *printer) null(n *node, f flags) {
	if n.op == remove && !f.noNull {
		p.dressed(gray, " -> null")
	}
}

func (p *printer) forces(n *node, f flags) {
	if n.forces || f.forces {
		p.dressed(red, " # forces replacement")
	}
}

// arrow writes the arrow between two values.
func (p *printer) arrow() {
	p.str(" ")
	p.dressed(yellow, "->")
	p.str(" ")
}

func (p *printer) warning(w warning, indent int) {
	var lines [2]string
	switch w {
	case noWarning:
		return
	case becomesSecret:
		lines = [2]string{"this attribute value will be marked as sensitive and will not", "display in UI output after applying this change."}
	case becomesSecretSame:
		lines = [2]string{"this attribute value will be marked as sensitive and will not", "display in UI output after applying this change. The value is unchanged."}
	case becomesPlain:
		lines = [2]string{"this attribute value will no longer be marked as sensitive", "after applying this change."}
	case blockBecomesSecret:
		lines = [2]string{"this block will be marked as sensitive and will not", "display in UI output after applying this change."}
	case blockBecomesPlain:
		lines = [2]string{"this block will no longer be marked as sensitive", "after applying this change."}
	case becomesPlainSame:
		lines = [2]string{"this attribute value will no longer be marked as sensitive", "after applying this change. The value is unchanged."}
	}
	p.indent(indent)
	p.str("  # ")
	p.dressed(yellow, "Warning:")
	p.str(" ", lines[0], "\n")
	p.indent(indent)
	p.str("  # ", lines[1], "\n")
}

// node writes a part after its name.
func (p *printer) node(n *node, indent int, f flags) {
	switch n.kind {
	case leaf:
		p.leaf(n, f)
	case text:
		p.text(n, indent, f)
	case encoded:
		p.encoded(n, indent, f)
	case object:
		p.object(n, indent, f)
	case mapping:
		p.mapping(n, indent, f)
	case sequence:
		p.sequence(n, indent, f)
	case unknown:
		p.unknown(n, indent, f)
	case secret:
		p.str("(sensitive value)")
		p.null(n, f)
		p.forces(n, f)
	case writeOnly:
		p.str("(write-only attribute)")
		p.null(n, f)
		p.forces(n, f)
	case converted:
		p.node(n.inner, indent, flags{noNull: true})
		p.arrow()
		p.node(n.other, indent, flags{noNull: true})
		p.forces(n, f)
	case blockBody:
		p.block(n, indent, f)
	}
}

func (p *printer) leaf(n *node, f flags) {
	switch n.op {
	case create:
		p.value(n.after)
	case remove:
		p.value(n.before)
		if !n.before.IsNull() {
			p.null(n, f)
		}
	case update:
		p.value(n.before)
		p.arrow()
		p.value(n.after)
	default:
		p.value(n.after)
	}
	p.forces(n, f)
}

// value writes a primitive value.
func (p *printer) value(v cty.Value) {
	switch ty := v.Type(); {
	case !v.IsKnown():
		p.str("(known after apply)")
	case v.IsNull():
		p.dressed(gray, "null")
	case ty == cty.String:
		var buf [128]byte
		_, _ = p.Write(strconv.AppendQuote(buf[:0], v.AsString()))
	case ty == cty.Number:
		p.str(number(v.AsBigFloat()))
	case ty == cty.Bool && v.True():
		p.str("true")
	case ty == cty.Bool:
		p.str("false")
	case ty.Equals(literal()):
		p.str(*v.EncapsulatedValue().(*string))
	case shapeOf(v) == shapeList:
		p.str("[]")
	default:
		p.str("{}")
	}
}

// lines splits a text, without blank lines at its ends.
func lines(v cty.Value) []string {
	if v == cty.NilVal {
		return nil
	}
	return strings.Split(strings.TrimSpace(v.AsString()), "\n")
}

// text writes a string with several lines.
func (p *printer) text(n *node, indent int, f flags) {
	p.str("<<-EOT")
	p.forces(n, f)
	p.str("\n")
	line := func(o op, s string) {
		p.indent(indent + 1)
		p.symbol(o, f)
		p.str(wrap.Visible(s), "\n")
	}
	switch n.op {
	case create, same:
		for _, s := range lines(n.after) {
			line(same, s)
		}
	case remove:
		for _, s := range lines(n.before) {
			line(same, s)
		}
	default:
		b, a := lines(n.before), lines(n.after)
		ids := make(map[string]int, len(b)+len(a))
		never := func(int, int) bool { return false }
		align(numbers(ids, b), numbers(ids, a), never, func(i, j int) {
			switch {
			case j < 0:
				line(remove, b[i])
			case i < 0:
				line(create, a[j])
			default:
				line(same, a[j])
			}
		})
	}
	p.indent(indent)
	p.symbol(same, f)
	p.str("EOT")
	p.null(n, f)
}

func numbers(ids map[string]int, lines []string) []int {
	out := make([]int, len(lines))
	for i, s := range lines {
		id, ok := ids[s]
		if !ok {
			id = len(ids)
			ids[s] = id
		}
		out[i] = id
	}
	return out
}

// encoded writes a string that contains JSON.
func (p *printer) encoded(n *node, indent int, f flags) {
	inner := flags{all: f.all, plain: f.plain, noNull: true}
	spaces := n.op == update && n.inner.op == same
	if spaces {
		inner.all = true
	}
	p.str("jsonencode(")
	if n.inner.flat() {
		p.node(n.inner, indent, inner)
		p.str(")")
		p.null(n, f)
		p.spaces(n, f, spaces)
		return
	}
	if spaces {
		p.spaces(n, f, true)
	}
	p.str("\n")
	p.indent(indent + 1)
	if n.inner.op == update {
		p.symbol(update, f)
	} else {
		p.symbol(same, f)
	}
	p.node(n.inner, indent+1, inner)
	if !spaces {
		p.forces(n, f)
	}
	p.str("\n")
	p.indent(indent)
	p.symbol(same, f)
	p.str(")")
	p.null(n, f)
}

func (p *printer) spaces(n *node, f flags, only bool) {
	switch {
	case only && (n.forces || f.forces):
		p.dressed(red, " # whitespace changes force replacement")
	case only:
		p.str(" # whitespace changes")
	default:
		p.forces(n, f)
	}
}

// flat reports whether a node is written on one line.
func (n *node) flat() bool {
	switch n.kind {
	case object, mapping, sequence:
		return len(n.children) == 0
	case converted:
		return n.inner.flat() && n.other.flat()
	case text, blockBody, encoded:
		return false
	case unknown:
		return n.inner == nil || n.inner.flat()
	}
	return true
}

func (p *printer) unknown(n *node, indent int, f flags) {
	if n.inner != nil {
		p.node(n.inner, indent, flags{noNull: true})
		p.arrow()
	}
	p.str("(known after apply)")
	p.forces(n, f)
}

// hidden writes the number of parts that are not shown.
func (p *printer) hidden(n int, what string, indent int, f flags) {
	if n == 0 {
		return
	}
	p.indent(indent + 1)
	p.symbol(same, f)
	if n > 1 {
		what += "s"
	}
	p.dressed(gray, "# ("+strconv.Itoa(n)+" unchanged "+what+" hidden)")
	p.str("\n")
}
