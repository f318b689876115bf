package rules

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
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
		cty.UnknownVal(cty.String), cty.UnknownVal(cty.Number), cty.DynamicVal, object("a", cty.UnknownVal(cty.String)), str("?string"),
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
		cty.UnknownVal(cty.String).RefineNotNull(), cty.UnknownVal(cty.EmptyObject), cty.UnknownVal(cty.String).Mark(value.Sensitive), str("a").Mark(value.Sensitive), object("a", str("b").Mark(value.Sensitive)),
		str(string(long)), cty.ListValEmpty(cty.EmptyObject), cty.NullVal(cty.EmptyObject),
	} {
		if key, ok := appendValue(nil, v); ok {
			t.Errorf("%#v has the key %q", v, key)
		}
	}
}

// An attribute that a known object lacks has no value. Other paths without a value cannot be compared.
func TestFollow(t *testing.T) {
	v := cty.ObjectVal(map[string]cty.Value{
		"a": cty.ObjectVal(map[string]cty.Value{"b": cty.StringVal("x")}), "null": cty.NullVal(cty.EmptyObject),
		"list": cty.TupleVal([]cty.Value{cty.True}), "secret": cty.EmptyObjectVal.Mark(value.Sensitive), "any": cty.DynamicVal,
	})
	attr := func(names ...string) (out hcl.Traversal) {
		for _, name := range names {
			out = append(out, hcl.TraverseAttr{Name: name})
		}
		return out
	}
	for _, c := range []struct {
		path hcl.Traversal
		want cty.Value
		ok   bool
	}{
		{attr("a", "b"), cty.StringVal("x"), true},
		{attr("a", "c"), cty.NilVal, true},
		{attr("a", "c", "d"), cty.NilVal, true},
		{attr("any", "c"), cty.DynamicVal, true},
		{attr("null", "c"), cty.NilVal, false},
		{attr("secret", "c"), cty.NilVal, false},
		{attr("a", "b", "c"), cty.NilVal, false},
		{append(attr("list"), hcl.TraverseIndex{Key: cty.NumberIntVal(0)}), cty.True, true},
		{append(attr("list"), hcl.TraverseIndex{Key: cty.NumberIntVal(1)}), cty.NilVal, false},
	} {
		got, ok := follow(v, c.path)
		if ok != c.ok || ok && (got == cty.NilVal) != (c.want == cty.NilVal) || ok && got != cty.NilVal && !got.RawEquals(c.want) {
			t.Errorf("%v: %#v, %t", c.path, got, ok)
		}
	}
}
