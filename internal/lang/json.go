package lang

import (
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
)

// nativeTree converts an expression of JSON syntax to native syntax with the same value and the
// same ranges. Templates are then parsed once, and strings without templates never. JSON's own
// expression would parse them for each of the three calls before evaluation, and again for
// evaluation. It returns false for expressions of native syntax, and where only JSON's own
// expression reports the correct error: for a template that does not parse, a template in a
// key, and two equal keys.
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
	v, diags := x.Value(nil) // the literal string
	if diags.HasErrors() {
		return nil, false
	}
	if v.Type() != cty.String || v.IsNull() || isPlain(v.AsString()) {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}, true
	}
	start := at.Start
	start.Byte++ // after the quote
	start.Column++
	if tree, diags = hclsyntax.ParseTemplate([]byte(v.AsString()), at.Filename, start); diags.HasErrors() {
		return nil, false
	}
	hclnative.ResolveTypes(tree)
	return tree, true
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

// isPlain reports whether a string contains no template syntax.
func isPlain(s string) bool {
	return !strings.Contains(s, "${") && !strings.Contains(s, "%{") && utf8.ValidString(s)
}
