package lang

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// quick evaluates an expression as HCL does where nothing is out of the
// ordinary, and leaves everything else to HCL: ok is false when something fails,
// and then HCL has to tell what. It pays for the writing of numbers into
// templates, for which a number's 512 bits are otherwise turned into decimals,
// digit by digit.
func quick(x hcl.Expression, ctx *hcl.EvalContext) (v cty.Value, ok bool) {
	switch x := x.(type) {
	case *hclsyntax.ObjectConsExpr:
		if plainKeys(x) {
			return quickObject(x, ctx)
		}
	case *hclsyntax.TupleConsExpr:
		return quickTuple(x, ctx)
	case *hclsyntax.TemplateExpr:
		return quickTemplate(x, ctx)
	case *hclsyntax.LiteralValueExpr:
		return x.Val, true
	case *hclsyntax.ParenthesesExpr:
		return quick(x.Expression, ctx)
	}
	v, diags := x.Value(ctx)
	return v, len(diags) == 0
}

// keyName is the key of an item of an object whose key is a plain name.
func keyName(item *hclsyntax.ObjectConsItem) string {
	k, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return ""
	}
	if literal, ok := k.Wrapped.(*hclsyntax.LiteralValueExpr); ok && literal.Val.Type() == cty.String {
		return literal.Val.AsString() // of JSON syntax
	}
	if k.ForceNonLiteral {
		return ""
	}
	return hcl.ExprAsKeyword(k.Wrapped)
}

func plainKeys(x *hclsyntax.ObjectConsExpr) bool {
	for i := range x.Items {
		if keyName(&x.Items[i]) == "" {
			return false
		}
	}
	return true
}

func quickObject(x *hclsyntax.ObjectConsExpr, ctx *hcl.EvalContext) (cty.Value, bool) {
	vals := make(map[string]cty.Value, len(x.Items))
	for i := range x.Items {
		v, ok := quick(x.Items[i].ValueExpr, ctx)
		if !ok {
			return cty.DynamicVal, false
		}
		vals[keyName(&x.Items[i])] = v
	}
	return cty.ObjectVal(vals), true
}

func quickTuple(x *hclsyntax.TupleConsExpr, ctx *hcl.EvalContext) (cty.Value, bool) {
	vals := make([]cty.Value, len(x.Exprs))
	for i, item := range x.Exprs {
		v, ok := quick(item, ctx)
		if !ok {
			return cty.DynamicVal, false
		}
		vals[i] = v
	}
	return cty.TupleVal(vals), true
}

// quickTemplate joins the parts of a template if all are known, and leaves it to
// HCL to say what becomes of unknown, null and marked ones.
func quickTemplate(x *hclsyntax.TemplateExpr, ctx *hcl.EvalContext) (cty.Value, bool) {
	var b strings.Builder
	for _, part := range x.Parts {
		v, ok := quick(part, ctx)
		if !ok {
			return cty.DynamicVal, false
		}
		if v.IsMarked() || !v.IsKnown() || v.IsNull() {
			v, diags := x.Value(ctx)
			return v, len(diags) == 0
		}
		text, ok := primitiveText(v)
		if !ok {
			return cty.DynamicVal, false
		}
		b.WriteString(text)
	}
	return cty.StringVal(b.String()), true
}

// primitiveText writes a known value of a primitive type as a string.
func primitiveText(v cty.Value) (string, bool) {
	switch v.Type() {
	case cty.String:
		return v.AsString(), true
	case cty.Number:
		if f := v.AsBigFloat(); f.IsInt() && !(f.Sign() == 0 && f.Signbit()) {
			if n, exact := f.Int64(); exact == 0 {
				return strconv.FormatInt(n, 10), true
			}
		}
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() || !s.IsKnown() || s.IsMarked() {
		return "", false
	}
	return s.AsString(), true
}
