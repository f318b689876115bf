package value_test

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

func TestStructural(t *testing.T) {
	s, null := cty.StringVal, cty.NullVal(cty.DynamicPseudoType)
	list := cty.ListVal([]cty.Value{s("a")})
	unknownList, secret := cty.UnknownVal(cty.List(cty.String)), s("x").Mark(value.Hidden)
	for _, c := range []struct {
		name          string
		v, want, kept cty.Value // kept is the result with keep; the zero value means that it equals want
	}{
		{"text", s("a"), s("a"), cty.NilVal},
		{"list", list, cty.TupleVal([]cty.Value{s("a")}), cty.NilVal},
		{"set", cty.SetVal([]cty.Value{s("b"), s("a")}), cty.TupleVal([]cty.Value{s("a"), s("b")}), cty.NilVal},
		{"empty list", cty.ListValEmpty(cty.String), cty.EmptyTupleVal, cty.NilVal},
		{"map of lists", cty.MapVal(map[string]cty.Value{"k": list}), cty.ObjectVal(map[string]cty.Value{"k": cty.TupleVal([]cty.Value{s("a")})}), cty.NilVal},
		{"null", cty.NullVal(cty.List(cty.String)), null, cty.NilVal},
		{"null inside", cty.ListVal([]cty.Value{cty.NullVal(cty.String)}), cty.TupleVal([]cty.Value{null}), cty.NilVal},
		{"unknown text", cty.UnknownVal(cty.String), cty.UnknownVal(cty.String), cty.NilVal},
		{"unknown list", unknownList, cty.DynamicVal, unknownList},
		{"unknown list inside", cty.ObjectVal(map[string]cty.Value{"l": unknownList}), cty.ObjectVal(map[string]cty.Value{"l": cty.DynamicVal}), cty.ObjectVal(map[string]cty.Value{"l": unknownList})},
		{"set with an unknown element", cty.SetVal([]cty.Value{s("a"), cty.UnknownVal(cty.String)}), cty.DynamicVal, cty.SetVal([]cty.Value{s("a"), cty.UnknownVal(cty.String)})},
		{"marks", cty.ListVal([]cty.Value{secret}).Mark(value.Sensitive), cty.TupleVal([]cty.Value{secret}).Mark(value.Sensitive), cty.NilVal},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := value.Structural(c.v, false); !got.RawEquals(c.want) {
				t.Errorf("%#v, not %#v", got, c.want)
			}
			if c.kept == cty.NilVal {
				c.kept = c.want
			}
			if got := value.Structural(c.v, true); !got.RawEquals(c.kept) {
				t.Errorf("with keep: %#v, not %#v", got, c.kept)
			}
		})
	}
}
