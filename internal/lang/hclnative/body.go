package hclnative

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Body has the results of hclsyntax.Body and builds only the requested expressions.
// hclsyntax produces the error messages.
var _ hcl.Body = (*Body)(nil)

// Content builds the arguments and blocks of a schema. Any other content is an error.
func (b *Body) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	if !b.fits(schema, true) {
		return b.Syntax().Content(schema)
	}
	return b.content(schema, (*Body).asHCL), nil
}

// PartialContent builds the arguments and blocks of a schema and returns the rest as a body.
func (b *Body) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	if !b.fits(schema, false) {
		return b.Syntax().PartialContent(schema)
	}
	rest := b.Only(
		func(name string) bool { return !wantsAttr(schema, name) },
		func(block *Block) bool { return wantsBlock(schema, block.Type) == nil })
	return b.content(schema, (*Body).asHCL), rest, nil
}

// JustAttributes builds every argument. A block is an error.
func (b *Body) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	if len(b.Blocks) > 0 {
		return b.Syntax().JustAttributes()
	}
	out := make(hcl.Attributes, len(b.Attrs))
	for i := range b.Attrs {
		out[b.Attrs[i].Name] = b.asHCL(&b.Attrs[i])
	}
	return out, nil
}

// MissingItemRange returns the start of the body.
func (b *Body) MissingItemRange() hcl.Range {
	return b.in.rng(b.start, b.start)
}

// Only returns the body with only the arguments and blocks for which the functions return true.
func (b *Body) Only(attr func(name string) bool, block func(*Block) bool) *Body {
	out := *b
	out.Attrs = keep(b.Attrs, func(a *Attr) bool { return attr(a.Name) })
	out.Blocks = keep(b.Blocks, func(in **Block) bool { return block(*in) })
	return &out
}

// keep returns the elements for which want is true. If all are, it returns all itself,
// without copying.
func keep[T any](all []T, want func(*T) bool) []T {
	n := 0
	for i := range all {
		if want(&all[i]) {
			n++
		}
	}
	if n == len(all) {
		return all
	}
	out := make([]T, 0, n)
	for i := range all {
		if want(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

func wantsAttr(schema *hcl.BodySchema, name string) bool {
	return slices.ContainsFunc(schema.Attributes, func(a hcl.AttributeSchema) bool { return a.Name == name })
}

func wantsBlock(schema *hcl.BodySchema, typ string) *hcl.BlockHeaderSchema {
	for i := range schema.Blocks {
		if schema.Blocks[i].Type == typ {
			return &schema.Blocks[i]
		}
	}
	return nil
}

// Lookup returns the argument called name, or nil.
func (b *Body) Lookup(name string) *Attr {
	for i := range b.Attrs {
		if b.Attrs[i].Name == name {
			return &b.Attrs[i]
		}
	}
	return nil
}

// fits reports whether a body has everything that a schema requires, with the required
// number of labels. With nothingElse, the body must contain nothing else.
func (b *Body) fits(schema *hcl.BodySchema, nothingElse bool) bool {
	for i := range schema.Attributes {
		if a := &schema.Attributes[i]; a.Required && b.Lookup(a.Name) == nil {
			return false
		}
	}
	if nothingElse {
		for i := range b.Attrs {
			if !wantsAttr(schema, b.Attrs[i].Name) {
				return false
			}
		}
	}
	for _, block := range b.Blocks {
		h := wantsBlock(schema, block.Type)
		if h == nil && nothingElse || h != nil && len(h.LabelNames) != len(block.Labels) {
			return false
		}
	}
	return true
}

func (b *Body) content(schema *hcl.BodySchema, attr func(*Body, *Attr) *hcl.Attribute) *hcl.BodyContent {
	out := &hcl.BodyContent{Attributes: make(hcl.Attributes, len(b.Attrs)), MissingItemRange: b.MissingItemRange()}
	for i := range b.Attrs {
		if a := &b.Attrs[i]; wantsAttr(schema, a.Name) {
			out.Attributes[a.Name] = attr(b, a)
		}
	}
	for _, block := range b.Blocks {
		if wantsBlock(schema, block.Type) != nil {
			out.Blocks = append(out.Blocks, block.asHCL())
		}
	}
	return out
}

// Attribute builds an argument of the body as an hcl.Attribute.
func (b *Body) Attribute(a *Attr) *hcl.Attribute { return b.asHCL(a) }

// Expr builds the expression of an argument of the body.
func (b *Body) Expr(a *Attr) hclsyntax.Expression { return b.attribute(a).Expr }

// Text returns the source text of an argument's expression.
func (b *Body) Text(a *Attr) string {
	var p parser
	p.from(b.in, a.start)
	p.next()
	p.next()
	return p.src[p.tok.off:b.in.mark(a.end).off]
}

// AttrRange returns the range of an argument.
func (b *Body) AttrRange(a *Attr) hcl.Range {
	return b.in.rng(a.start, a.end)
}

func (b *Block) asHCL() *hcl.Block {
	typ, labels, _ := b.header()
	return &hcl.Block{Type: b.Type, Labels: b.Labels, Body: b.Body, DefRange: defRange(typ, labels), TypeRange: typ, LabelRanges: labels}
}

// Head returns the text from the type of the block to its opening brace.
func (b *Block) Head() string {
	in := b.Body.in
	return in.file.text[b.start.off+in.off : b.Body.start.off+in.off]
}

// DefRange returns the range of the type and the labels.
func (b *Block) DefRange() hcl.Range {
	typ, labels, _ := b.header()
	return defRange(typ, labels)
}

func defRange(typ hcl.Range, labels []hcl.Range) hcl.Range {
	if n := len(labels); n > 0 {
		return hcl.RangeBetween(typ, labels[n-1])
	}
	return typ
}

// LabelRanges returns the range of each label.
func (b *Block) LabelRanges() []hcl.Range {
	_, labels, _ := b.header()
	return labels
}

// header returns the ranges of the type, the labels and the opening brace.
func (b *Block) header() (typ hcl.Range, labels []hcl.Range, brace hcl.Range) {
	var p parser
	p.from(b.Body.in, b.start)
	typ = p.tokRange()
	p.next()
	_, labels, _ = p.labels()
	return typ, labels, p.tokRange()
}
