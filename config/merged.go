package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// merged is the body of a block that was merged from several parts. The caller decodes it with a
// schema. Nested blocks are merged by the rules of the kind; see rules.go.
type merged struct {
	kind  *kind
	parts []part // base first, at least one
}

var _ hcl.Body = (*merged)(nil)

// Content decodes the merged block. Names that are not in the schema are errors.
func (b *merged) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	c, ds := b.kind.merge(b.parts)
	out, left := b.known(c, schema)
	diags := toHCL(ds)
	if c.rest != nil {
		more, ds := c.rest.Content(left)
		diags = append(diags, addContent(out, more)...)
		diags = append(diags, ds...)
	}
	return out, append(diags, b.unexpected(c, schema)...)
}

// PartialContent decodes the names in the schema. The rest is the same block: if the same names
// are decoded again, the result contains them again.
func (b *merged) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	c, ds := b.kind.merge(b.parts)
	out, left := b.known(c, schema)
	diags := toHCL(ds)
	rest := hcl.EmptyBody()
	if c.rest != nil {
		more, remain, ds := c.rest.PartialContent(left)
		diags = append(diags, addContent(out, more)...)
		diags = append(diags, ds...)
		rest = remain
	}
	return out, rest, diags
}

// JustAttributes returns every argument, and errors for blocks.
func (b *merged) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	c, ds := b.kind.merge(b.parts)
	diags := toHCL(ds)
	out := hcl.Attributes{}
	if c.rest != nil {
		attrs, ds := c.rest.JustAttributes()
		out, diags = attrs, append(diags, ds...)
	}
	for name, s := range c.args {
		out[name] = s.Attribute
	}
	for _, set := range c.nested {
		typ, bs := set.typ, set.list
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "Unexpected " + quote(typ) + " block",
			Detail:   "Blocks are not allowed here.",
			Subject:  bs[0][0].head.Ptr(),
		})
	}
	return out, diags
}

// MissingItemRange returns the range of the base block for missing items.
func (b *merged) MissingItemRange() source.Range { return b.parts[0].body.MissingItemRange() }

// known decodes the names that the block's kind defines. left is the part of the schema that the
// kind does not define.
func (b *merged) known(c *content, schema *hcl.BodySchema) (*hcl.BodyContent, *hcl.BodySchema) {
	out := &hcl.BodyContent{Attributes: hcl.Attributes{}, MissingItemRange: b.MissingItemRange()}
	left := &hcl.BodySchema{}
	for _, a := range schema.Attributes {
		if _, ours := b.kind.attrs[a.Name]; !ours {
			left.Attributes = append(left.Attributes, a)
		} else if s := c.args[a.Name]; s != nil {
			out.Attributes[a.Name] = s.Attribute
		}
	}
	for _, h := range schema.Blocks {
		r, ours := b.kind.blocks[h.Type]
		if !ours {
			left.Blocks = append(left.Blocks, h)
			continue
		}
		for _, parts := range c.blocks(h.Type) {
			block := &hcl.Block{Type: h.Type, Labels: parts[0].labels, Body: parts[0].body, DefRange: parts[0].head, TypeRange: parts[0].head}
			if r.inner != nil {
				block.Body = &merged{r.inner, parts}
			}
			out.Blocks = append(out.Blocks, block)
		}
	}
	return out, left
}

// unexpected returns errors for names that the kind defines but the schema does not, and for
// missing required arguments of the kind.
func (b *merged) unexpected(c *content, schema *hcl.BodySchema) (diags hcl.Diagnostics) {
	attrs, blocks := map[string]bool{}, map[string]bool{}
	for _, a := range schema.Attributes {
		attrs[a.Name] = true
		if a.Required && b.kind.attrs[a.Name] == replaces && c.args[a.Name] == nil {
			if _, ours := b.kind.attrs[a.Name]; ours {
				diags = append(diags, toHCL(errorAt("", c.at, "Missing required argument", "The argument %q is required, but no definition was found.", a.Name))...)
			}
		}
	}
	for _, h := range schema.Blocks {
		blocks[h.Type] = true
	}
	for name, s := range c.args {
		if !attrs[name] {
			diags = append(diags, toHCL(errorAt("", s.NameRange, "Unsupported argument", "An argument named %q is not expected here.", name))...)
		}
	}
	for _, set := range c.nested {
		typ, bs := set.typ, set.list
		if !blocks[typ] {
			diags = append(diags, toHCL(errorAt("", bs[0][0].head, "Unsupported block type", "Blocks of type %q are not expected here.", typ))...)
		}
	}
	return diags
}

// toHCL converts messages to those of the HCL library, for callers that decode a body.
func toHCL(ds diag.List) hcl.Diagnostics {
	out := make(hcl.Diagnostics, 0, len(ds))
	for _, m := range ds {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: m.Summary, Detail: m.Detail, Subject: m.At, Context: m.Context}
		if m.Severity == diag.Warning {
			d.Severity = hcl.DiagWarning
		}
		out = append(out, d)
	}
	return out
}
