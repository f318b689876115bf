package planjson

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A dynamic block is written like one static block with the arguments of its content, plus a
// member "for_each". An argument that is written as blocks is one expression, because its type
// is a list or set: its references are those in all of its blocks.

// nested is a static or dynamic block.
type nested struct {
	label    string // of a block that is nested as a map; "*" if it is not constant
	body     hcl.Body
	forEach  hcl.Expression // of a dynamic block; otherwise nil
	iterator string
}

// iterator is the iterator of a dynamic block whose content is being written.
type iterator struct {
	name       string
	references []string // in for_each
}

var dynamicSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "iterator"}, {Name: "labels"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "content"}},
}

// nestedByType returns the blocks of each type in their order. It skips dynamic blocks with
// errors, which planning reported.
func nestedByType(blocks hcl.Blocks) map[string][]nested {
	var out map[string][]nested
	for _, b := range blocks {
		name, n := b.Type, nested{body: b.Body}
		if len(b.Labels) > 0 {
			n.label = b.Labels[0]
		}
		if b.Type == "dynamic" && len(b.Labels) > 0 {
			name = b.Labels[0]
			content, _, _ := b.Body.PartialContent(dynamicSchema)
			if content == nil || len(content.Blocks) == 0 || content.Attributes["for_each"] == nil {
				continue
			}
			n = nested{body: content.Blocks[0].Body, forEach: content.Attributes["for_each"].Expr, iterator: name, label: "*"}
			if a := content.Attributes["iterator"]; a != nil {
				n.iterator = hcl.ExprAsKeyword(a.Expr)
			}
			if a := content.Attributes["labels"]; a != nil {
				n.label = constantLabel(a.Expr)
			}
		}
		if out == nil {
			out = make(map[string][]nested)
		}
		out[name] = append(out[name], n)
	}
	return out
}

func constantLabel(x hcl.Expression) string {
	if list, diags := hcl.ExprList(x); !diags.HasErrors() && len(list) == 1 {
		if v, diags := list[0].Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			return v.AsString()
		}
	}
	return "*"
}

func (c *configWriter) iterator(name string) *iterator {
	for i := len(c.iterators) - 1; i >= 0; i-- {
		if c.iterators[i].name == name {
			return &c.iterators[i]
		}
	}
	return nil
}

// inside calls f with the iterator of a dynamic block in scope.
func (c *configWriter) inside(n nested, f func()) {
	if n.forEach == nil {
		f()
		return
	}
	c.iterators = append(c.iterators, iterator{n.iterator, c.referencesIn(n.forEach)})
	f()
	c.iterators = c.iterators[:len(c.iterators)-1]
}

func (c *configWriter) referencesIn(x hcl.Expression) []string {
	return append(c.allReferences(x.Variables()), providerFunctions(x)...)
}

// nested writes one block.
func (c *configWriter) nested(n nested, b *schema.Block) {
	c.inside(n, func() { c.block(n.body, b) })
	if n.forEach == nil || b.Attributes["for_each"] != nil || b.Blocks["for_each"] != nil {
		return
	}
	c.b = c.b[:len(c.b)-1] // the brace that ends the object
	c.comma = c.b[len(c.b)-1] != '{'
	c.name("for_each")
	c.expression(n.forEach)
	c.end('}')
}

// writtenAsBlocks writes the expression of an argument that is written as blocks.
func (c *configWriter) writtenAsBlocks(list []nested, nb *schema.NestedBlock) {
	c.begin('{')
	if v, ok := constantBlocks(list, nb); ok {
		c.name("constant_value")
		c.value(v)
	}
	var refs []string
	for _, n := range list {
		refs = append(refs, c.blockReferences(n, nb.Block)...)
	}
	if len(refs) > 0 {
		c.strs("references", refs)
	}
	c.end('}')
}

// blockReferences returns the references in a block, in the order of the text.
func (c *configWriter) blockReferences(n nested, b *schema.Block) (refs []string) {
	content, _, _ := n.body.PartialContent(b.Reading().HCL)
	if n.forEach != nil {
		refs = c.referencesIn(n.forEach)
	}
	if content == nil {
		return refs
	}
	c.inside(n, func() {
		attrs := make([]*hcl.Attribute, 0, len(content.Attributes))
		for _, a := range content.Attributes {
			attrs = append(attrs, a)
		}
		slices.SortFunc(attrs, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
		for _, a := range attrs {
			refs = append(refs, c.referencesIn(a.Expr)...)
		}
		byType := nestedByType(content.Blocks)
		for _, name := range keys(byType) {
			if nb := b.Reading().AsBlocks[name]; nb != nil {
				for _, inner := range byType[name] {
					refs = append(refs, c.blockReferences(inner, nb.Block)...)
				}
			}
		}
	})
	return refs
}

// constantBlocks returns the value of an argument that is written as static blocks, if all of
// their expressions are constant.
func constantBlocks(list []nested, nb *schema.NestedBlock) (cty.Value, bool) {
	vals := make([]cty.Value, len(list))
	for i, n := range list {
		if n.forEach != nil {
			return cty.NilVal, false
		}
		body, ds := lang.CompileBody(n.body, nb.Block)
		constant := !ds.HasErrors() && !body.Dynamic()
		if constant {
			body.Exprs(func(x *lang.Expr) { constant = constant && x.Constant() })
		}
		if !constant {
			return cty.NilVal, false
		}
		if vals[i], ds = body.Eval(nil, nil); ds.HasErrors() || !vals[i].IsWhollyKnown() || vals[i].ContainsMarked() {
			return cty.NilVal, false
		}
	}
	if nb.Nesting == schema.Set {
		return cty.SetVal(vals), true
	}
	return cty.ListVal(vals), true
}
