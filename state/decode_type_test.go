package state

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestTypeQuick(t *testing.T) {
	for _, test := range []struct {
		src  string
		want cty.Type // cty.NilType: decoded by cty
	}{
		{`"dynamic"`, cty.DynamicPseudoType},
		{`["list","string"]`, cty.List(cty.String)},
		{`["set",["map","bool"]]`, cty.Set(cty.Map(cty.Bool))},
		{`["tuple",[]]`, cty.EmptyTuple},
		{`["object",{"a":"string","b":["tuple",["number","number"]]}]`, cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Tuple([]cty.Type{cty.Number, cty.Number})})},
		{`["object",{"a":"string"},["a"]]`, cty.NilType},
		{`["object",{"a":"string","a":"bool"}]`, cty.NilType},
		{`["list"]`, cty.NilType}, {`[]`, cty.NilType}, {`["tuple","string"]`, cty.NilType}, {`["object",[]]`, cty.NilType},
		{`["what","string"]`, cty.NilType}, {`"what"`, cty.NilType}, {`1`, cty.NilType}, {`["list","string"] x`, cty.NilType}, {``, cty.NilType},
	} {
		got, err := typeQuick([]byte(test.src))
		if test.want == cty.NilType {
			if err == nil {
				t.Errorf("%s is %#v", test.src, got)
			}
			continue
		}
		if err != nil || !got.Equals(test.want) {
			t.Errorf("%s is %#v, %v", test.src, got, err)
		}
	}
}

// FuzzTypeQuick compares the quick decoder with cty's.
func FuzzTypeQuick(f *testing.F) {
	f.Add([]byte(`["object",{"a":"string","b":["tuple",["number","dynamic"]]}]`))
	f.Add([]byte(`["set",["map","bool"]]`))
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := typeQuick(src)
		if err != nil {
			return
		}
		want, err := typeSlow(src)
		if err != nil {
			t.Fatalf("%s is %#v, and to cty's reader: %v", src, got, err)
		}
		if !got.Equals(want) {
			t.Fatalf("%s is %#v, want %#v", src, got, want)
		}
	})
}
