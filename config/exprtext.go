package config

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// To write a module, every expression must be converted to both syntaxes. The meaning of a JSON
// string depends on the argument: a template, a name, or the literal text.

// form is the form of an argument's value.
type form uint8

const (
	template form = iota // an expression; in JSON a template
	names                // references or keywords; in JSON their text
	literal              // a constant; in JSON the value itself
)

// formOf returns the form of a kind's own argument.
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

// text returns the source of an argument's expression.
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

// pretty formats native source in the usual style.
func pretty(s string) string {
	out := string(hclwrite.Format([]byte("a = " + s + "\n")))
	return strings.TrimSpace(strings.TrimPrefix(out, "a = "))
}

// nativeText returns an argument in native syntax.
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

// nativeKey writes the key of an object in quotes.
func nativeKey(b *strings.Builder, dec *json.Decoder, f form) {
	tok, _ := dec.Token()
	key, _ := tok.(string)
	if f == names {
		b.WriteString(key)
	} else {
		b.WriteString(quotedTemplate(key))
	}
}

// nativeTemplate returns the text of a template in native syntax. If it is a single
// interpolation, it returns the expression in it.
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
	return "(" + inner + "\n)" // line breaks are only allowed in parentheses
}

// quotedTemplate returns the text of a template as a native string.
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
