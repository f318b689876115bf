package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// Expressions calls f for every expression in a body of a Module, of nested blocks too,
// without a schema. What an override replaced is left out, and so is the content of
// dynamic blocks, of which there may be none, and what is written in JSON: there
// nothing tells which properties are blocks.
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
