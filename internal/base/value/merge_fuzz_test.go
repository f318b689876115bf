package value

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// FuzzDeepMerge checks the laws of deep merge on values from JSON: an empty layer is
// neutral, scalars of the later layer win, and merging is associative if there are neither
// nulls nor conflicting kinds.
func FuzzDeepMerge(f *testing.F) {
	f.Add(`{"a":1,"l":[1]}`, `{"a":false,"l":["x"]}`, `{"b":{"c":null}}`)
	f.Add(`{"a":{"b":[{}]}}`, `{"a":{"b":[]}}`, `{"a":{"b":[[]],"c":""}}`)
	f.Add(`{"a":1}`, `{"a":{}}`, `{"a":[]}`)
	f.Fuzz(func(t *testing.T, x, y, z string) {
		a, okA := fromJSON(x)
		b, okB := fromJSON(y)
		c, okC := fromJSON(z)
		if !okA || !okB || !okC {
			t.Skip()
		}
		for _, layers := range [][2]cty.Value{{a, cty.EmptyObjectVal}, {cty.EmptyObjectVal, a}} {
			v, err := DeepMerge(layers[0], layers[1])
			if err != nil || !v.RawEquals(a) {
				t.Errorf("an empty layer changes %s: %#v, %v", x, v, err)
			}
		}
		ab, err := DeepMerge(a, b)
		if err != nil {
			return
		}
		for name, later := range b.AsValueMap() {
			if later.Type().IsPrimitiveType() && !ab.GetAttr(name).RawEquals(later) {
				t.Errorf("%s of %s is lost over %s: %#v", name, y, x, ab)
			}
		}
		if hasNull(a) || hasNull(b) || hasNull(c) {
			return
		}
		left, err1 := DeepMerge(ab, c)
		bc, err2 := DeepMerge(b, c)
		if err1 != nil || err2 != nil {
			return
		}
		right, err := DeepMerge(a, bc)
		if err != nil || !left.RawEquals(right) {
			t.Errorf("grouping matters for %s, %s, %s: %#v, %#v, %v", x, y, z, left, right, err)
		}
	})
}

func fromJSON(s string) (cty.Value, bool) {
	ty, err := ctyjson.ImpliedType([]byte(s))
	if err != nil || !ty.IsObjectType() {
		return cty.NilVal, false
	}
	v, err := ctyjson.Unmarshal([]byte(s), ty)
	return v, err == nil && !v.IsNull()
}

func hasNull(v cty.Value) bool {
	for _, part := range cty.DeepValues(v) {
		if part.IsNull() {
			return true
		}
	}
	return false
}
