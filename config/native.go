package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
)

// Bodies of native syntax are kept as those of package hclnative, which contain no expressions.
// Bodies of files with errors are those of hclsyntax.

// syntaxBody returns a body of native syntax with its expressions, which may be built for the
// call. It returns false for JSON.
func syntaxBody(body hcl.Body) (*hclsyntax.Body, bool) {
	switch b := body.(type) {
	case *hclnative.Body:
		return b.Syntax(), true
	case *hclsyntax.Body:
		return b, true
	}
	return nil, false
}

// nativeRange returns the range of a body of native syntax.
func nativeRange(body hcl.Body) (hcl.Range, bool) {
	switch b := body.(type) {
	case *hclnative.Body:
		return b.Range(), true
	case *hclsyntax.Body:
		return b.SrcRange, true
	}
	return hcl.Range{}, false
}

// nativeName returns the type of a block. For a dynamic block it is the type of the blocks that
// it creates.
func nativeName(typ string, labels []string) string {
	if typ == "dynamic" && len(labels) == 1 {
		return labels[0]
	}
	return typ
}
