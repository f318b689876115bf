package config

import (
	"cmp"
	"github.com/terrace-iac/terrace/internal/base/value"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

func quote(s string) string { return strconv.Quote(s) }

// sentence converts the text of an error to a sentence.
func sentence(err error) string {
	s := err.Error()
	if r, size := utf8.DecodeRuneInString(s); unicode.IsLower(r) {
		s = string(unicode.ToUpper(r)) + s[size:]
	}
	if strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

func errorAt(code string, at source.Range, summary, format string, args ...any) diag.List {
	return diag.Errorf(code, &at, summary, format, args...)
}

func warnAt(code string, at source.Range, summary, format string, args ...any) diag.List {
	return diag.Warnf(code, &at, summary, format, args...)
}

// inOrder returns attributes in source order.
func inOrder(attrs hcl.Attributes) []*hcl.Attribute {
	out := make([]*hcl.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int {
		return cmp.Or(cmp.Compare(a.NameRange.Filename, b.NameRange.Filename), cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte))
	})
	return out
}

// constant evaluates an argument that must not contain references.
func constant(a *hcl.Attribute, want cty.Type) (cty.Value, diag.List) {
	v, diags := a.Expr.Value(nil)
	if diags.HasErrors() {
		return cty.NullVal(want), diag.FromHCL(diags)
	}
	v, err := convert.Convert(v, want)
	if err != nil {
		return cty.NullVal(want), errorAt(diag.CodeConfigUnsuitableValue, a.Expr.Range(), "Unsuitable value type",
			"The argument %q needs a %s: %s.", a.Name, want.FriendlyName(), err)
	}
	return v, diag.FromHCL(diags)
}

func constString(a *hcl.Attribute) (string, diag.List) {
	v, ds := constant(a, cty.String)
	if ds.HasErrors() {
		return "", ds
	}
	if v.IsNull() || !v.IsKnown() {
		return "", append(ds, nullConstant(a, "string")...)
	}
	return v.AsString(), ds
}

// constBool returns the value of a constant bool; nil if it is invalid.
func constBool(a *hcl.Attribute) (*bool, diag.List) {
	v, ds := constant(a, cty.Bool)
	if ds.HasErrors() {
		return nil, ds
	}
	if v.IsNull() || !v.IsKnown() {
		return nil, append(ds, nullConstant(a, "bool")...)
	}
	b := v.True()
	return &b, ds
}

func nullConstant(a *hcl.Attribute, want string) diag.List {
	return errorAt(diag.CodeConfigUnsuitableValue, a.Expr.Range(), "Unsuitable value type",
		"The argument %q needs a %s, which must not be null.", a.Name, want)
}

// constString returns the text of a constant setting. For a nil setting it returns "".
func (s *Setting) constString() (string, diag.List) {
	if s == nil {
		return "", nil
	}
	v, ds := constString(s.Attribute)
	return v, s.explain(ds)
}

func (s *Setting) constBool() (*bool, diag.List) {
	if s == nil {
		return nil, nil
	}
	v, ds := constBool(s.Attribute)
	return v, s.explain(ds)
}

// validName checks that a name is a valid identifier.
func validName(name string, at source.Range, what string) diag.List {
	if value.IsIdentifier(name) {
		return nil
	}
	return errorAt(diag.CodeConfigInvalidName, at, "Invalid "+what+" name",
		"A name must start with a letter or underscore and may contain only letters, digits, underscores, and dashes; %q does not.", name)
}

// native converts a JSON expression to the native expression in its text, for arguments that
// contain a name instead of a value. Other expressions are returned unchanged.
func native(x hcl.Expression) (hcl.Expression, hcl.Diagnostics) {
	if !json.IsJSONExpression(x) {
		return x, nil
	}
	v, diags := x.Value(nil)
	if diags.HasErrors() || v.Type() != cty.String || v.IsNull() {
		return x, nil
	}
	start := x.Range().Start
	start.Column++
	start.Byte++
	return hclsyntax.ParseExpression([]byte(v.AsString()), x.Range().Filename, start)
}

// unquoted accepts the older form of a reference in quotes. It reports whether the form was
// used.
func unquoted(x hcl.Expression) (hcl.Expression, bool) {
	t, ok := x.(*hclsyntax.TemplateExpr)
	if !ok || !t.IsStringLiteral() {
		return x, false
	}
	v, _ := t.Value(nil)
	start := x.Range().Start
	start.Column++
	start.Byte++
	inner, diags := hclsyntax.ParseExpression([]byte(v.AsString()), x.Range().Filename, start)
	if diags.HasErrors() {
		return x, false
	}
	return inner, true
}

// list returns the elements of a list expression. Elements in JSON are converted to native
// expressions.
func list(a *hcl.Attribute) ([]hcl.Expression, diag.List) {
	items, diags := hcl.ExprList(a.Expr)
	ds := diag.FromHCL(diags)
	out := make([]hcl.Expression, 0, len(items))
	for _, x := range items {
		x, diags := native(x)
		ds = append(ds, diag.FromHCL(diags)...)
		if x != nil && !diags.HasErrors() {
			out = append(out, x)
		}
	}
	return out, ds
}

// traversals decodes the references in a depends_on argument.
func traversals(s *Setting) (out []hcl.Traversal, ds diag.List) {
	if s == nil {
		return nil, nil
	}
	items, ds := list(s.Attribute)
	for _, x := range items {
		inner, quoted := unquoted(x)
		if quoted {
			ds = append(ds, quotedReference(x.Range())...)
		}
		t, diags := hcl.AbsTraversalForExpr(inner)
		ds = append(ds, diag.FromHCL(diags)...)
		if len(t) > 0 && !diags.HasErrors() {
			out = append(out, t)
			if at := t.SourceRange(); !whole(t) {
				ds = append(ds, errorAt(diag.CodeConfigDependsOn, at, "Invalid depends_on reference",
					"What depends_on names must be a whole object, such as a resource or a module call, and no part of one. Leave out what follows its name.")...)
			}
		}
	}
	return out, s.explain(ds)
}

// whole reports whether a reference refers to a whole object. A key after a resource or a call,
// and an output of a call, count as whole objects.
func whole(t hcl.Traversal) bool {
	rest := t[1:]
	names := 1
	if root := t.RootName(); root == "data" || root == "ephemeral" || root == "resource" {
		names = 2
	}
	if len(rest) < names {
		return true // the incomplete reference is reported elsewhere
	}
	rest = rest[names:]
	if len(rest) > 0 {
		if _, key := rest[0].(hcl.TraverseIndex); key {
			rest = rest[1:]
		}
	}
	if t.RootName() == "module" && len(rest) > 0 {
		rest = rest[1:]
	}
	return len(rest) == 0
}

func quotedReference(at source.Range) diag.List {
	return warnAt(diag.CodeConfigQuotedReference, at, "Quoted references are deprecated",
		"In this context, references are expected literally rather than in quotes. Remove the quotes.")
}
