package hclnative

import (
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// place is a compact mark.
type place struct{ off, line, bol int32 }

func (m mark) place() place { return place{int32(m.off), int32(m.line), int32(m.bol)} }

func (p place) moved(off, line int32) place {
	return place{p.off + off, p.line + line, p.bol + off}
}

// File is a text with valid syntax, split into blocks and attributes. Only Update changes it.
type File struct {
	Name string
	Body *Body // the top-level body

	text   string
	shared shared
}

// stretch is the base of positions: the file, or a top-level block with its content, which
// moves as a whole if the text before it changes.
type stretch struct {
	file      *File
	off, line int32 // the distance it has moved since it was parsed
}

func (s *stretch) mark(p place) mark {
	return mark{int(p.off + s.off), int(p.line + s.line), int(p.bol + s.off)}
}

func (s *stretch) pos(p place) hcl.Pos { return s.mark(p).pos() }

func (s *stretch) rng(from, to place) hcl.Range {
	return hcl.Range{Filename: s.file.Name, Start: s.pos(from), End: s.pos(to)}
}

// Body is the content of a file or a block, in source order.
type Body struct {
	Attrs  []Attr
	Blocks []*Block

	in         *stretch
	start, end place
	inline     bool // the body of a block on one line, with one argument
}

// Attr is an argument. Its expression is built on each request.
type Attr struct {
	Name  string
	start place
	end   place // the end of the expression
}

// Block is a block with its labels.
type Block struct {
	Type   string
	Labels []string
	Body   *Body

	start place
}

// bodies collects blocks and attributes on stacks, because bodies nest.
type bodies struct {
	file   *File
	in     *stretch // the stretch being parsed
	attrs  []Attr
	blocks []*Block
}

// Scan splits a text into blocks and attributes and checks its syntax. ok is false, without
// a reason, if hclsyntax refuses the text or if it nests too deeply. The text must not
// change afterwards: names are slices of it.
func Scan(src []byte, name string) (*File, bool) { return scanText(src, name, nil) }

func scanText(src []byte, name string, rec *[]lexeme) (*File, bool) {
	if len(src) >= math.MaxInt32 {
		return nil, false
	}
	f := &File{Name: name, text: unsafe.String(unsafe.SliceData(src), len(src))}
	p := newParser(f)
	p.src, p.mark, p.rec = f.text, firstMark(f.text), rec
	p.scan()
	f.Body = p.items(p.tok.mark, kEOF)
	return f, f.Body != nil
}

// newParser returns a parser for the bodies of a file.
func newParser(f *File) parser {
	return parser{name: f.Name, lines: true, body: &bodies{file: f, in: &stretch{file: f}}}
}

// firstMark returns the start of a text, after a byte order mark.
func firstMark(text string) mark {
	m := mark{line: 1}
	if strings.HasPrefix(text, bom) {
		m.off, m.bol = len(bom), len(bom)
	}
	return m
}

// items parses a body from start up to a token of the kind end.
func (p *parser) items(start mark, end kind) *Body {
	if p.depth++; p.depth > maxDepth {
		return nil
	}
	b := &Body{in: p.body.in, start: start.place()}
	attrs, blocks := len(p.body.attrs), len(p.body.blocks)
	var names nameSet
	for {
		k := p.peek()
		if k == end {
			break
		}
		if k == kNewline {
			p.scan()
			continue
		}
		if k != kIdent {
			return nil
		}
		name, at := p.text(), p.tok.mark
		p.next()
		if p.peek() == kEqual {
			if !names.add(name, p.body.attrs[attrs:]) || !p.attr(name, at) {
				return nil
			}
		} else if !p.block(name, at) {
			return nil
		}
		if k := p.peek(); k != kNewline && k != kEOF {
			return nil
		}
	}
	p.next()
	p.depth--
	b.end = p.prev.place()
	b.Attrs = slices.Clone(p.body.attrs[attrs:])
	b.Blocks = slices.Clone(p.body.blocks[blocks:])
	p.body.attrs, p.body.blocks = p.body.attrs[:attrs], p.body.blocks[:blocks]
	return b
}

// nameSet detects duplicate names: with a linear search while they are few, then with a map.
type nameSet struct{ table map[string]bool }

func (n *nameSet) add(name string, before []Attr) bool {
	if n.table == nil {
		if len(before) < 16 {
			return !slices.ContainsFunc(before, func(a Attr) bool { return a.Name == name })
		}
		n.table = map[string]bool{}
		for i := range before {
			n.table[before[i].Name] = true
		}
	}
	had := n.table[name]
	n.table[name] = true
	return !had
}

// attr parses an argument after its name.
func (p *parser) attr(name string, at mark) bool {
	p.next()
	if _, ok := p.expression(); !ok {
		return false
	}
	p.body.attrs = append(p.body.attrs, Attr{Name: name, start: at.place(), end: p.prev.place()})
	return true
}

// block parses a block after its type.
func (p *parser) block(name string, at mark) bool {
	b := &Block{Type: name, start: at.place()}
	around := p.body.in
	if p.depth == 1 { // a top-level block
		p.body.in = &stretch{file: p.body.file}
	}
	var ok bool
	if b.Labels, _, ok = p.labels(); !ok {
		return false
	}
	open := p.tok.mark
	p.next()
	switch p.peek() {
	case kNewline, kEOF, kCBrace:
		b.Body = p.items(open, kCBrace)
	case kIdent:
		b.Body = p.inline()
	}
	p.body.in = around
	p.body.blocks = append(p.body.blocks, b)
	return b.Body != nil
}

// inline parses the single argument of a one-line block, and the end of the block.
func (p *parser) inline() *Body {
	b := &Body{in: p.body.in, start: p.tok.place(), inline: true}
	name, at := p.text(), p.tok.mark
	p.next()
	if p.peek() != kEqual || !p.attr(name, at) {
		return nil
	}
	n := len(p.body.attrs) - 1
	b.Attrs = slices.Clone(p.body.attrs[n:])
	p.body.attrs = p.body.attrs[:n]
	b.end = b.Attrs[0].end
	if !p.take(kCBrace) {
		return nil
	}
	return b
}

// labels parses the labels of a block up to its brace. at contains their ranges in building
// mode.
func (p *parser) labels() (labels []string, at []hcl.Range, ok bool) {
	for {
		start := p.tok.mark
		var label string
		switch p.peek() {
		case kOBrace:
			return labels, at, true
		case kIdent:
			label = p.text()
			p.next()
		case kQuote:
			for {
				from := p.off
				what, ok := p.piece(&template{})
				if !ok || what != pieceLiteral && what != pieceEnd {
					return nil, nil, false
				}
				if what == pieceEnd {
					break
				}
				label += unescape(p.src[from:p.off])
			}
			p.prev = p.mark
			p.scan()
		default:
			return nil, nil, false
		}
		labels = append(labels, label)
		if p.build {
			at = append(at, p.rng(start, p.prev))
		}
	}
}

// from sets p to building mode before the token at start.
func (p *parser) from(in *stretch, start place) {
	*p = parser{name: in.file.Name, lines: true, build: true}
	p.src, p.mark = in.file.text, in.mark(start)
	p.scan()
}

// attribute builds an argument as an hclsyntax.Attribute.
func (b *Body) attribute(a *Attr) *hclsyntax.Attribute {
	var p parser
	p.from(b.in, a.start)
	out := &hclsyntax.Attribute{Name: a.Name, NameRange: p.tokRange()}
	p.next()
	out.EqualsRange = p.tokRange()
	p.next()
	out.Expr, _ = p.expression()
	out.SrcRange = b.in.rng(a.start, a.end)
	return out
}

// asHCL builds an argument as an hcl.Attribute.
func (b *Body) asHCL(a *Attr) *hcl.Attribute {
	var p parser
	p.from(b.in, a.start)
	out := &hcl.Attribute{Name: a.Name, NameRange: p.tokRange(), Range: b.in.rng(a.start, a.end)}
	p.next()
	p.next()
	out.Expr, _ = p.expression()
	return out
}

// Range returns the range of a body, including its braces.
func (b *Body) Range() hcl.Range {
	return b.in.rng(b.start, b.end)
}

// Syntax builds the body as hclsyntax does, with every expression.
func (b *Body) Syntax() *hclsyntax.Body {
	out := &hclsyntax.Body{SrcRange: b.Range(), Attributes: make(hclsyntax.Attributes, len(b.Attrs))}
	out.EndRange = b.in.rng(b.end, b.end)
	for i := range b.Attrs {
		out.Attributes[b.Attrs[i].Name] = b.attribute(&b.Attrs[i])
	}
	if !b.inline {
		out.Blocks = make(hclsyntax.Blocks, len(b.Blocks))
	}
	for i, block := range b.Blocks {
		out.Blocks[i] = block.Syntax()
	}
	return out
}

// Syntax builds the block as hclsyntax does, with every expression.
func (b *Block) Syntax() *hclsyntax.Block {
	out := &hclsyntax.Block{Type: b.Type, Labels: b.Labels, Body: b.Body.Syntax()}
	out.TypeRange, out.LabelRanges, out.OpenBraceRange = b.header()
	if !b.Body.inline {
		end := out.Body.SrcRange.End
		start := end
		start.Byte--
		start.Column--
		out.CloseBraceRange = hcl.Range{Filename: b.Body.in.file.Name, Start: start, End: end}
		return out
	}
	var p parser
	p.from(b.Body.in, b.Body.end)
	out.CloseBraceRange = p.tokRange()
	return out
}

// ParseConfig is a faster hclsyntax.ParseConfig for a whole file, with the same body and the
// same messages. The text must not change afterwards.
func ParseConfig(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	f, ok := Scan(src, name)
	if !ok {
		return hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	}
	return &hcl.File{Body: f.Body.Syntax(), Bytes: src}, nil
}

// Parse parses a file to a body that builds expressions on request. For a file with errors,
// it returns hclsyntax's body and messages.
func Parse(src []byte, name string) (hcl.Body, hcl.Diagnostics) {
	if f, ok := Scan(src, name); ok {
		return f.Body, nil
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	return f.Body, diags
}
