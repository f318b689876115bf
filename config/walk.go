package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// Expressions calls f for every expression in a body of a Module, including nested blocks,
// without a schema. It skips replaced expressions, the content of dynamic blocks, which may
// have no elements, and JSON, in which blocks cannot be distinguished from arguments.
func Expressions(body hcl.Body, f func(hcl.Expression)) {
	switch b := body.(type) {
	case *hclnative.Body:
		Expressions(b.Syntax(), f)
	case *Body:
		for _, l := range b.layers {
			Expressions(l.open, f)
		}
	case *hclsyntax.Body:
		for _, a := range b.Attributes {
			f(a.Expr)
		}
		for _, block := range b.Blocks {
			if block.Type != "dynamic" || len(block.Labels) != 1 {
				Expressions(block.Body, f)
			} else if each := block.Body.Attributes["for_each"]; each != nil {
				f(each.Expr)
			}
		}
	}
}
