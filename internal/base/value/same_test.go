package value

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestSame compares Same with RawEquals, on values of a few types that often differ in one
// part.
func TestSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	equal := 0
	for range 200_000 {
		a, b := randomValue(r, 3), randomValue(r, 3)
		if r.IntN(2) == 0 {
			b = cty.ObjectVal(map[string]cty.Value{"a": a, "b": cty.True})
			a = cty.ObjectVal(map[string]cty.Value{"a": changed(r, a), "b": cty.True})
		}
		want := a.RawEquals(b)
		if want {
			equal++
		}
		if got := Same(a, b); got != want {
			t.Fatalf("%#v and %#v: %t, want %t", a, b, got, want)
		}
	}
	if equal < 10_000 {
		t.Errorf("only %d pairs were equal", equal)
	}
	if !Same(cty.NilVal, cty.NilVal) || Same(cty.NilVal, cty.True) {
		t.Error("nothing is the same as nothing, and as nothing else")
	}
}

// Identical values are the same object; equal values need not be identical.
func TestIdentical(t *testing.T) {
	obj := func() cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x")}) }
	a := obj()
	if b := a; !Identical(a, b) || !Identical(cty.NilVal, cty.NilVal) || !Identical(cty.DynamicVal, cty.DynamicVal) {
		t.Error("a value is not itself")
	}
	if Identical(a, obj()) || Identical(a, a.Mark("m")) || Identical(a, cty.NilVal) || Identical(cty.NullVal(cty.String), cty.NullVal(cty.Bool)) {
		t.Error("two values are one")
	}
}

// changed returns a value with at most one changed part.
func changed(r *rand.Rand, v cty.Value) cty.Value {
	all := 0
	_ = cty.Walk(v, func(cty.Path, cty.Value) (bool, error) { all++; return true, nil })
	at, n := r.IntN(2*all), 0
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if n++; n != at+1 {
			return v, nil
		}
		switch r.IntN(5) {
		case 0:
			return cty.NullVal(v.Type()), nil
		case 1:
			return cty.UnknownVal(v.Type()), nil
		case 2:
			return v.Mark(Sensitive), nil
		}
		if plain, _ := v.Unmark(); plain.Type() == cty.String {
			return cty.StringVal("other"), nil
		}
		return v, nil
	})
	if err != nil {
		return cty.EmptyObjectVal
	}
	return v
}

func randomValue(r *rand.Rand, depth int) cty.Value {
	n := 12
	if depth == 0 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return cty.StringVal([]string{"", "a", "b", "e\u0301"}[r.IntN(4)])
	case 1:
		f, _, _ := big.ParseFloat([]string{"0", "1", "0.1", "1e30", "-0"}[r.IntN(5)], 10, []uint{53, 512}[r.IntN(2)], big.ToNearestEven)
		return cty.NumberVal(f)
	case 2:
		return cty.BoolVal(r.IntN(2) == 0)
	case 3:
		return cty.NullVal([]cty.Type{cty.String, cty.Number, cty.DynamicPseudoType}[r.IntN(3)])
	case 4:
		return cty.UnknownVal([]cty.Type{cty.String, cty.DynamicPseudoType}[r.IntN(2)])
	case 5:
		return cty.UnknownVal(cty.String).RefineNotNull()
	case 6:
		return cty.StringVal("a").Mark([]any{Sensitive, Ephemeral}[r.IntN(2)])
	case 7:
		return cty.ObjectVal(map[string]cty.Value{"a": randomValue(r, depth-1), "b": randomValue(r, depth-1)})
	case 8:
		return cty.TupleVal([]cty.Value{randomValue(r, depth-1), randomValue(r, depth-1)})
	}
	v := randomValue(r, depth-1)
	if plain, marks := v.Unmark(); len(marks) > 0 {
		v = plain
	}
	switch r.IntN(4) {
	case 0:
		return cty.MapVal(map[string]cty.Value{[]string{"k", "l"}[r.IntN(2)]: v})
	case 1:
		return cty.SetVal([]cty.Value{v})
	case 2:
		return cty.ListValEmpty(v.Type())
	}
	return cty.ListVal([]cty.Value{v, v}[:1+r.IntN(2)])
}

// BenchmarkSame compares objects that are typical of resources.
func BenchmarkSame(b *testing.B) {
	object := func() cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal("0123456789"), "input": cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("x"), "n": cty.NumberIntVal(3), "tags": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")})}),
			"output": cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("x"), "n": cty.NumberIntVal(3), "tags": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")})}), "t": cty.NullVal(cty.DynamicPseudoType),
		})
	}
	x, y := object(), object()
	b.Run("Same", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !Same(x, y) {
				b.Fatal("differ")
			}
		}
	})
	b.Run("RawEquals", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !x.RawEquals(y) {
				b.Fatal("differ")
			}
		}
	})
}
