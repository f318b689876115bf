package lint

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
)

// walk checks the expressions of one attribute.
type walk struct {
	*facts
	in   scope
	path string
	name string // of the argument or variable
	attr *hclsyntax.Attribute
}

// place is the position of an expression in its attribute.
type place struct {
	name string // the argument or object key that the expression is the value of
	key  bool   // the expression is a key of an object
	top  bool   // nothing binds to the expression: it is a value, an element or an argument
}

// expression checks an expression and those in it.
func (w *walk) expression(x hclsyntax.Expression, p place) {
	inner := place{name: p.name}
	switch x := x.(type) {
	case *hclsyntax.TemplateWrapExpr:
		w.interpolation(x, p)
		w.expression(x.Wrapped, inner)
	case *hclsyntax.TemplateExpr:
		if text, ok := literal(x); ok {
			w.text(text, x.SrcRange, p)
			return
		}
		for _, part := range x.Parts {
			w.expression(part, place{})
		}
	case *hclsyntax.ScopeTraversalExpr:
		w.index(x)
	case *hclsyntax.FunctionCallExpr:
		w.funcs[x.Name] = true
		w.lookup(x)
		for _, a := range x.Args {
			w.expression(a, place{top: true})
		}
	case *hclsyntax.BinaryOpExpr:
		w.same(x)
		w.expression(x.LHS, place{})
		w.expression(x.RHS, place{})
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			w.expression(item.KeyExpr, place{key: true})
			name := hcl.ExprAsKeyword(item.KeyExpr)
			if k, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && name == "" {
				name, _ = literal(k.Wrapped)
			}
			w.expression(item.ValueExpr, place{name: name, top: true})
		}
	case *hclsyntax.ObjectConsKeyExpr:
		if t, ok := x.Wrapped.(*hclsyntax.TemplateWrapExpr); ok {
			w.expression(t.Wrapped, place{})
			return
		}
		w.expression(x.Wrapped, place{key: true})
	case *hclsyntax.TupleConsExpr:
		for _, e := range x.Exprs {
			w.expression(e, place{name: p.name, top: true})
		}
	case *hclsyntax.ParenthesesExpr:
		w.expression(x.Expression, place{name: p.name, top: true})
	case *hclsyntax.ConditionalExpr:
		w.expression(x.Condition, place{})
		w.expression(x.TrueResult, inner)
		w.expression(x.FalseResult, inner)
	case *hclsyntax.UnaryOpExpr:
		w.expression(x.Val, place{})
	case *hclsyntax.IndexExpr:
		w.expression(x.Collection, place{})
		w.expression(x.Key, place{top: true})
	case *hclsyntax.RelativeTraversalExpr:
		w.expression(x.Source, place{})
	case *hclsyntax.SplatExpr:
		w.expression(x.Source, place{})
	case *hclsyntax.ForExpr:
		w.expression(x.CollExpr, place{})
		if x.KeyExpr != nil {
			w.expression(x.KeyExpr, place{})
		}
		w.expression(x.ValExpr, inner)
		if x.CondExpr != nil {
			w.expression(x.CondExpr, place{})
		}
	case *hclsyntax.TemplateJoinExpr:
		w.expression(x.Tuple, place{})
	}
}

func (w *walk) finding(code string, at source.Range, message string, fix ...finding.Edit) {
	w.report(code, w.in, w.path, at, w.source(at), message, fix...)
}

// interpolation reports "${x}".
func (w *walk) interpolation(x *hclsyntax.TemplateWrapExpr, p place) {
	text := w.source(x.Wrapped.Range())
	if p.key || !strings.HasPrefix(w.source(x.SrcRange), `"${`) {
		return
	}
	if strings.Contains(w.source(x.SrcRange), "\n") {
		w.finding(DeprecatedInterpolation, x.SrcRange, "The template is one interpolation. Write the expression without quotes.")
		return
	}
	if !p.top && binds(x.Wrapped) {
		text = "(" + text + ")"
	}
	w.finding(DeprecatedInterpolation, x.SrcRange, "The template is one interpolation. Write the expression without quotes.", finding.Edit{At: x.SrcRange, Text: text})
}

// binds reports whether an expression needs parentheses inside another one.
func binds(x hclsyntax.Expression) bool {
	switch x.(type) {
	case *hclsyntax.ScopeTraversalExpr, *hclsyntax.FunctionCallExpr, *hclsyntax.ParenthesesExpr, *hclsyntax.TemplateExpr, *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr:
		return false
	}
	return true
}

// index reports an index after a dot.
func (w *walk) index(x *hclsyntax.ScopeTraversalExpr) {
	for _, s := range x.Traversal {
		i, ok := s.(hcl.TraverseIndex)
		if !ok {
			continue
		}
		text := w.source(i.SrcRange)
		if !strings.HasPrefix(text, ".") {
			continue
		}
		if number := text[1:]; strings.Trim(number, "0123456789") == "" && number != "" {
			w.report(DeprecatedIndex, w.in, w.path, i.SrcRange, w.source(x.SrcRange), "The index is written after a dot. Write it in brackets.", finding.Edit{At: i.SrcRange, Text: "[" + number + "]"})
		}
	}
}

// lookup reports lookup(m, k).
func (w *walk) lookup(x *hclsyntax.FunctionCallExpr) {
	if x.Name != "lookup" || len(x.Args) != 2 || x.ExpandFinal {
		return
	}
	const message = "lookup without a default is deprecated. Write an index."
	m, k := w.source(x.Args[0].Range()), w.source(x.Args[1].Range())
	if _, plain := x.Args[0].(*hclsyntax.ScopeTraversalExpr); !plain || strings.Contains(w.source(x.Range()), "\n") || strings.ContainsAny(w.source(x.Range()), "#") {
		w.finding(DeprecatedLookup, x.Range(), message)
		return
	}
	w.finding(DeprecatedLookup, x.Range(), message, finding.Edit{At: x.Range(), Text: m + "[" + k + "]"})
}

// same reports a comparison of two equal expressions.
func (w *walk) same(x *hclsyntax.BinaryOpExpr) {
	if x.Op != hclsyntax.OpEqual && x.Op != hclsyntax.OpNotEqual {
		return
	}
	l, r := strings.Join(strings.Fields(w.source(x.LHS.Range())), " "), strings.Join(strings.Fields(w.source(x.RHS.Range())), " ")
	if l == r && !hasCall(x.LHS) && len(x.LHS.Variables()) > 0 {
		w.finding(IneffEq, x.SrcRange, fmt.Sprintf("Both sides of the comparison are the same, so that the result is always %t.", x.Op == hclsyntax.OpEqual))
	}
}

// eachReference calls do with each element of x.Variables(), which needs more time for the same.
func eachReference(x hclsyntax.Expression, do func(hcl.Traversal)) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
	case *hclsyntax.ScopeTraversalExpr:
		do(x.Traversal)
	case *hclsyntax.TemplateExpr:
		for _, part := range x.Parts {
			eachReference(part, do)
		}
	case *hclsyntax.TemplateWrapExpr:
		eachReference(x.Wrapped, do)
	case *hclsyntax.ParenthesesExpr:
		eachReference(x.Expression, do)
	case *hclsyntax.TupleConsExpr:
		for _, e := range x.Exprs {
			eachReference(e, do)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			if k, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr); !ok {
				eachReference(item.KeyExpr, do)
			} else if hcl.ExprAsKeyword(k.Wrapped) == "" { // otherwise the key is a name
				eachReference(k.Wrapped, do)
			}
			eachReference(item.ValueExpr, do)
		}
	case *hclsyntax.FunctionCallExpr:
		for _, a := range x.Args {
			eachReference(a, do)
		}
	default: // other nodes, and those with variables of their own
		for _, t := range x.Variables() {
			do(t)
		}
	}
}

// hasCall reports whether an expression calls a function, which may return another value each time.
func hasCall(x hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
		_, call := n.(*hclsyntax.FunctionCallExpr)
		found = found || call
		return nil
	})
	return found
}

var (
	// tokens are the forms of keys and access tokens that are recognized by their prefix.
	tokens = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/=]{16}` +
			`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` +
			`|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{60,}\b|\bglpat-[A-Za-z0-9_-]{20,}` +
			`|\bxox[abprs]-[0-9A-Za-z]+-[0-9A-Za-z-]{10,}|\bAIza[0-9A-Za-z_-]{35}\b|\bsk_live_[0-9A-Za-z]{24,}\b|\bhvs\.[A-Za-z0-9_-]{24,}`)
	})
	// notSecret matches texts that are no secret though the argument's name says so: references to
	// a secret elsewhere, placeholders and names of secrets.
	notSecret = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:arn:.*|/.*|~.*|\.{1,2}/.*|[a-z][a-z0-9+.-]*:.*|projects/.*|<.*>|\{\{.*\}\}|\$.*|%.*|\*+|x+|true|false|null|none|[a-z0-9]+(?:[_./-][a-z0-9]+)*[_./-](?:password|passwd|passphrase|secret|token|key)s?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+)$`)
	})
)

// secretEnds are the ends of the names of arguments whose values are secret.
var secretEnds = []string{
	"password", "passwd", "passphrase", "secret_key", "secret_access_key", "client_secret", "shared_secret", "api_key", "apikey",
	"auth_token", "access_token", "api_token", "private_key", "pre_shared_key",
}

// secretName reports whether a name ends with one of secretEnds, as its last words.
func secretName(name string) bool {
	for _, end := range secretEnds {
		if n := len(name) - len(end); n >= 0 && strings.EqualFold(name[n:], end) && (n == 0 || name[n-1] == '_') {
			return true
		}
	}
	return false
}

// tokenParts contains a part of each form in tokens: a text without any of them has no token.
var tokenParts = []string{"PRIVATE KEY", "AKIA", "ASIA", "gh", "glpat-", "xox", "AIza", "sk_live_", "hvs."}

// token returns the key or token in a text, or "".
func token(text string) string {
	for _, part := range tokenParts {
		if strings.Contains(text, part) {
			return tokens().FindString(text)
		}
	}
	return ""
}

// text checks a literal text for secrets. The message does not contain the text.
func (w *walk) text(text string, at source.Range, p place) {
	if p.key || text == "" {
		return
	}
	// A text in a finding about a secret is not part of its fingerprint, which may be published.
	if found := token(text); found != "" && !strings.Contains(strings.ToUpper(text), "EXAMPLE") {
		w.report(SecretToken, w.in, w.path, at, p.name, "The text contains a private key or an access token. Revoke it, and read it from a sensitive variable or a secret store.")
		return
	}
	name := p.name
	if !secretName(name) || w.in.typ == "output" || w.in.typ == "variable" && w.attr.Name != "default" {
		return
	}
	if isKey := !strings.Contains(strings.ToLower(name), "pass"); isKey && (len(text) < 12 || !strings.ContainsAny(text, "0123456789")) {
		return // such as the unit of a duration
	}
	if len(text) < 4 || notSecret().MatchString(text) || strings.EqualFold(strings.ReplaceAll(text, "-", "_"), name) {
		return
	}
	w.report(PlaintextSecret, w.in, w.path, at, name, fmt.Sprintf("The text of %q is in the configuration, where everybody can read it. Use a sensitive variable or a secret store.", name))
}

// plainText lists arguments whose text may name an object, because people read it.
func plainText(name string) bool {
	switch name {
	case "description", "error_message", "comment", "deprecated", "title", "summary":
		return true
	}
	return false
}

// quotes records the texts of an attribute that may be addresses in quotes.
func (x *facts) quotes(a *hclsyntax.Attribute, in scope, path string) {
	if plainText(a.Name) || references(a.Name, in) {
		return
	}
	eachTemplate(a.Expr, func(t *hclsyntax.TemplateExpr) {
		if text, ok := literal(t); ok && strings.ContainsAny(text, ".[") && 'a' <= text[0] && text[0] <= 'z' && address().MatchString(text) {
			x.quoted = append(x.quoted, quoted{text, in.subject, t.SrcRange})
		}
	})
}

// eachTemplate calls do with each template in an expression, in source order.
func eachTemplate(x hclsyntax.Expression, do func(*hclsyntax.TemplateExpr)) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr, *hclsyntax.ScopeTraversalExpr:
	case *hclsyntax.TemplateExpr:
		do(x)
		for _, part := range x.Parts {
			eachTemplate(part, do)
		}
	case *hclsyntax.TupleConsExpr:
		for _, e := range x.Exprs {
			eachTemplate(e, do)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			key := item.KeyExpr
			if k, ok := key.(*hclsyntax.ObjectConsKeyExpr); ok {
				key = k.Wrapped // a name contains no template
			}
			eachTemplate(key, do)
			eachTemplate(item.ValueExpr, do)
		}
	default:
		_ = hclsyntax.VisitAll(x, func(n hclsyntax.Node) hcl.Diagnostics {
			if t, ok := n.(*hclsyntax.TemplateExpr); ok {
				do(t)
			}
			return nil
		})
	}
}

var address = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]+\]|\["[^"]*"\])+$`)
})

// references reports whether an argument contains references, which were written in quotes in
// old versions of the language.
func references(name string, in scope) bool {
	top, life := len(in.nested) == 0, len(in.nested) == 1 && in.nested[0] == "lifecycle"
	switch name {
	case "depends_on":
		return top
	case "provider":
		return top && (in.typ == "resource" || in.typ == "data" || in.typ == "ephemeral")
	case "providers":
		return top && in.typ == "module"
	case "ignore_changes":
		return life
	}
	return false
}
