package rules

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// Different values have different keys; values that cannot be compared have none.
func TestAppendValue(t *testing.T) {
	object := func(k string, v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{k: v}) }
	str := cty.StringVal
	values := []cty.Value{
		str(""), str("a"), str("1"), cty.NumberIntVal(1), cty.MustParseNumberVal("1.5"), cty.MustParseNumberVal("0.1"), cty.NumberFloatVal(0.1),
		cty.True, cty.False, cty.NullVal(cty.String), cty.NullVal(cty.Bool), cty.NullVal(cty.DynamicPseudoType),
		cty.EmptyObjectVal, cty.EmptyTupleVal, cty.ListValEmpty(cty.String), cty.ListValEmpty(cty.Number), cty.MapValEmpty(cty.String), cty.SetValEmpty(cty.String),
		object("a", str("b")), object("b", str("a")), object("ab", str("")), object("a", object("b", str(""))), cty.MapVal(map[string]cty.Value{"a": str("b")}),
		cty.TupleVal([]cty.Value{str("a"), str("b")}), cty.TupleVal([]cty.Value{str("ab")}), cty.ListVal([]cty.Value{str("a"), str("b")}), cty.SetVal([]cty.Value{str("a"), str("b")}),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{str("a")}), str("b")}), cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{str("a"), str("b")})}),
	}
	seen := map[string]cty.Value{}
	for _, v := range values {
		key, ok := appendValue(nil, v)
		if !ok {
			t.Errorf("%#v has no key", v)
		}
		if other, ok := seen[string(key)]; ok {
			t.Errorf("%#v and %#v have the same key", v, other)
		}
		seen[string(key)] = v
	}
	long := make([]byte, maxKey+1)
	for _, v := range []cty.Value{
		cty.UnknownVal(cty.String), cty.DynamicVal, str("a").Mark(value.Sensitive), object("a", cty.UnknownVal(cty.String)), object("a", str("b").Mark(value.Sensitive)),
		str(string(long)), cty.ListValEmpty(cty.EmptyObject), cty.NullVal(cty.EmptyObject),
	} {
		if key, ok := appendValue(nil, v); ok {
			t.Errorf("%#v has the key %q", v, key)
		}
	}
}
