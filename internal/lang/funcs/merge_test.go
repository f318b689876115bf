package funcs

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestMerge compares merge with cty's for all pairs of some values.
func TestMerge(t *testing.T) {
	s := cty.StringVal
	obj := func(v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": v, "b": s("b")}) }
	values := []cty.Value{
		cty.EmptyObjectVal, obj(s("a")), obj(cty.NumberIntVal(1)), obj(cty.UnknownVal(cty.String)), obj(cty.DynamicVal), obj(cty.NullVal(cty.DynamicPseudoType)),
		obj(s("a").Mark("m")), obj(s("a")).Mark("m"), cty.UnknownVal(obj(s("a")).Type()), cty.NullVal(obj(s("a")).Type()), cty.DynamicVal, cty.NullVal(cty.DynamicPseudoType),
		cty.MapVal(map[string]cty.Value{"c": s("c")}), cty.MapValEmpty(cty.String), cty.UnknownVal(cty.Map(cty.Number)), cty.MapVal(map[string]cty.Value{"a": cty.NumberIntVal(2)}).Mark("n"),
		s("text"), cty.ObjectVal(map[string]cty.Value{"e\u0301": s("accent")}),
	}
	same := func(args ...cty.Value) {
		t.Helper()
		want, err := stdlib.MergeFunc.Call(args)
		got, gotErr := mergeFunc().Call(args)
		if (err == nil) != (gotErr == nil) {
			t.Fatalf("merge(%#v): error %v, want %v", args, gotErr, err)
		}
		if err == nil && !got.RawEquals(want) {
			t.Fatalf("merge(%#v) is\n%#v, want\n%#v", args, got, want)
		}
	}
	same()
	for _, a := range values {
		same(a)
		for _, b := range values {
			same(a, b)
			same(a, b, values[1])
		}
	}
}
