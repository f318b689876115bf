package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// A Body contains the arguments of one block that a provider or a child module defines. They
// come from several places: the block in a base file, its _ block, and the blocks in override
// files.
//
// The bodies are merged without a schema: if a higher layer contains a name as an argument, a
// block, a dynamic block or a JSON property, it hides everything with that name in lower
// layers. The caller that decodes the Body supplies the schema and sees one body. Each layer
// keeps its original content, so that Setting can return what was replaced. A Body is immutable
// and safe for concurrent use.
type Body struct {
	layers []bodyLayer // base first
}

var _ hcl.Body = (*Body)(nil)

// bodyLayer is the content from one place.
type bodyLayer struct {
	body    hcl.Body // without the arguments and blocks that the language defines
	layer   *source.Layer
	escaped bool     // it is the _ block of the layer below
	open    hcl.Body // body without the names that higher layers hide
}

// newBody returns the merged layers, base first.
func newBody(layers []bodyLayer) *Body {
	hidden := map[string]bool{}
	for i := len(layers) - 1; i >= 0; {
		// A block and its _ block do not hide each other.
		low := i
		if layers[i].escaped {
			low--
		}
		for j := low; j <= i; j++ {
			layers[j].open = layers[j].without(hidden)
		}
		for j := low; j <= i && low > 0; j++ {
			layers[j].addNames(hidden)
		}
		i = low - 1
	}
	return &Body{layers}
}

// addNames adds the names in the layer.
func (l *bodyLayer) addNames(names map[string]bool) {
	switch b := l.body.(type) {
	case *hclnative.Body:
		for i := range b.Attrs {
			names[b.Attrs[i].Name] = true
		}
		for _, block := range b.Blocks {
			names[nativeName(block.Type, block.Labels)] = true
		}
		return
	case *hclsyntax.Body:
		for name := range b.Attributes {
			names[name] = true
		}
		for _, block := range b.Blocks {
			names[nativeName(block.Type, block.Labels)] = true
		}
		return
	}
	attrs, _ := l.body.JustAttributes()
	for name := range attrs {
		if name != "dynamic" {
			names[name] = true
		}
	}
	if attrs["dynamic"] != nil {
		for _, d := range jsonDynamics(l.body) {
			names[d.Labels[0]] = true
		}
	}
}

// without returns the layer's body without the hidden names.
func (l *bodyLayer) without(hidden map[string]bool) hcl.Body {
	if len(hidden) == 0 {
		return l.body
	}
	switch b := l.body.(type) {
	case *hclnative.Body:
		return b.Only(
			func(name string) bool { return !hidden[name] },
			func(block *hclnative.Block) bool { return !hidden[nativeName(block.Type, block.Labels)] })
	case *hclsyntax.Body:
		out := &hclsyntax.Body{SrcRange: b.SrcRange, EndRange: b.EndRange, Attributes: hclsyntax.Attributes{}}
		for name, attr := range b.Attributes {
			if !hidden[name] {
				out.Attributes[name] = attr
			}
		}
		for _, block := range b.Blocks {
			if !hidden[nativeName(block.Type, block.Labels)] {
				out.Blocks = append(out.Blocks, block)
			}
		}
		return out
	}
	return jsonWithout(l.body, hidden)
}

var dynamicSchema = hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "dynamic", LabelNames: []string{"type"}}}}

// jsonDynamics returns the dynamic blocks of a JSON body.
func jsonDynamics(body hcl.Body) hcl.Blocks {
	content, _, _ := body.PartialContent(&dynamicSchema)
	return content.Blocks
}

// jsonWithout hides names of a JSON body: the HCL library hides names that were decoded before.
func jsonWithout(body hcl.Body, hidden map[string]bool) hcl.Body {
	attrs, _ := body.JustAttributes()
	schema := &hcl.BodySchema{}
	for name := range attrs {
		if hidden[name] {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	var kept hcl.Blocks
	if attrs["dynamic"] != nil && !hidden["dynamic"] {
		all := jsonDynamics(body)
		kept = slices.DeleteFunc(slices.Clone(all), func(b *hcl.Block) bool { return hidden[b.Labels[0]] })
		if len(kept) < len(all) {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: "dynamic"})
		} else {
			kept = nil
		}
	}
	if len(schema.Attributes) > 0 {
		_, body, _ = body.PartialContent(schema)
	}
	if len(kept) > 0 {
		return &dynamicBody{body, kept}
	}
	return body
}

// dynamicBody is a JSON body without some of its dynamic blocks.
type dynamicBody struct {
	hcl.Body            // without dynamic blocks
	kept     hcl.Blocks // at least one
}

// Content implements hcl.Body.
func (b *dynamicBody) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := b.Body.Content(schema)
	if wantsDynamic(schema) {
		content.Blocks = append(content.Blocks, b.kept...)
		return content, diags
	}
	return content, append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "Extraneous JSON object property",
		Detail:   `No argument or block type is named "dynamic".`,
		Subject:  &b.kept[0].TypeRange,
	})
}

// PartialContent implements hcl.Body.
func (b *dynamicBody) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, remain, diags := b.Body.PartialContent(schema)
	if wantsDynamic(schema) {
		content.Blocks = append(content.Blocks, b.kept...)
		return content, remain, diags
	}
	return content, &dynamicBody{remain, b.kept}, diags
}

// JustAttributes implements hcl.Body.
func (b *dynamicBody) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	attrs, diags := b.Body.JustAttributes()
	return attrs, append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "Extraneous JSON object property",
		Detail:   `Blocks are not allowed here, and so "dynamic" cannot make any.`,
		Subject:  &b.kept[0].TypeRange,
	})
}

func wantsDynamic(schema *hcl.BodySchema) bool {
	return slices.ContainsFunc(schema.Blocks, func(b hcl.BlockHeaderSchema) bool {
		return b.Type == "dynamic" && len(b.LabelNames) == 1
	})
}

// Content decodes the merged body. Names that are not in the schema are errors.
func (b *Body) Content(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	return b.content(schema, hcl.Body.Content)
}

// LateContent is like Content, but expressions of native syntax are not built yet
// (hclnative.Late).
func (b *Body) LateContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	return b.content(schema, func(layer hcl.Body, schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
		if native, ok := layer.(*hclnative.Body); ok {
			return native.LateContent(schema)
		}
		return layer.Content(schema)
	})
}

func (b *Body) content(schema *hcl.BodySchema, of func(hcl.Body, *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics)) (*hcl.BodyContent, hcl.Diagnostics) {
	loose := withoutRequired(schema)
	if len(b.layers) == 1 {
		out, diags := of(b.layers[0].open, loose)
		out.MissingItemRange = b.MissingItemRange()
		return out, append(diags, b.missing(schema, out)...)
	}
	out := &hcl.BodyContent{Attributes: hcl.Attributes{}, MissingItemRange: b.MissingItemRange()}
	var diags hcl.Diagnostics
	for i := range b.layers {
		c, ds := of(b.layers[i].open, loose)
		diags = append(diags, ds...)
		diags = append(diags, addContent(out, c)...)
	}
	return out, append(diags, b.missing(schema, out)...)
}

// PartialContent decodes the names in the schema and returns the rest.
func (b *Body) PartialContent(schema *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	out := &hcl.BodyContent{Attributes: hcl.Attributes{}, MissingItemRange: b.MissingItemRange()}
	var diags hcl.Diagnostics
	loose := withoutRequired(schema)
	rest := &Body{slices.Clone(b.layers)}
	for i := range b.layers {
		c, remain, ds := b.layers[i].open.PartialContent(loose)
		diags = append(diags, ds...)
		diags = append(diags, addContent(out, c)...)
		rest.layers[i].open = remain
	}
	return out, rest, append(diags, b.missing(schema, out)...)
}

// JustAttributes returns every argument, and errors for blocks.
func (b *Body) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	out := hcl.Attributes{}
	var diags hcl.Diagnostics
	for i := range b.layers {
		attrs, ds := b.layers[i].open.JustAttributes()
		diags = append(diags, ds...)
		diags = append(diags, addAttributes(out, attrs)...)
	}
	return out, diags
}

// MissingItemRange returns the range of the base block for missing items.
func (b *Body) MissingItemRange() hcl.Range { return b.layers[0].body.MissingItemRange() }

func addContent(out, c *hcl.BodyContent) hcl.Diagnostics {
	out.Blocks = append(out.Blocks, c.Blocks...)
	return addAttributes(out.Attributes, c.Attributes)
}

// addAttributes adds the arguments of one layer. A duplicate can only come from a block and its
// _ block.
func addAttributes(out, more hcl.Attributes) (diags hcl.Diagnostics) {
	for name, a := range more {
		if have := out[name]; have != nil {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "Duplicate argument",
				Detail:   "The argument " + quote(name) + " was already set at " + have.NameRange.String() + ".",
				Subject:  a.NameRange.Ptr(),
			})
			continue
		}
		out[name] = a
	}
	return diags
}

// withoutRequired returns the schema with all arguments optional, since one layer may be
// incomplete.
func withoutRequired(schema *hcl.BodySchema) *hcl.BodySchema {
	if !slices.ContainsFunc(schema.Attributes, func(a hcl.AttributeSchema) bool { return a.Required }) {
		return schema
	}
	out := &hcl.BodySchema{Attributes: slices.Clone(schema.Attributes), Blocks: schema.Blocks}
	for i := range out.Attributes {
		out.Attributes[i].Required = false
	}
	return out
}

func (b *Body) missing(schema *hcl.BodySchema, c *hcl.BodyContent) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, a := range schema.Attributes {
		if a.Required && c.Attributes[a.Name] == nil {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "Missing required argument",
				Detail:   "The argument " + quote(a.Name) + " is required, but no definition was found.",
				Subject:  c.MissingItemRange.Ptr(),
			})
		}
	}
	return diags
}

// Setting returns an argument of the body with the settings that it replaced. It returns nil if
// no layer contains the argument. Blocks are ignored.
func (b *Body) Setting(name string) *Setting {
	schema := &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}}
	var s *Setting
	for i := range b.layers {
		l := &b.layers[i]
		c, _, _ := l.body.PartialContent(schema)
		if a := c.Attributes[name]; a != nil {
			s = &Setting{Attribute: a, Layer: l.layer, Replaced: s}
			continue
		}
		names := map[string]bool{}
		if l.addNames(names); names[name] {
			s = nil // a block replaced it
		}
	}
	return s
}

// Setting returns an argument of a body of this module with the settings that it replaced, or
// nil if the body does not contain the argument.
func (m *Module) Setting(body hcl.Body, name string) *Setting {
	if b, ok := body.(*Body); ok {
		return b.Setting(name)
	}
	if body == nil {
		return nil
	}
	c, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	a := c.Attributes[name]
	if a == nil {
		return nil
	}
	return &Setting{Attribute: a, Layer: m.Set.LayerOf(a.Range)}
}
