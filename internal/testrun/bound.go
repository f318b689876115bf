package testrun

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
)

// A boundBody is the body of a provider block of a test file. Some of its expressions refer to
// other runs or to variables of the file, so the module cannot evaluate them. boundBody evaluates
// these in the scope of the test file.
type boundBody struct {
	hcl.Body
	value func(hcl.Expression) (cty.Value, diag.List)
	bind  func(hcl.Expression) bool
}

// Content implements hcl.Body.
func (b *boundBody) Content(s *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	c, diags := b.Body.Content(s)
	return b.content(c), diags
}

// PartialContent implements hcl.Body.
func (b *boundBody) PartialContent(s *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	c, rest, diags := b.Body.PartialContent(s)
	return b.content(c), &boundBody{rest, b.value, b.bind}, diags
}

// JustAttributes implements hcl.Body.
func (b *boundBody) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	attrs, diags := b.Body.JustAttributes()
	return b.attributes(attrs), diags
}

func (b *boundBody) content(c *hcl.BodyContent) *hcl.BodyContent {
	if c == nil {
		return nil
	}
	out := *c
	out.Attributes = b.attributes(c.Attributes)
	out.Blocks = nil
	for _, inner := range c.Blocks {
		copied := *inner
		copied.Body = &boundBody{inner.Body, b.value, b.bind}
		out.Blocks = append(out.Blocks, &copied)
	}
	return &out
}

func (b *boundBody) attributes(attrs hcl.Attributes) hcl.Attributes {
	out := make(hcl.Attributes, len(attrs))
	for name, a := range attrs {
		if b.bind(a.Expr) {
			copied := *a
			copied.Expr = &boundExpr{a.Expr, b.value}
			a = &copied
		}
		out[name] = a
	}
	return out
}

// A boundExpr is an expression that is evaluated by value, in another scope.
type boundExpr struct {
	hcl.Expression
	value func(hcl.Expression) (cty.Value, diag.List)
}

// Variables implements hcl.Expression. It returns nil, since the caller need not resolve
// anything.
func (x *boundExpr) Variables() []hcl.Traversal { return nil }

// Value implements hcl.Expression.
func (x *boundExpr) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, ds := x.value(x.Expression)
	var diags hcl.Diagnostics
	for _, m := range ds.Errors() {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: m.Summary, Detail: m.Detail, Subject: m.At})
	}
	return v, diags
}
