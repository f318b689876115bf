package lang

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const noSuch = "There is none."

// names is a scope of variables.
type names struct{ ctx *hcl.EvalContext }

func (n names) Resolve(_ *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	v, ok := n.ctx.Variables[ref.RootName()]
	if !ok {
		return cty.DynamicVal, 1, diag.Errorf("", at, "No such variable", noSuch)
	}
	return v, 1, nil
}

func (n names) Functions(*demand.Task, []string) (map[string]function.Function, diag.List) {
	return n.ctx.Functions, nil
}

// quickIn runs quick with the variables and functions of a context.
func quickIn(x hcl.Expression, ctx *hcl.EvalContext) (cty.Value, bool) {
	in := evaluation{scope: names{ctx}, expr: Compile(x)}
	if in.resolve(); in.ds.HasErrors() {
		return cty.DynamicVal, false
	}
	return quick(x, &in)
}

// quickContext returns a context with everything to which quickTexts refer.
func quickContext() *hcl.EvalContext {
	return &hcl.EvalContext{
		Variables: map[string]cty.Value{
			"n": cty.NumberIntVal(7), "big": cty.MustParseNumberVal("123456789012345678901234567890"), "half": cty.MustParseNumberVal("0.5"),
			"neg": cty.MustParseNumberVal("-0"), "t": cty.True, "s": cty.StringVal("e\u0301"), "null": cty.NullVal(cty.String),
			"unknown": cty.UnknownVal(cty.String), "dyn": cty.DynamicVal, "secret": cty.StringVal("x").Mark("m"), "o": cty.ObjectVal(map[string]cty.Value{"a": cty.Zero}),
			"dynsecret": cty.DynamicVal.Mark("m"), "ratio": cty.NumberIntVal(1).Divide(cty.NumberIntVal(3)), "neg1": cty.NumberIntVal(-1),
		},
		Functions: map[string]function.Function{
			"upper": stdlib.UpperFunc, "length": stdlib.LengthFunc, "max": stdlib.MaxFunc, "concat": stdlib.ConcatFunc, "try": tryfunc.TryFunc, "format": stdlib.FormatFunc,
		},
	}
}

var quickTexts = []string{
	`{}`, `[]`, `{ a = 1, b = [n, "x-${n}"] }`, `{ (s) = 1 }`, `{ "a" = 1, a = 2 }`, `{ "${s}x" = n }`, `{ a = 1, a = 2 }`, `{ true = 1, null = 2 }`,
	`{ o.a = 1 }`, `{ (secret) = 1 }`, `{ (unknown) = 1 }`, `{ a = secret }`,
	`"${n}-${big}-${half}-${neg}-${neg1}-${ratio}-${t}-${s}"`, `"a${unknown}b"`, `"a${dyn}b"`, `"a${secret}b"`, `"a${dynsecret}b"`, `"e${"\u0301"}"`,
	`"a${[for x in [1, 2] : "x${x}"][1]}"`, `(("x${n}"))`, `"${n}"`, "<<E\n a ${n}\n b\nE\n", `"%{ if t }yes${n}%{ endif }."`, `upper("a${n}")`, `"x${upper("a")}${1.50}"`,
	`o.a`, `o["a"]`, `o.b`, `o[s]`, `secret.a`, `dyn.a.b[0]`, `unknown`, `unknown.x`, `[1, 2][n % 2]`, `[1, 2][2]`, `[1][secret]`, `[1][unknown]`, `{ a = 1 }["a"]`, `missing[0]`, `s[0]`,
	`n + 1`, `n - big`, `n * half`, `n / 2`, `n / 0`, `n % 3`, `n % 0`, `neg1 % 3`, `neg1 % half`, `n % neg1`, `ratio * 3`, `n < 1`, `n <= 7`, `n > half`, `n >= "7"`, `"1" + n`, `s + 1`, `secret + 1`, `unknown + 1`,
	`n + null`, `n == 7`, `n != "7"`, `t && n > 1`, `!t || missing`, `-n`, `1 / 0 + n`, `n + 1 / ratio * (half - 2)`, `t ? n : s`, `t ? n : missing`, `t ? o : n`, `t ? null : s`, `secret == "x" ? 1 : 2`, `unknown == "x" ? 1 : 2`, `null ? 1 : 2`, `t ? unknown : dyn`,
	`-neg1`, `-secret`, `-unknown`, `-"7"`, `-half`, `-neg`, `!t`, `!null`, `!dyn`, `n == unknown`, `secret == s`, `o == o`, `t || unknown == "x"`, `false && unknown == "x"`, `"${o}"`, `"${null}"`, `"${unknown}"`, `"a${unknown}${secret}b${n}"`, `"${unknown}a${null}"`, `(o).a`, `[o][0].a`, `[o][0].b`, `{ a = o }.a.a`,
	`length("aé")`, `length(o)`, `max(1, n, half)`, `max()`, `max("8", n)`, `max(secret, 1)`, `max(unknown, 1)`, `max(null, 1)`, `max([1, n]...)`, `upper()`, `upper("a", "b")`, `upper(missing)`, `lower("A")`,
	`concat([1], [n, s], [secret])`, `concat([1], dyn)`, `concat(1)`, `format("%s-%d", s, n)`, `format("%d", s)`, `try(o.b, n)`, `try(upper(o), upper("x"))`, `upper(try(o.b, s))`,
	`[for x in [1, 2] : x + n][1]`, `[for n in [1] : n]`, `{ a = [for o in [s] : upper(o)][0], b = o.a }`, `[o, o][*].a`, `[o][n - 7].a`,
	`[for x in [1, n, "a"] : "${x}-${s}"]`, `[for i, x in [s, s] : "${i}${x}" if i > 0]`, `{ for k, v in o : k => v }`, `{ for x in [1, 2, 3] : x % 2 == 0 ? "even" : "odd" => x... }`, `{ for x in ["a", "b", "c"] : upper(x) => x if x != s }`,
	`{ for x in ["a", "a"] : x => x }`, `{ for x in [1, 2] : x => x }`, `[for x in unknown : x]`, `[for x in secret : x]`, `[for x in null : x]`, `[for x in n : x]`, `[for x in [secret, unknown] : x]`, `[for x in [secret] : x if x == "x"]`, `[for x in [] : x if 7]`, `[for x in [1] : x if null]`,
	`[for x in [1] : x if missing]`, `[for x in [1] : missing]`, `[for x in [o, {}] : try(x.a, s)]`, `[for x in [[1, 2], [n]] : [for y in x : [for n in [y] : n + x[0]][0] + n]]`, `{ for x in [null] : x => 1 }`, `{ for x in [unknown] : x => 1 }`, `{ for x in [secret] : x => 1 }`, `{ for x in [] : x => 1 }`, `{ for x in [] : x => 1... }`,
	`[for x in ["true", "x"] : x if x]`, `[for x in [true, false] : x if x]`, `[for x in [1] : dyn if unknown == x]`, `[for x in [{ a = 1 }] : x.b]`, `[for x in [{ a = 1 }] : x.a if x.a == 1 && o.a == 0]`, `[for o in [1] : o.a]`,
	`[n, n, s, half, neg, t, big, o, o.a, null, unknown, ratio, n]`,
	`"a${null}b"`, `"a${o}b"`, `"a${missing}b"`, `[missing]`, `{ a = missing }`, `{ (null) = 1 }`, `"a${upper(o)}"`, `"a${1e400}"`,
}

// Evaluation without HCL has the same results as with HCL, including marks.
func TestQuickIsHCL(t *testing.T) {
	ctx := quickContext()
	for _, text := range quickTexts {
		x, diags := hclsyntax.ParseExpression([]byte(text), "t", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%s: %s", text, diags)
		}
		want, diags := x.Value(ctx)
		got, ok := quickIn(x, ctx)
		if branches := strings.ContainsAny(text, "?&|"); ok && len(diags) > 0 || !ok && len(diags) == 0 && !branches {
			t.Errorf("%s: ok %v, but HCL says %q", text, ok, diags)
		}
		if ok && !got.RawEquals(want) {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
		if d := stepsDiffer(text, ctx); d != "" {
			t.Errorf("%s by steps: %s", text, d)
		}
	}
}

// stepsDiffer describes the difference between the value of a compiled expression and HCL's.
func stepsDiffer(text string, ctx *hcl.EvalContext) string {
	f, ok := hclnative.Scan([]byte("x = "+text+"\n"), "t")
	if !ok || len(f.Body.Attrs) != 1 || len(f.Body.Blocks) > 0 {
		return ""
	}
	content, _ := f.Body.LateContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: f.Body.Attrs[0].Name}}})
	late := content.Attributes[f.Body.Attrs[0].Name].Expr.(*hclnative.Late)
	e := Compile(late)
	if e.Constant(); e.tree != nil && e.tree.huge != nil {
		return "" // HCL would print it
	}
	want, diags := late.Tree().Value(ctx)
	if e.tree == nil {
		got, ok := e.run(nil, names{ctx})
		if ok && len(diags) > 0 {
			return "no error, but HCL says " + diags.Error()
		}
		if ok && !got.RawEquals(want) {
			return fmt.Sprintf("%#v, want %#v", got, want)
		}
	}
	got, ds := Eval(nil, names{ctx}, e, cty.DynamicPseudoType)
	if ds.HasErrors() && !diags.HasErrors() && ds[len(ds)-1].Code != "lang/too-large" && ds[0].Detail != noSuch { // scopes resolve all references
		return fmt.Sprintf("%s, which HCL does not say", ds[0].Detail)
	}
	if !ds.HasErrors() && !got.RawEquals(want) {
		return fmt.Sprintf("evaluated: %#v, want %#v", got, want)
	}
	return ""
}

// Compiled expressions have the same values as with HCL.
func FuzzSteps(f *testing.F) {
	for _, text := range quickTexts {
		f.Add(text)
	}
	ctx := quickContext()
	f.Fuzz(func(t *testing.T, text string) {
		if d := stepsDiffer(text, ctx); d != "" {
			t.Error(d)
		}
	})
}
