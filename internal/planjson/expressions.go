package planjson

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/relevantattrs"
	"github.com/terrace-iac/terrace/schema"
)

// An expression has "constant_value" if its value is known without anything else, and
// "references" if it refers to something, as false && var.x does besides its value.

func (c *configWriter) expression(x hcl.Expression) {
	c.begin('{')
	vars, called := x.Variables(), providerFunctions(x)
	_, native := x.(hclsyntax.Node) // a JSON string without a context is its own text
	if native || len(vars)+len(called) == 0 {
		if v, diags := x.Value(nil); !diags.HasErrors() && v.IsWhollyKnown() && !v.ContainsMarked() {
			c.name("constant_value")
			c.value(v)
		}
	}
	var refs []string
	for _, t := range vars {
		refs = append(refs, references(t)...)
	}
	refs = append(refs, called...)
	if len(refs) > 0 {
		c.strs("references", refs)
	}
	c.end('}')
}

// providerFunctions names the functions of providers that an expression calls, each
// as often as it does. JSON syntax keeps them in its texts.
func providerFunctions(x hcl.Expression) []string {
	n, ok := x.(hclsyntax.Node)
	if !ok {
		return nil
	}
	var out []string
	_ = hclsyntax.VisitAll(n, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && strings.HasPrefix(call.Name, "provider::") {
			out = append(out, call.Name)
		}
		return nil
	})
	return out
}

// expressionMember writes an expression as a member, unless nothing can be told of it.
func (c *configWriter) expressionMember(name string, x hcl.Expression) {
	before, comma := len(c.b), c.comma
	c.name(name)
	start := len(c.b)
	c.expression(x)
	if string(c.b[start:]) == "{}" {
		c.b, c.comma = c.b[:before], comma
	}
}

// references names what a traversal refers to: as far as it goes, then step by
// step less, down to the object; of an instance then its resource too.
func references(t hcl.Traversal) []string {
	subject, resource := relevantattrs.Subject(t)
	if subject == 0 {
		return nil
	}
	var out []string
	for n := len(t); n >= subject; n-- {
		out = append(out, addr.Text(t[:n]))
	}
	if resource > 0 && subject > resource {
		out = append(out, addr.Text(t[:resource]))
	}
	return out
}

// blockMember writes the arguments and blocks of a body by a schema, as a
// member, if there are any.
func (c *configWriter) blockMember(name string, body hcl.Body, b *schema.Block) {
	before, comma := len(c.b), c.comma
	c.name(name)
	start := len(c.b)
	c.block(body, b)
	if string(c.b[start:]) == "{}" {
		c.b, c.comma = c.b[:before], comma
	}
}

func (c *configWriter) block(body hcl.Body, b *schema.Block) {
	c.begin('{')
	content, _, _ := body.PartialContent(bodySchema(b))
	if content == nil {
		c.end('}')
		return
	}
	byType := content.Blocks.ByType()
	names := append(keys(content.Attributes), keys(byType)...)
	slices.Sort(names)
	for _, name := range names {
		c.name(name)
		if a := content.Attributes[name]; a != nil {
			c.expression(a.Expr)
			continue
		}
		c.blocks(byType[name], b.Blocks[name])
	}
	c.end('}')
}

func (c *configWriter) blocks(list hcl.Blocks, nb *schema.NestedBlock) {
	switch nb.Nesting {
	case schema.Single, schema.Group:
		c.block(list[0].Body, nb.Block)
	case schema.Map:
		byLabel := map[string]hcl.Body{}
		for _, b := range list {
			if len(b.Labels) > 0 {
				byLabel[b.Labels[0]] = b.Body
			}
		}
		c.begin('{')
		for _, label := range keys(byLabel) {
			c.name(label)
			c.block(byLabel[label], nb.Block)
		}
		c.end('}')
	default:
		c.begin('[')
		for _, b := range list {
			c.block(b.Body, nb.Block)
		}
		c.end(']')
	}
}

func bodySchema(b *schema.Block) *hcl.BodySchema {
	s := new(hcl.BodySchema)
	for name := range b.Attributes {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
	}
	for name, nb := range b.Blocks {
		h := hcl.BlockHeaderSchema{Type: name}
		if nb.Nesting == schema.Map {
			h.LabelNames = []string{"key"}
		}
		s.Blocks = append(s.Blocks, h)
	}
	return s
}
