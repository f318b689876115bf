package inputs

import (
	"math/rand/v2"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

// If always reports that every value of a type can be converted, each value can, also one with null and
// unknown parts.
func TestAlways(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	yes := 0
	for range 20_000 {
		v, want := randomValue(r, 3), randomValue(r, 3).Type()
		if !always(v.Type(), want) {
			continue
		}
		if v.Type() != want {
			yes++
		}
		if _, err := value.Convert(v, want); err != nil {
			t.Fatalf("%#v to %s: %v", v, want.FriendlyName(), err)
		}
	}
	if yes < 100 {
		t.Fatalf("only %d conversions were tried", yes)
	}
}

// randomValue returns a value of a type with at most depth collections around a primitive value.
func randomValue(r *rand.Rand, depth int) cty.Value {
	primitive := []cty.Value{cty.StringVal("a"), cty.StringVal("1"), cty.NumberIntVal(2), cty.True, cty.NullVal(cty.String), cty.UnknownVal(cty.Number), cty.NullVal(cty.DynamicPseudoType), cty.DynamicVal}
	if depth == 0 || r.IntN(3) == 0 {
		return primitive[r.IntN(len(primitive))]
	}
	one := randomValue(r, depth-1)
	switch r.IntN(6) {
	case 0:
		return cty.ListVal([]cty.Value{one})
	case 1:
		return cty.MapVal(map[string]cty.Value{"k": one})
	case 2:
		return cty.TupleVal([]cty.Value{one, randomValue(r, depth-1)})
	case 3:
		return cty.ListValEmpty(one.Type())
	case 4:
		return cty.SetVal([]cty.Value{one})
	}
	return cty.ObjectVal(map[string]cty.Value{"k": one, "l": randomValue(r, depth-1)})
}
