package syntax

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The value of a literal is the one that HCL computes.
func TestLiteralValue(t *testing.T) {
	n := 0
	for _, text := range []string{
		`"a"`, `""`, `"a\n\"b"`, `"${"a"}"`, `"${1}"`, `1`, `-1`, `1e3`, `true`, `null`, `[]`, `["a", 1, null, [true]]`, `["${"a"}"]`,
		`{ a = 1 }`, `[{}]`, "<<E\nx\nE\n", `{ null = 1, true = 2, "k" = 3, (4) = 5 }`,
	} {
		x, diags := hclsyntax.ParseExpression([]byte(text), "f", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(text, diags)
		}
		all := []hclsyntax.Expression{x}
		if o, ok := x.(*hclsyntax.ObjectConsExpr); ok {
			for _, i := range o.Items {
				all = append(all, i.KeyExpr, i.ValueExpr)
			}
		}
		for _, x := range all {
			if !literal(x) {
				continue
			}
			want, diags := x.Value(nil)
			if n++; diags.HasErrors() || !literalValue(x).RawEquals(want) {
				t.Errorf("%s: %#v, want %#v", text, literalValue(x), want)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d expressions are literals", n)
	}
}
