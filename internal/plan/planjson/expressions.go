package planjson

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/relevantattrs"
	"github.com/terrace-iac/terrace/schema"
)

// An expression has the member "constant_value" if its value is known without a scope, and
// "references" if it refers to something. An expression such as false && var.x has both.

func (c *configWriter) expression(x hcl.Expression) {
	c.begin('{')
	vars, called := x.Variables(), providerFunctions(x)
	if c.refs != nil {
		c.vars = append(c.vars, vars...)
	}
	_, native := x.(hclsyntax.Node) // a JSON string that is evaluated without a context is a literal
	if native && !asks(x) || len(vars)+len(called) == 0 {
		if v, diags := x.Value(nil); !diags.HasErrors() && v.IsWhollyKnown() && !v.ContainsMarked() {
			c.name("constant_value")
			c.value(v)
		}
	}
	if refs := append(c.allReferences(vars), called...); len(refs) > 0 {
		c.strs("references", refs)
	}
	c.end('}')
}

// asks reports whether an expression certainly has no value without a scope, because a part
// that is always evaluated is a reference. This check is much cheaper than a failed evaluation.
func asks(x hcl.Expression) bool {
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return true
	case *hclsyntax.TemplateExpr:
		return slices.ContainsFunc(x.Parts, anyAsks)
	case *hclsyntax.TemplateWrapExpr:
		return asks(x.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		return asks(x.Expression)
	case *hclsyntax.TupleConsExpr:
		return slices.ContainsFunc(x.Exprs, anyAsks)
	case *hclsyntax.ObjectConsExpr:
		return slices.ContainsFunc(x.Items, func(i hclsyntax.ObjectConsItem) bool { return asks(i.ValueExpr) })
	}
	return false
}

func anyAsks(x hclsyntax.Expression) bool { return asks(x) }

// providerFunctions returns the provider functions that an expression calls, once for each
// call. In JSON syntax they are within strings.
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

// expressionMember writes an expression as a member. It omits the member if there is nothing to
// write.
func (c *configWriter) expressionMember(name string, x hcl.Expression) {
	before, comma := len(c.b), c.comma
	c.name(name)
	start := len(c.b)
	c.expression(x)
	if string(c.b[start:]) == "{}" {
		c.b, c.comma = c.b[:before], comma
	}
}

// references returns the names that a traversal refers to: the whole traversal, then shorter
// prefixes down to the object. For an instance its resource follows.
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

// allReferences returns the references of traversals. An iterator of a dynamic block is replaced by
// the references of its for_each.
func (c *configWriter) allReferences(ts []hcl.Traversal) (refs []string) {
	for _, t := range ts {
		if it := c.iterator(t.RootName()); it != nil {
			refs = append(refs, it.references...)
			continue
		}
		refs = append(refs, references(t)...)
	}
	return refs
}

// blockMember writes the arguments and blocks of a body as a member, if there are any.
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
	content, _, _ := body.PartialContent(b.Reading().HCL)
	if content == nil {
		content = new(hcl.BodyContent)
	}
	c.content(content, b)
}

func (c *configWriter) content(content *hcl.BodyContent, b *schema.Block) {
	c.begin('{')
	byType := nestedByType(content.Blocks)
	names := keys(content.Attributes)
	for name := range byType {
		if content.Attributes[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if a := content.Attributes[name]; a != nil {
			c.name(name)
			c.expression(a.Expr)
		} else if nb := b.Blocks[name]; nb != nil {
			c.name(name)
			c.blocks(byType[name], nb)
		} else if nb := b.Reading().AsBlocks[name]; nb != nil {
			c.name(name)
			c.writtenAsBlocks(byType[name], nb)
		}
	}
	c.end('}')
}

func (c *configWriter) blocks(list []nested, nb *schema.NestedBlock) {
	switch nb.Nesting {
	case schema.Single, schema.Group:
		c.nested(list[0], nb.Block)
	case schema.Map:
		byLabel := map[string]nested{}
		for _, n := range list {
			byLabel[n.label] = n
		}
		c.begin('{')
		for _, label := range keys(byLabel) {
			c.name(label)
			c.nested(byLabel[label], nb.Block)
		}
		c.end('}')
	default:
		c.begin('[')
		for _, n := range list {
			c.nested(n, nb.Block)
		}
		c.end(']')
	}
}
