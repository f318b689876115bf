package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Expressions calls f for every expression in a body of a Module, of nested and dynamic
// blocks too, without a schema, with the names that dynamic blocks around it define.
// What an override replaced is left out, and so is what is written in JSON: there
// nothing tells which properties are blocks.
func Expressions(body hcl.Body, f func(x hcl.Expression, iterators []string)) {
	expressions(body, nil, f)
}

func expressions(body hcl.Body, iterators []string, f func(hcl.Expression, []string)) {
	switch b := body.(type) {
	case *Body:
		for _, l := range b.layers {
			expressions(l.open, iterators, f)
		}
	case *hclsyntax.Body:
		for _, a := range b.Attributes {
			f(a.Expr, iterators)
		}
		for _, block := range b.Blocks {
			if block.Type == "dynamic" && len(block.Labels) == 1 {
				dynamicExpressions(block, iterators, f)
			} else {
				expressions(block.Body, iterators, f)
			}
		}
	}
}

func dynamicExpressions(block *hclsyntax.Block, iterators []string, f func(hcl.Expression, []string)) {
	name := block.Labels[0]
	for _, a := range block.Body.Attributes {
		if a.Name != "iterator" {
			f(a.Expr, iterators)
		} else if word := hcl.ExprAsKeyword(a.Expr); word != "" {
			name = word
		}
	}
	within := append(slices.Clip(iterators), name)
	for _, content := range block.Body.Blocks {
		expressions(content.Body, within, f)
	}
}
