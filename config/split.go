package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// Splitting a body into a kind's own arguments and blocks and the rest is the most frequent
// operation of loading after parsing. Native bodies without unexpected content are split here.
// All others, and thus all errors, are left to the HCL library.

// cut is the result of splitting a body.
type cut struct {
	args   []*Setting // Replaced is not set yet
	blocks []typedPart
	rest   hcl.Body // without the kind's own names; nil unless the kind is open
}

// settingAttr is a setting with its attribute in one allocation.
type settingAttr struct {
	s Setting
	a hcl.Attribute
}

func newSetting(b *hclnative.Body, a *hclnative.Attr, layer *source.Layer) *Setting {
	m := &settingAttr{a: *b.Attribute(a)}
	m.s = Setting{Attribute: &m.a, Layer: layer}
	return &m.s
}

// split splits the body of a part.
func (k *kind) split(p part) (cut, hcl.Diagnostics) {
	b, scanned := p.body.(*hclnative.Body)
	if scanned && k.expects(b) {
		return k.splitNative(b, p.layer), nil
	}
	var out cut
	var got *hcl.BodyContent
	var diags hcl.Diagnostics
	if k.open {
		got, out.rest, diags = p.body.PartialContent(&k.schema)
	} else {
		got, diags = p.body.Content(&k.schema)
	}
	if k.open {
		if scanned {
			out.rest = k.withoutOwn(b)
		} else if b, ok := p.body.(*hclsyntax.Body); ok {
			out.rest = k.withoutOwnSyntax(b) // the same body with no names marked as hidden
		}
	}
	for _, a := range got.Attributes {
		out.args = append(out.args, &Setting{Attribute: a, Layer: p.layer})
	}
	out.blocks = partsOf(got.Blocks, p.layer)
	return out, diags
}

func partsOf(blocks hcl.Blocks, layer *source.Layer) []typedPart {
	out := make([]typedPart, len(blocks))
	for i, b := range blocks {
		out[i] = typedPart{b.Type, part{body: b.Body, layer: layer, head: b.DefRange, labels: b.Labels}}
	}
	return out
}

func nativePart(b *hclnative.Block, layer *source.Layer) typedPart {
	return typedPart{b.Type, part{body: b.Body, layer: layer, head: b.DefRange(), labels: b.Labels}}
}

// expects reports whether the body contains only what the kind allows.
func (k *kind) expects(b *hclnative.Body) bool {
	if !k.open {
		for i := range b.Attrs {
			if _, own := k.attrs[b.Attrs[i].Name]; !own {
				return false
			}
		}
	}
	for _, block := range b.Blocks {
		r, own := k.blocks[block.Type]
		if own && len(r.labels) != len(block.Labels) || !own && !k.open {
			return false
		}
	}
	return true
}

func (k *kind) splitNative(b *hclnative.Body, layer *source.Layer) cut {
	var out cut
	for i := range b.Attrs {
		if _, own := k.attrs[b.Attrs[i].Name]; own {
			out.args = append(out.args, newSetting(b, &b.Attrs[i], layer))
		}
	}
	for _, block := range b.Blocks {
		if _, own := k.blocks[block.Type]; own {
			out.blocks = append(out.blocks, nativePart(block, layer))
		}
	}
	switch {
	case !k.open:
	case len(out.args) == 0 && len(out.blocks) == 0:
		out.rest = b
	default:
		out.rest = k.withoutOwn(b)
	}
	return out
}

// withoutOwn returns a native body without the kind's own names.
func (k *kind) withoutOwn(b *hclnative.Body) *hclnative.Body {
	return b.Only(
		func(name string) bool { _, own := k.attrs[name]; return !own },
		func(block *hclnative.Block) bool { _, own := k.blocks[block.Type]; return !own })
}

func (k *kind) withoutOwnSyntax(b *hclsyntax.Body) *hclsyntax.Body {
	out := &hclsyntax.Body{SrcRange: b.SrcRange, EndRange: b.EndRange, Attributes: hclsyntax.Attributes{}}
	for name, a := range b.Attributes {
		if _, own := k.attrs[name]; !own {
			out.Attributes[name] = a
		}
	}
	for _, block := range b.Blocks {
		if _, own := k.blocks[block.Type]; !own {
			out.Blocks = append(out.Blocks, block)
		}
	}
	return out
}

// topBlocks splits a file of the kind top into its blocks.
func topBlocks(body hcl.Body, layer *source.Layer) ([]typedPart, hcl.Diagnostics) {
	b, scanned := body.(*hclnative.Body)
	if !scanned || !atTop().expects(b) {
		content, diags := body.Content(&atTop().schema)
		return partsOf(content.Blocks, layer), diags
	}
	out := make([]typedPart, len(b.Blocks))
	for i, block := range b.Blocks {
		out[i] = nativePart(block, layer)
	}
	return out, nil
}
