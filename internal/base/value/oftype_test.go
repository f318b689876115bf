package value

import (
	"reflect"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestOfType(t *testing.T) {
	str := cty.StringVal
	nested := map[string]cty.Value{"a": str("x").Mark("m"), "b": cty.ListVal([]cty.Value{cty.UnknownVal(cty.String)}), "c": cty.NullVal(cty.DynamicPseudoType)}
	ty := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.List(cty.String), "c": cty.DynamicPseudoType})
	same := func(a, b cty.Type) bool {
		return reflect.ValueOf(a.AttributeTypes()).Pointer() == reflect.ValueOf(b.AttributeTypes()).Pointer()
	}
	for _, tt := range []struct {
		name   string
		v      cty.Value
		ty     cty.Type
		shared bool
	}{
		{"marks and unknown parts stay", cty.ObjectVal(nested), ty, true},
		{"null", cty.NullVal(cty.Object(ty.AttributeTypes())), ty, true},
		{"unknown", cty.UnknownVal(cty.Object(map[string]cty.Type{"a": cty.String})), cty.Object(map[string]cty.Type{"a": cty.String}), true},
		{"marked as a whole", cty.ObjectVal(nested).Mark("m"), ty, false},
		{"another type in place of any", cty.ObjectVal(map[string]cty.Value{"a": str("x"), "b": nested["b"], "c": str("y")}), ty, false},
		{"other attributes", cty.ObjectVal(map[string]cty.Value{"x": str("x")}), ty, false},
	} {
		got := OfType(tt.v, tt.ty)
		if !got.RawEquals(tt.v) {
			t.Errorf("%s: %#v became %#v", tt.name, tt.v, got)
		}
		if same(got.Type(), tt.ty) != tt.shared {
			t.Errorf("%s: the type is shared: %v, want %v", tt.name, !tt.shared, tt.shared)
		}
	}
	for _, v := range []cty.Value{cty.NilVal, str("x"), cty.DynamicVal} {
		if got := OfType(v, ty); got != v {
			t.Errorf("%#v became %#v", v, got)
		}
	}
}
