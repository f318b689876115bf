package value

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func TestMeasuredBy(t *testing.T) {
	v := cty.TupleVal([]cty.Value{cty.True, cty.True})
	for n, want := 3, 3; n < 200; n = want {
		if MeasuredBy(v, n) != nil {
			t.Errorf("%d values are more than %d", n, n)
		}
		if MeasuredBy(v.Mark(Sensitive), n-1) == nil {
			t.Errorf("%d values are no more than %d", n, n-1)
		}
		v, want = cty.TupleVal([]cty.Value{v, v}), 2*n+1
	}
	for i := 0; i < 60; i++ { // 2^60 values
		v = cty.TupleVal([]cty.Value{v, v})
	}
	if Measured(v) == nil {
		t.Error("a value that doubles 60 times is not too much")
	}
	list := make([]cty.Value, 1000)
	for i := range list {
		list[i] = cty.StringVal("x")
	}
	if MeasuredBy(cty.ListVal(list), 1001) != nil || MeasuredBy(cty.ListVal(list), 1000) == nil {
		t.Error("a list of 1000 texts is not 1001 values")
	}
}

func TestLoops(t *testing.T) {
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{
		"two":     cty.TupleVal([]cty.Value{cty.True, cty.True}),
		"none":    cty.EmptyTupleVal,
		"unknown": cty.DynamicVal,
		"nested": cty.TupleVal([]cty.Value{
			cty.TupleVal([]cty.Value{cty.True, cty.True, cty.True}), cty.EmptyTupleVal,
		}),
	}}
	for text, want := range map[string]float64{
		"[for a in two : a]":                                        2,
		"[for a in two : [for b in two : b]]":                       6,
		"[for a in two : [for b in two : [for c in two : c]]]":      14,
		"[for a in two : [for b in none : [for c in two : c]]]":     2,
		"[for a in nested : [for b in a : b]]":                      5,
		"[for a in nested : [for b in two : [for c in a : c]]]":     12,
		"[for a in [for b in two : two] : [for c in a : c]]":        8,
		"[for a in unknown : [for b in two : b]]":                   0,
		"{for k, a in two : k => [for b in two : b] if k > 0}":      6,
		"[for a in two : a if length([for b in two : b]) > 1]":      6,
		"[[for a in two : a], [for a in two : [for b in two : b]]]": 8,
		`"%{for a in two}%{for b in two}x%{endfor}%{endfor}"`:       6,
		"[for a in two : [for a in nested : [for b in a : b]]]":     12,
	} {
		x, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(text, diags)
		}
		if got := turns(LoopsOf(x).loops, ctx, 1e6); got != want {
			t.Errorf("%s: %v turns, want %v", text, got, want)
		}
	}
}
