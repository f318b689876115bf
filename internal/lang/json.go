package lang

import (
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// nativeTree makes an expression of native syntax of one of JSON syntax, with the same
// value and the same places, so that its templates are parsed once, and its strings
// without templates never: JSON's own expression does it for each question, and three are
// asked before the value. It is not ok for an expression of native syntax, and where only
// JSON's own expression says what is wrong: with a template that does not parse, with one
// in a key, or with two equal keys.
func nativeTree(x hcl.Expression) (tree hclsyntax.Expression, ok bool) {
	if !hcljson.IsJSONExpression(x) {
		return nil, false
	}
	at := x.Range()
	if m, is := x.(interface{ ExprMap() []hcl.KeyValuePair }); is {
		if pairs := m.ExprMap(); pairs != nil {
			return nativeObject(pairs, at)
		}
	}
	if l, is := x.(interface{ ExprList() []hcl.Expression }); is {
		if items := l.ExprList(); items != nil {
			out := &hclsyntax.TupleConsExpr{Exprs: make([]hclsyntax.Expression, len(items)), SrcRange: at, OpenRange: x.StartRange()}
			for i, item := range items {
				if out.Exprs[i], ok = nativeTree(item); !ok {
					return nil, false
				}
			}
			return out, true
		}
	}
	v, diags := x.Value(nil) // a string as it is written
	if diags.HasErrors() {
		return nil, false
	}
	if v.Type() != cty.String || v.IsNull() || isPlain(v.AsString()) {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}, true
	}
	start := at.Start
	start.Byte++ // behind the quote
	start.Column++
	tree, diags = hclsyntax.ParseTemplate([]byte(v.AsString()), at.Filename, start)
	return tree, !diags.HasErrors()
}

func nativeObject(pairs []hcl.KeyValuePair, at hcl.Range) (hclsyntax.Expression, bool) {
	out := &hclsyntax.ObjectConsExpr{Items: make([]hclsyntax.ObjectConsItem, len(pairs)), SrcRange: at, OpenRange: at}
	seen := make(map[string]bool, len(pairs))
	for i, pair := range pairs {
		key, diags := pair.Key.Value(nil)
		if diags.HasErrors() || !isPlain(key.AsString()) || seen[key.AsString()] {
			return nil, false
		}
		seen[key.AsString()] = true
		v, ok := nativeTree(pair.Value)
		if !ok {
			return nil, false
		}
		literal := &hclsyntax.LiteralValueExpr{Val: key, SrcRange: pair.Key.Range()}
		out.Items[i] = hclsyntax.ObjectConsItem{KeyExpr: &hclsyntax.ObjectConsKeyExpr{Wrapped: literal, ForceNonLiteral: true}, ValueExpr: v}
	}
	return out, true
}

// isPlain reports whether a string is its own value as a template.
func isPlain(s string) bool {
	return !strings.Contains(s, "${") && !strings.Contains(s, "%{") && utf8.ValidString(s)
}
