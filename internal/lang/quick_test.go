package lang

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/zclconf/go-cty/cty/function"
)

// What is evaluated without HCL is what HCL makes of it, to the mark.
func TestQuickIsHCL(t *testing.T) {
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{
			"n": cty.NumberIntVal(7), "big": cty.MustParseNumberVal("123456789012345678901234567890"), "half": cty.MustParseNumberVal("0.5"),
			"neg": cty.MustParseNumberVal("-0"), "t": cty.True, "s": cty.StringVal("e\u0301"), "null": cty.NullVal(cty.String),
			"unknown": cty.UnknownVal(cty.String), "dyn": cty.DynamicVal, "secret": cty.StringVal("x").Mark("m"), "o": cty.ObjectVal(map[string]cty.Value{"a": cty.Zero}),
			"dynsecret": cty.DynamicVal.Mark("m"), "ratio": cty.NumberIntVal(1).Divide(cty.NumberIntVal(3)), "neg1": cty.NumberIntVal(-1),
		},
		Functions: map[string]function.Function{"upper": stdlib.UpperFunc},
	}
	for _, text := range []string{
		`{}`, `[]`, `{ a = 1, b = [n, "x-${n}"] }`, `{ (s) = 1 }`, `{ "a" = 1, a = 2 }`, `{ "${s}x" = n }`, `{ a = 1, a = 2 }`, `{ true = 1, null = 2 }`,
		`{ o.a = 1 }`, `{ (secret) = 1 }`, `{ (unknown) = 1 }`, `{ a = secret }`,
		`"${n}-${big}-${half}-${neg}-${neg1}-${ratio}-${t}-${s}"`, `"a${unknown}b"`, `"a${dyn}b"`, `"a${secret}b"`, `"a${dynsecret}b"`, `"e${"\u0301"}"`,
		`"a${[for x in [1, 2] : "x${x}"][1]}"`, `(("x${n}"))`, `"${n}"`, "<<E\n a ${n}\n b\nE\n", `"%{ if t }yes${n}%{ endif }."`, `upper("a${n}")`, `"x${upper("a")}${1.50}"`,
		`"a${null}b"`, `"a${o}b"`, `"a${missing}b"`, `[missing]`, `{ a = missing }`, `{ (null) = 1 }`, `"a${upper(o)}"`, `"a${1e400}"`,
	} {
		x, diags := hclsyntax.ParseExpression([]byte(text), "t", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%s: %s", text, diags)
		}
		want, diags := x.Value(ctx)
		got, ok := quick(x, ctx)
		if ok != (len(diags) == 0) {
			t.Errorf("%s: ok %v, but HCL says %q", text, ok, diags)
		}
		if ok && !got.RawEquals(want) {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
	}
}
