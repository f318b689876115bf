package hclnative

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// compareCode returns the differences between the steps of an argument and its tree, or "".
func compareCode(x *Late, tree hclsyntax.Expression) string {
	if x.Range() != tree.Range() || x.StartRange() != tree.StartRange() {
		return fmt.Sprintf("at %v, want %v", x.Range(), tree.Range())
	}
	want, plain := written(tree)
	code, ok := x.Code()
	switch {
	case ok && !plain:
		return "steps for what has none: " + want
	case !ok && plain && !strings.Contains(want, "[cty.") && !strings.Contains(x.in.file.text, "%{"):
		return "no steps for " + want
	case !ok:
		return ""
	}
	if got := code.written(); got != want {
		return fmt.Sprintf("%s, want %s", got, want)
	}
	at := map[string]hcl.Range{}
	for _, ref := range tree.Variables() {
		if text := writtenPath(ref); at[text] == (hcl.Range{}) {
			at[text] = ref.SourceRange()
		}
	}
	for _, ref := range code.Refs {
		if want := at[writtenPath(ref.Traversal)]; ref.At != want && len(code.Refs) == len(at) {
			return fmt.Sprintf("%s is at %v, want %v", writtenPath(ref.Traversal), ref.At, want)
		}
	}
	return ""
}

// written returns an expression on one line, without ranges. It returns false if the expression
// cannot be compiled to steps. An index with a literal, [cty…], may not be compiled either.
func written(x hclsyntax.Expression) (string, bool) {
	var b strings.Builder
	ok := write(&b, x)
	return b.String(), ok
}

func write(b *strings.Builder, x hclsyntax.Expression) bool {
	all := func(op string, xs ...hclsyntax.Expression) bool {
		ok := true
		b.WriteString("(" + op)
		for _, x := range xs {
			b.WriteByte(' ')
			ok = write(b, x) && ok
		}
		b.WriteByte(')')
		return ok
	}
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		b.WriteString(literal(x.Val))
		return true
	case *hclsyntax.ScopeTraversalExpr:
		b.WriteString(writtenPath(x.Traversal))
		return true
	case *hclsyntax.ParenthesesExpr:
		return write(b, x.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return write(b, x.Wrapped)
	case *hclsyntax.RelativeTraversalExpr:
		ok := write(b, x.Source)
		b.WriteString(writtenPath(x.Traversal))
		return ok
	case *hclsyntax.IndexExpr:
		return all("index", x.Collection, x.Key)
	case *hclsyntax.BinaryOpExpr:
		return all(fmt.Sprintf("%p", x.Op), x.LHS, x.RHS)
	case *hclsyntax.UnaryOpExpr:
		return all(fmt.Sprintf("%p", x.Op), x.Val)
	case *hclsyntax.ConditionalExpr:
		return all("if", x.Condition, x.TrueResult, x.FalseResult)
	case *hclsyntax.FunctionCallExpr:
		return all("call "+x.Name, x.Args...) && !x.ExpandFinal
	case *hclsyntax.TupleConsExpr:
		return all("tuple", x.Exprs...)
	case *hclsyntax.TemplateExpr:
		if x.IsStringLiteral() {
			return write(b, x.Parts[0])
		}
		parts, ok := make([]string, len(x.Parts)), true
		for i := range parts {
			var plain bool
			parts[i], plain = written(x.Parts[i])
			ok = ok && plain
		}
		b.WriteString(joined(parts))
		return ok
	case *hclsyntax.ObjectConsExpr:
		ok := true
		var values []hclsyntax.Expression
		op := "object"
		for _, item := range x.Items {
			values = append(values, item.ValueExpr)
			key := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
			name := hcl.ExprAsKeyword(key.Wrapped)
			if t, isText := key.Wrapped.(*hclsyntax.TemplateExpr); isText && t.IsStringLiteral() && !key.ForceNonLiteral {
				v, _ := t.Value(nil)
				name = v.AsString()
			} else if name == "" || key.ForceNonLiteral {
				ok = false
			}
			op += fmt.Sprintf(" %q", name)
		}
		return all(op, values...) && ok
	}
	fmt.Fprintf(b, "(%T)", x)
	return false
}

// literal returns a constant as text. It writes numbers with a binary exponent, because decimal
// numbers with large exponents take minutes.
func literal(v cty.Value) string {
	if v.Type() == cty.Number && !v.IsNull() {
		return "cty.Number(" + v.AsBigFloat().Text('p', 0) + ")"
	}
	return fmt.Sprintf("%#v", v)
}

func writtenPath(path hcl.Traversal) string {
	var b strings.Builder
	for _, s := range path {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + literal(s.Key) + "]")
		}
	}
	return b.String()
}

// written returns the expression of the steps in the form of the function written.
func (c *Code) written() string {
	var stack []string
	for _, s := range c.Steps {
		take := func(op string, n int) {
			rest := len(stack) - n
			text := strings.Join(append([]string{op}, stack[rest:]...), " ")
			stack = append(stack[:rest], "("+text+")")
		}
		switch s.Op {
		case Const:
			stack = append(stack, literal(c.Values[s.A]))
		case Refer:
			stack = append(stack, writtenPath(c.Refs[s.A].Traversal))
		case Take:
			stack[len(stack)-1] += writtenPath(c.Paths[s.A])
		case Index:
			take("index", 2)
		case Binary:
			take(fmt.Sprintf("%p", s.Operator()), 2)
		case Unary:
			take(fmt.Sprintf("%p", s.Operator()), 1)
		case Cond:
			take("if", 3)
		case Call:
			take("call "+c.Names[s.A], int(s.N))
		case Tuple:
			take("tuple", int(s.A))
		case Object:
			op := "object"
			for _, name := range c.Names[s.A : s.A+uint32(s.N)] {
				op += fmt.Sprintf(" %q", name)
			}
			take(op, int(s.N))
		case Template:
			n := len(stack) - int(s.A)
			stack = append(stack[:n], joined(stack[n:]))
		}
	}
	if len(stack) != 1 {
		return fmt.Sprintf("%d values: %q", len(stack), stack)
	}
	return stack[0]
}

// joined returns a template with the given parts. It joins consecutive literals.
func joined(parts []string) string {
	var out []string
	text := ""
	end := func() {
		if text != "" {
			out = append(out, fmt.Sprintf("%q", cty.StringVal(text).AsString()))
		}
		text = ""
	}
	for _, part := range parts {
		if quoted, ok := strings.CutPrefix(part, "cty.StringVal("); ok {
			s, _ := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
			text += s
			continue
		}
		end()
		out = append(out, part)
	}
	end()
	return "(text " + strings.Join(out, " ") + ")"
}

// Steps have the same meaning as the tree, and the ranges of references are correct.
func TestCode(t *testing.T) {
	for _, text := range []string{
		`1`, `-1`, `!a`, `a`, `a.b`, `a["k"].c`, `a[0]`, `a.0`, `a[b].c`, `a[b.c[d]].e[1].f`, `f(a, 1).b[2]`, `(a).b`, `"x".y`, `a["x${b}"]`, `a[("x")]`, `a[true]`, `a[1 + 2].b`,
		`"a"`, `""`, `"a${b}c"`, `"${a}"`, `"a$${b"`, `"a${b}$${c}${d}"`, `"${"a"}"`, `a["${"b"}"]`, `"\u00e9${a}"`, "<<E\n a ${b}\n c\nE\n", "<<-E\n   a ${b}\n  c\n  E\n", "<<E\nE\n", "<<E\na\nb\nE\n", `"a ${~ b ~} c"`,
		`"%{ if a }b%{ endif }"`, `[]`, `[a, 1, [b]]`, `{}`, `{ a = 1, "b" = { c = d }, e : [f] }`, `{ (a) = 1 }`, `{ a.b = 1 }`, `{ 1 = 2 }`, `{ true = 1, null = 2 }`, `{ "a${b}" = 1 }`,
		`[for x in a : x]`, `a[*].b`, `a.*.b`, `f(a...)`, `p::f::g(a)`, `a ? b : c`, `a && b || !c == d`, `a + b * c - d % 2 / -e`, `[a, a, b, c, d, e, f, g, h, i, j, a, j, i, k]`, `1e999999999`, `a[1e999999999]`, `-1e-99999999`, `null`, `true`, `[true, false, null].x`,
	} {
		src := "x = " + text + "\n"
		f, ok := Scan([]byte(src), "f")
		if !ok {
			t.Fatal(src)
		}
		content, diags := f.Body.LateContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "x"}}})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		x := content.Attributes["x"].Expr.(*Late)
		if d := compareCode(x, x.Tree()); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	// LateContent reports arguments that are not in the schema.
	f, _ := Scan([]byte("x = 1\ny = 2\n"), "f")
	if _, diags := f.Body.LateContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "x"}}}); len(diags) != 1 || !strings.Contains(diags[0].Detail, `"y"`) {
		t.Error(diags)
	}
}

// A Late has the same results as its tree.
func TestLate(t *testing.T) {
	f, _ := Scan([]byte("x = [a, b.c]\n"), "f")
	content, _ := f.Body.LateContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "x"}}})
	x := content.Attributes["x"].Expr
	if list, diags := hcl.ExprList(x); len(list) != 2 || diags.HasErrors() {
		t.Error(list, diags)
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"a": cty.True, "b": cty.ObjectVal(map[string]cty.Value{"c": cty.Zero})}}
	if v, diags := x.Value(ctx); diags.HasErrors() || !v.RawEquals(cty.TupleVal([]cty.Value{cty.True, cty.Zero})) {
		t.Error(v, diags)
	}
}
