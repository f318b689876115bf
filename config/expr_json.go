package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// jsonText returns an argument as a JSON value. If a reader could take an object or a list for
// blocks, it is wrapped in a template.
func (p *printer) jsonText(a *hcl.Attribute, f form, sure bool) string {
	if f == literal {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return "null"
		}
		return jsonValue(v)
	}
	s := p.text(a)
	if hcljson.IsJSONExpression(a.Expr) {
		if f != names {
			return s
		}
		s = p.nativeText(a, f)
	}
	s += "\n" // for a heredoc at the end
	x, diags := hclsyntax.ParseExpression([]byte(s), "", hcl.Pos{Line: 1, Column: 1})
	if diags.HasErrors() {
		return "null"
	}
	if f == names {
		return jsonNames(x, s)
	}
	return jsonExpr(x, s, sure)
}

// jsonExpr returns an expression as JSON. s contains its source.
func jsonExpr(x hclsyntax.Expression, s string, sure bool) string {
	src := sourceOf(x, s)
	if paren, ok := x.(*hclsyntax.ParenthesesExpr); ok && strings.Contains(src, "\n") {
		return jsonString(wrapped(sourceOf(paren.Expression, s)))
	}
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr, *hclsyntax.UnaryOpExpr:
		if json.Valid([]byte(src)) {
			return src
		}
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		if t, ok := templateText(src); ok {
			return jsonString(t)
		}
	case *hclsyntax.TupleConsExpr:
		if !sure && !allScalar(x) {
			break
		}
		items := make([]string, len(x.Exprs))
		for i, e := range x.Exprs {
			items[i] = jsonExpr(e, s, sure)
		}
		return "[" + strings.Join(items, ",") + "]"
	case *hclsyntax.ObjectConsExpr:
		if !sure {
			break
		}
		items := make([]string, len(x.Items))
		for i, kv := range x.Items {
			items[i] = jsonKey(kv.KeyExpr, s) + ":" + jsonExpr(kv.ValueExpr, s, sure)
		}
		return "{" + strings.Join(items, ",") + "}"
	}
	return jsonString(wrapped(src))
}

// wrapped returns a template that contains an expression.
func wrapped(src string) string {
	src = pretty(src)
	if strings.Contains(src, "\n") {
		src += "\n" // it may end with a heredoc
	}
	return "${" + src + "}"
}

// sourceOf returns the source of an expression, including the end that its range may omit.
func sourceOf(x hclsyntax.Expression, s string) string {
	r := x.Range()
	return s[r.Start.Byte:min(r.End.Byte, len(s))]
}

// allScalar reports whether a list is not empty and has no element that could be taken for a
// block.
func allScalar(x *hclsyntax.TupleConsExpr) bool {
	for _, e := range x.Exprs {
		switch e := e.(type) {
		case *hclsyntax.LiteralValueExpr:
			if e.Val.IsNull() {
				return false
			}
		case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		default:
			return false
		}
	}
	return len(x.Exprs) > 0
}

// jsonKey returns the key of an object: a bare word becomes a string, anything else a template.
func jsonKey(x hclsyntax.Expression, s string) string {
	k, ok := x.(*hclsyntax.ObjectConsKeyExpr)
	if ok && !k.ForceNonLiteral {
		if word := hcl.ExprAsKeyword(k.Wrapped); word != "" {
			return jsonString(word)
		}
		x = k.Wrapped
	}
	if ok && k.ForceNonLiteral {
		x = k.Wrapped
	}
	out := jsonExpr(x, s, false)
	if !strings.HasPrefix(out, `"`) {
		return jsonString(wrapped(sourceOf(x, s)))
	}
	return out
}

// jsonNames returns references and keywords as text.
func jsonNames(x hclsyntax.Expression, s string) string {
	switch x := x.(type) {
	case *hclsyntax.TupleConsExpr:
		items := make([]string, len(x.Exprs))
		for i, e := range x.Exprs {
			items[i] = jsonNames(e, s)
		}
		return "[" + strings.Join(items, ",") + "]"
	case *hclsyntax.ObjectConsExpr:
		items := make([]string, len(x.Items))
		for i, kv := range x.Items {
			items[i] = jsonNames(kv.KeyExpr, s) + ":" + jsonNames(kv.ValueExpr, s)
		}
		return "{" + strings.Join(items, ",") + "}"
	case *hclsyntax.ObjectConsKeyExpr:
		return jsonNames(x.Wrapped, s)
	case *hclsyntax.TemplateExpr:
		if v, diags := x.Value(nil); !diags.HasErrors() && v.Type() == cty.String {
			return jsonString(v.AsString())
		}
	}
	return jsonString(pretty(sourceOf(x, s)))
}

// templateText converts a native string to the text of a template. It returns false if escapes
// have no simple form there.
func templateText(src string) (string, bool) {
	tokens, diags := hclsyntax.LexExpression([]byte(src), "", hcl.Pos{Line: 1, Column: 1})
	if diags.HasErrors() || len(tokens) < 2 || tokens[0].Type != hclsyntax.TokenOQuote {
		return "", false
	}
	var b strings.Builder
	depth, last := 0, 0
	for i, t := range tokens[1:] {
		switch {
		case t.Type == hclsyntax.TokenTemplateInterp || t.Type == hclsyntax.TokenTemplateControl:
			if depth == 0 {
				last = t.Range.Start.Byte
			}
			depth++
		case t.Type == hclsyntax.TokenTemplateSeqEnd:
			if depth--; depth == 0 {
				b.WriteString(src[last:t.Range.End.Byte])
			}
		case depth > 0:
		case t.Type == hclsyntax.TokenQuotedLit || t.Type == hclsyntax.TokenStringLit:
			s, ok := unescape(string(t.Bytes))
			if !ok {
				return "", false
			}
			b.WriteString(s)
		case t.Type == hclsyntax.TokenCQuote:
			return b.String(), i == len(tokens)-3 || i == len(tokens)-2 // the end-of-file token follows
		}
	}
	return "", false
}

func unescape(s string) (string, bool) {
	if strings.Contains(s, `\u`) || strings.Contains(s, `\U`) {
		return "", false
	}
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(s), true
}

// jsonValue returns a constant as JSON.
func jsonValue(v cty.Value) string {
	out, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return "null"
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	var x any
	if dec.Decode(&x) != nil {
		return "null"
	}
	return jsonAny(x)
}

func jsonString(s string) string { return jsonAny(s) }

// jsonAny encodes a decoded JSON value, without escapes for HTML.
func jsonAny(x any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(x) // encoding a decoded JSON value cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
