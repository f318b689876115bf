package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Writing a module needs every expression in both syntaxes. What a JSON string
// means depends on the argument: a template, a name, or just itself.

// form says what stands in an argument.
type form uint8

const (
	template form = iota // an expression, in JSON a template
	names                // references or keywords, in JSON their text
	literal              // a constant, in JSON itself
)

// formOf is the form of a kind's own argument.
func formOf(k *kind, name string) form {
	switch name {
	case "provider", "providers", "depends_on", "ignore_changes", "replace_triggered_by", "when", "on_failure", "from", "to", "edition", "experiments":
		return names
	case "create_before_destroy", "destroy", "alias", "required_version", "opentofu":
		return literal
	case "type":
		return names
	case "version":
		if k.name == "provider" {
			return literal
		}
	}
	if k.name == "variable" || k.name == "output" && name != "value" {
		return literal
	}
	return template
}

// text is the source of an argument's expression.
func (p *printer) text(a *hcl.Attribute) string {
	f := p.m.Set.File(a.Range.Filename)
	if f == nil {
		return "null"
	}
	from := a.NameRange.End.Byte
	if hcljson.IsJSONExpression(a.Expr) {
		from = a.Expr.Range().Start.Byte
	}
	s := strings.TrimSpace(string(f.Bytes[from:a.Range.End.Byte]))
	if !hcljson.IsJSONExpression(a.Expr) {
		s = strings.TrimSpace(strings.TrimLeft(s, "=:"))
	}
	return s
}

// pretty brings native source into the usual shape, whatever it stood in.
func pretty(s string) string {
	out := string(hclwrite.Format([]byte("a = " + s + "\n")))
	return strings.TrimSpace(strings.TrimPrefix(out, "a = "))
}

// nativeText writes an argument in native syntax.
func (p *printer) nativeText(a *hcl.Attribute, f form) string {
	s := p.text(a)
	if !hcljson.IsJSONExpression(a.Expr) {
		return pretty(s)
	}
	if f == literal {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return "null"
		}
		return pretty(string(hclwrite.TokensForValue(v).Bytes()))
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var b strings.Builder
	nativeValue(&b, dec, f)
	return pretty(b.String())
}

// nativeValue writes the next JSON value in native syntax.
func nativeValue(b *strings.Builder, dec *json.Decoder, f form) {
	tok, err := dec.Token()
	if err != nil {
		b.WriteString("null")
		return
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '[' {
			b.WriteString("[")
			for n := 0; dec.More(); n++ {
				if n > 0 {
					b.WriteString(", ")
				}
				nativeValue(b, dec, f)
			}
			b.WriteString("]")
		} else {
			b.WriteString("{\n")
			for dec.More() {
				nativeKey(b, dec, f)
				b.WriteString(" = ")
				nativeValue(b, dec, f)
				b.WriteString("\n")
			}
			b.WriteString("}")
		}
		_, _ = dec.Token()
	case string:
		if f == names {
			b.WriteString(v)
		} else {
			b.WriteString(nativeTemplate(v))
		}
	case json.Number:
		b.WriteString(v.String())
	case bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	default:
		b.WriteString("null")
	}
}

// nativeKey writes the key of an object, which stays in quotes.
func nativeKey(b *strings.Builder, dec *json.Decoder, f form) {
	tok, _ := dec.Token()
	key, _ := tok.(string)
	if f == names {
		b.WriteString(key)
	} else {
		b.WriteString(quotedTemplate(key))
	}
}

// nativeTemplate writes the text of a template in native syntax: what is
// nothing but an interpolation as the expression in it.
func nativeTemplate(s string) string {
	quoted := quotedTemplate(s)
	x, diags := hclsyntax.ParseExpression([]byte(quoted), "", hcl.Pos{Line: 1, Column: 1})
	wrap, ok := x.(*hclsyntax.TemplateWrapExpr)
	if diags.HasErrors() || !ok {
		return quoted
	}
	inner := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(s, "}"), "~"), "${"), "~")
	if !strings.Contains(inner, "\n") {
		return strings.TrimSpace(inner)
	}
	switch wrap.Wrapped.(type) {
	case *hclsyntax.ObjectConsExpr, *hclsyntax.TupleConsExpr, *hclsyntax.ForExpr, *hclsyntax.FunctionCallExpr, *hclsyntax.ParenthesesExpr:
		return strings.TrimSpace(inner)
	}
	return "(" + inner + "\n)" // only brackets may hold line breaks
}

// quotedTemplate writes the text of a template as a native string.
func quotedTemplate(s string) string {
	tokens, _ := hclsyntax.LexTemplate([]byte(s), "", hcl.Pos{Line: 1, Column: 1})
	var b strings.Builder
	b.WriteByte('"')
	depth, last := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if depth == 0 {
				last = t.Range.Start.Byte
			}
			depth++
		case hclsyntax.TokenTemplateSeqEnd:
			if depth--; depth == 0 {
				b.WriteString(s[last:t.Range.End.Byte])
			}
		case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit:
			if depth == 0 {
				writeEscaped(&b, string(t.Bytes))
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

func writeEscaped(b *strings.Builder, s string) {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			const hex = "0123456789abcdef"
			b.WriteString(`\u00`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		default:
			b.WriteRune(r)
		}
	}
}

// jsonText writes an argument as a JSON value. Where the reader could take an
// object or a list for blocks, it stands in a template.
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

// jsonExpr writes an expression, whose source is within s.
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

// wrapped makes a template of an expression.
func wrapped(src string) string {
	src = pretty(src)
	if strings.Contains(src, "\n") {
		src += "\n" // it may end with a heredoc
	}
	return "${" + src + "}"
}

// sourceOf is the text of an expression, with the end that its range may lack.
func sourceOf(x hclsyntax.Expression, s string) string {
	r := x.Range()
	return s[r.Start.Byte:min(r.End.Byte, len(s))]
}

// allScalar reports whether a list is not empty and holds only what cannot be taken for a block.
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

// jsonKey writes the key of an object: a bare word is a string, anything else a template.
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

// jsonNames writes references and keywords as their text.
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
		return jsonNames(x.Wrapped.(hclsyntax.Expression), s)
	case *hclsyntax.TemplateExpr:
		if v, diags := x.Value(nil); !diags.HasErrors() && v.Type() == cty.String {
			return jsonString(v.AsString())
		}
	}
	return jsonString(pretty(sourceOf(x, s)))
}

// templateText is what a native string says as the text of a template. It is
// not ok where escapes leave no simple way to say it.
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
			return b.String(), i == len(tokens)-3 || i == len(tokens)-2 // the end of the file follows
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

// jsonValue writes a constant.
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

// jsonAny writes what came from JSON, without the escapes that only HTML needs.
func jsonAny(x any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(x) // what came from JSON cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
