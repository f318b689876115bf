package state

import (
	"reflect"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Types are encoded like cty encodes them.
func TestEncodeType(t *testing.T) {
	for _, ty := range []cty.Type{
		cty.String, cty.Number, cty.Bool, cty.DynamicPseudoType, cty.List(cty.String), cty.Set(cty.Map(cty.DynamicPseudoType)), cty.EmptyTuple, cty.EmptyObject,
		cty.Tuple([]cty.Type{cty.String, cty.List(cty.Bool)}), cty.Object(map[string]cty.Type{"b": cty.Number, "a": cty.EmptyObject, "<é\"\\>": cty.Tuple([]cty.Type{cty.Bool})}),
		cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String, "b": cty.String}, []string{"b"}), cty.List(cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String}, []string{"a"})),
	} {
		want, err := ctyjson.MarshalType(ty)
		if err != nil {
			t.Fatal(err)
		}
		got, err := EncodeType(ty)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if _, err := EncodeType(cty.List(cty.Capsule("x", reflect.TypeFor[int]()))); err == nil {
		t.Error("a capsule was written")
	}
}
