package hclnative

import (
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// place is a mark in little memory.
type place struct{ off, line, bol int32 }

func (m mark) place() place { return place{int32(m.off), int32(m.line), int32(m.bol)} }

func (p place) mark() mark { return mark{int(p.off), int(p.line), int(p.bol)} }

// A File is a text that was found to be HCL, cut into blocks and attributes.
type File struct {
	Name string
	Body *Body // of the file itself

	text string
}

// A Body is what a file or a block holds, in the order of the text. It is never changed.
type Body struct {
	Attrs  []Attr
	Blocks []*Block

	file       *File
	start, end place
	inline     bool // the one argument of a block on one line
}

// An Attr is an argument. Its expression is built whenever it is asked for.
type Attr struct {
	Name  string
	start place
	end   place // of the expression
}

// A Block is a block with its labels.
type Block struct {
	Type   string
	Labels []string
	Body   *Body

	start place
}

// bodies is where a parser notes what it finds: stacks, since bodies nest.
type bodies struct {
	file   *File
	attrs  []Attr
	blocks []*Block
}

// Scan cuts a text into blocks and attributes and checks the syntax of all of it. It
// reports false for what hclsyntax does not accept, without saying why, and for what nests
// without reason. The text must not change afterwards: names are slices of it.
func Scan(src []byte, name string) (*File, bool) { return scanText(src, name, nil) }

func scanText(src []byte, name string, rec *[]lexeme) (*File, bool) {
	if len(src) >= math.MaxInt32 {
		return nil, false
	}
	f := &File{Name: name, text: unsafe.String(unsafe.SliceData(src), len(src))}
	p := parser{name: name, lines: true, body: &bodies{file: f}}
	p.src, p.line, p.rec = f.text, 1, rec
	if strings.HasPrefix(f.text, bom) {
		p.off, p.bol = 3, 3
	}
	p.scan()
	f.Body = p.items(p.tok.mark, kEOF)
	return f, f.Body != nil
}

// items reads a body that begins at start up to the token that ends it.
func (p *parser) items(start mark, end kind) *Body {
	if p.depth++; p.depth > maxDepth {
		return nil
	}
	b := &Body{file: p.body.file, start: start.place()}
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

// nameSet tells whether a name was there before: by a look at all of them while they are
// few, and by a table from then on.
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

// attr reads an argument whose name was read.
func (p *parser) attr(name string, at mark) bool {
	p.next()
	if _, ok := p.expression(); !ok {
		return false
	}
	p.body.attrs = append(p.body.attrs, Attr{Name: name, start: at.place(), end: p.prev.place()})
	return true
}

// block reads a block whose type was read.
func (p *parser) block(name string, at mark) bool {
	b := &Block{Type: name, start: at.place()}
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
	p.body.blocks = append(p.body.blocks, b)
	return b.Body != nil
}

// inline reads the one argument of a block on one line, and the end of the block.
func (p *parser) inline() *Body {
	b := &Body{file: p.body.file, start: p.tok.place(), inline: true}
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

// labels reads the labels of a block up to its brace. The ranges are those of the labels,
// while building.
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

// from makes p a parser that builds, before the token that begins at a place.
func (p *parser) from(f *File, start place) {
	*p = parser{name: f.Name, lines: true, build: true}
	p.src, p.mark = f.text, start.mark()
	p.scan()
}

// attribute builds an argument.
func (b *Body) attribute(a *Attr) *hclsyntax.Attribute {
	var p parser
	p.from(b.file, a.start)
	out := &hclsyntax.Attribute{Name: a.Name, NameRange: p.tokRange()}
	p.next()
	out.EqualsRange = p.tokRange()
	p.next()
	out.Expr, _ = p.expression()
	out.SrcRange = hcl.Range{Filename: b.file.Name, Start: out.NameRange.Start, End: a.end.mark().pos()}
	return out
}

// Range is the stretch of a body, with its braces.
func (b *Body) Range() hcl.Range {
	return hcl.Range{Filename: b.file.Name, Start: b.start.mark().pos(), End: b.end.mark().pos()}
}

// Syntax builds the body as hclsyntax makes it, with every expression in it.
func (b *Body) Syntax() *hclsyntax.Body {
	out := &hclsyntax.Body{SrcRange: b.Range(), Attributes: make(hclsyntax.Attributes, len(b.Attrs))}
	out.EndRange = hcl.Range{Filename: b.file.Name, Start: out.SrcRange.End, End: out.SrcRange.End}
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

// Syntax builds the block as hclsyntax makes it, with every expression in it.
func (b *Block) Syntax() *hclsyntax.Block {
	out := &hclsyntax.Block{Type: b.Type, Labels: b.Labels, Body: b.Body.Syntax()}
	out.TypeRange, out.LabelRanges, out.OpenBraceRange = b.header()
	if !b.Body.inline {
		end := out.Body.SrcRange.End
		start := end
		start.Byte--
		start.Column--
		out.CloseBraceRange = hcl.Range{Filename: b.Body.file.Name, Start: start, End: end}
		return out
	}
	var p parser
	p.from(b.Body.file, b.Body.end)
	out.CloseBraceRange = p.tokRange()
	return out
}

// ParseConfig is hclsyntax.ParseConfig for a whole file, faster: it yields the same body and
// the same messages. The text must not change afterwards.
func ParseConfig(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	f, ok := Scan(src, name)
	if !ok {
		return hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	}
	return &hcl.File{Body: f.Body.Syntax(), Bytes: src}, nil
}

// Parse reads a file into a body that builds expressions when they are asked for. A file
// with mistakes is what hclsyntax makes of it, with its messages.
func Parse(src []byte, name string) (hcl.Body, hcl.Diagnostics) {
	if f, ok := Scan(src, name); ok {
		return f.Body, nil
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	return f.Body, diags
}
