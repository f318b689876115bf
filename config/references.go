package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// References returns every reference in a body of a Module, including those in nested and
// dynamic blocks, without a schema. The result may include iterators of dynamic blocks.
func References(body hcl.Body) []hcl.Traversal {
	switch b := body.(type) {
	case nil:
		return nil
	case *Body:
		var out []hcl.Traversal
		for _, l := range b.layers {
			out = append(out, References(l.open)...)
		}
		return out
	case *merged:
		var out []hcl.Traversal
		for _, p := range b.parts {
			out = append(out, References(p.body)...)
		}
		return out
	case *hclnative.Body:
		return b.References()
	case *hclsyntax.Body:
		var out []hcl.Traversal
		for _, a := range b.Attributes {
			out = append(out, a.Expr.Variables()...)
		}
		for _, block := range b.Blocks {
			out = append(out, References(block.Body)...)
		}
		return out
	case *dynamicBody:
		out := References(b.Body)
		for _, block := range b.kept {
			out = append(out, References(block.Body)...)
		}
		return out
	}
	attrs, _ := body.JustAttributes() // in JSON nested blocks are properties, too
	var out []hcl.Traversal
	for _, a := range attrs {
		out = append(out, a.Expr.Variables()...)
	}
	return out
}
