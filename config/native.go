package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// Bodies of native syntax are kept as hclnative's, which hold no expressions. Those of
// files with mistakes are hclsyntax's.

// syntaxBody is a body of native syntax with its expressions, which may be built for the call;
// false for JSON.
func syntaxBody(body hcl.Body) (*hclsyntax.Body, bool) {
	switch b := body.(type) {
	case *hclnative.Body:
		return b.Syntax(), true
	case *hclsyntax.Body:
		return b, true
	}
	return nil, false
}

// nativeRange is the stretch of a body of native syntax.
func nativeRange(body hcl.Body) (hcl.Range, bool) {
	switch b := body.(type) {
	case *hclnative.Body:
		return b.Range(), true
	case *hclsyntax.Body:
		return b.SrcRange, true
	}
	return hcl.Range{}, false
}

// nativeName is the name that a block gives: its type, or what a dynamic block makes.
func nativeName(typ string, labels []string) string {
	if typ == "dynamic" && len(labels) == 1 {
		return labels[0]
	}
	return typ
}
