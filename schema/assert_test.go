package schema_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func list(vals ...cty.Value) cty.Value { return cty.ListVal(vals) }
func set(vals ...cty.Value) cty.Value  { return cty.SetVal(vals) }

// broken returns the paths of mismatches.
func broken(t *testing.T, errs []error) []string {
	t.Helper()
	var out []string
	for _, err := range errs {
		var mm *schema.Mismatch
		if !errors.As(err, &mm) {
			t.Fatalf("%T is not a *Mismatch", err)
		}
		out = append(out, schema.PathString(mm.Path))
	}
	slices.Sort(out)
	return out
}

func TestAssertPlanValid(t *testing.T) {
	a := inner(m{"k": str("a")})
	for _, tt := range []struct {
		name                   string
		prior, config, planned m
		want                   []string // paths
	}{
		{"as configured", nil, m{"size": num(1)}, m{"size": num(1)}, nil},
		{"computed set", nil, m{}, m{"id": unk, "size": num(2), "obj": object(m{"k": str("x")})}, nil},
		{"other value", nil, m{"size": num(1)}, m{"size": num(2)}, []string{"size"}},
		{"prior value", m{"size": num(2)}, m{"size": num(1)}, m{"size": num(2)}, nil},
		{"null instead", nil, m{"size": num(1)}, m{}, []string{"size"}},
		{"unknown instead", nil, m{"secret": str("x")}, m{"secret": unk}, []string{"secret"}},
		{"invented", nil, m{}, m{"secret": str("x")}, []string{"secret"}},
		{"prior not configured", m{"secret": str("x")}, m{}, m{"secret": str("x")}, []string{"secret"}},
		{"refinement lost", nil, m{"secret": unk.RefineNotNull()}, m{"secret": unk}, nil},
		{"unknown guessed", nil, m{"secret": unk}, m{"secret": str("x")}, []string{"secret"}},
		{"write-only kept", nil, m{"wo": str("x")}, m{"wo": str("x")}, []string{"wo"}},
		{"write-only dropped", nil, m{"wo": str("x")}, m{}, nil},
		{"nested changed", nil, m{"obj": object(m{"k": str("a")})}, m{"obj": object(m{"k": str("b"), "id": unk})}, []string{"obj.k"}},
		{"nested gone", nil, m{"obj": object(m{"k": str("a")})}, m{}, []string{"obj"}},
		{"nested computed", nil, m{"obj": object(m{"k": str("a")})}, m{"obj": object(m{"k": str("a"), "id": unk})}, nil},
		{"block list longer", nil, m{"item": list(a)}, m{"item": list(a, a)}, []string{"item"}},
		{"block list changed", nil, m{"item": list(a, a)}, m{"item": list(a, inner(m{"k": str("b")}))}, []string{"item[1].k"}},
		{"block list prior", m{"item": list(inner(m{"k": str("A")}))}, m{"item": list(a)}, m{"item": list(inner(m{"k": str("A"), "id": unk}))}, nil},
		{"block list unknown", nil, m{"item": list(a)}, m{"item": cty.UnknownVal(cty.List(a.Type()))}, []string{"item"}},
		{"dynamic blocks", nil, m{"item": cty.UnknownVal(cty.List(a.Type()))}, m{"item": list(a)}, nil},
		{"map keys", nil, m{"keyed": cty.MapVal(m{"x": a, "y": a})}, m{"keyed": cty.MapVal(m{"x": a, "z": a})}, []string{"keyed", "keyed"}},
		{"set number", nil, m{"tag": set(a)}, m{"tag": set(a, inner(m{"k": str("b")}))}, []string{"tag"}},
		{"set computed", nil, m{"tag": set(a)}, m{"tag": set(inner(m{"k": str("a"), "id": unk}))}, nil},
		{"single added", nil, m{}, m{"one": a}, []string{"one"}},
		{"single removed", nil, m{"one": a}, m{}, []string{"one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := block()
			prior := cty.NullVal(b.ImpliedType())
			if tt.prior != nil {
				prior = value(t, tt.prior)
			}
			config, planned := value(t, tt.config), value(t, tt.planned)
			errs := schema.AssertPlanValid(b, prior, config, planned, false)
			if d := cmp.Diff(tt.want, broken(t, errs)); d != "" {
				t.Errorf("%v\n%s", errs, d)
			}
			if errs := schema.AssertPlanValid(b, prior, config, planned, true); (errs != nil) != (tt.name == "write-only kept") {
				t.Errorf("legacy: %v", errs)
			}
		})
	}
}

func TestAssertPlanValidWhole(t *testing.T) {
	b := block()
	null, v := cty.NullVal(b.ImpliedType()), value(t, m{})
	for _, tt := range []struct {
		config, planned cty.Value
		ok              bool
	}{
		{null, null, true}, {v, null, false}, {null, v, false}, {v, v, true},
		{v, cty.UnknownVal(b.ImpliedType()), false}, {v, cty.NilVal, false}, {v, cty.StringVal("x"), false}, {v, cty.DynamicVal, false},
	} {
		for _, legacy := range []bool{false, true} {
			if errs := schema.AssertPlanValid(b, null, tt.config, tt.planned, legacy); (len(errs) == 0) != tt.ok {
				t.Errorf("config %#v, planned %#v: %v", tt.config, tt.planned, errs)
			}
		}
	}
}

func TestAssertObjectCompatible(t *testing.T) {
	a, b2 := inner(m{"k": str("a")}), inner(m{"k": str("b")})
	for _, tt := range []struct {
		name            string
		planned, actual m
		want            []string
	}{
		{"equal", m{"id": str("i")}, m{"id": str("i")}, nil},
		{"unknown became known", m{"id": unk}, m{"id": str("i")}, nil},
		{"unknown became null", m{"id": unk}, m{}, nil},
		{"changed", m{"id": str("i")}, m{"id": str("j")}, []string{"id"}},
		{"appeared", m{}, m{"id": str("j")}, []string{"id"}},
		{"vanished", m{"id": str("i")}, m{}, []string{"id"}},
		{"write-only", m{}, m{"wo": str("x")}, []string{"wo"}},
		{"any type", m{"any": str("1")}, m{"any": num(1)}, []string{"any"}},
		{"any list", m{"any": cty.TupleVal([]cty.Value{str("1"), unk})}, m{"any": cty.TupleVal([]cty.Value{str("1"), str("z")})}, nil},
		{"any list changed", m{"any": cty.TupleVal([]cty.Value{str("1"), unk})}, m{"any": cty.TupleVal([]cty.Value{str("2"), str("z")})}, []string{"any[0]"}},
		{"any object to string", m{"any": cty.ObjectVal(m{"a": unk})}, m{"any": str("z")}, []string{"any"}},
		{"set of numbers", m{"nums": set(num(1), cty.UnknownVal(cty.Number))}, m{"nums": set(num(1), num(5))}, nil},
		{"set of numbers lost", m{"nums": set(num(1), num(2))}, m{"nums": set(num(1))}, []string{"nums"}},
		{"set of unknowns shrinks", m{"nums": set(cty.UnknownVal(cty.Number), cty.UnknownVal(cty.Number))}, m{"nums": set(num(1))}, nil},
		{"nested", m{"obj": object(m{"k": str("a"), "id": unk})}, m{"obj": object(m{"k": str("a"), "id": str("1")})}, nil},
		{"nested changed", m{"obj": object(m{"k": str("a"), "id": unk})}, m{"obj": object(m{"k": str("b"), "id": str("1")})}, []string{"obj.k"}},
		{"nested gone", m{"obj": object(nil)}, m{}, []string{"obj"}},
		{"block list", m{"item": list(inner(m{"k": str("a"), "id": unk}))}, m{"item": list(inner(m{"k": str("a"), "id": str("1")}))}, nil},
		{"block list shorter", m{"item": list(a, a)}, m{"item": list(a)}, []string{"item"}},
		{"block list changed", m{"item": list(a)}, m{"item": list(b2)}, []string{"item[0].k"}},
		{"block map", m{"keyed": cty.MapVal(m{"x": a})}, m{"keyed": cty.MapVal(m{"y": a})}, []string{"keyed", "keyed"}},
		{"block set", m{"tag": set(inner(m{"k": str("a"), "id": unk}), inner(m{"k": str("b"), "id": unk}))},
			m{"tag": set(inner(m{"k": str("a"), "id": str("1")}), inner(m{"k": str("b"), "id": str("2")}))}, nil},
		{"block set other", m{"tag": set(inner(m{"k": str("a"), "id": unk}))}, m{"tag": set(inner(m{"k": str("b"), "id": str("1")}))}, []string{"tag"}},
		{"block set extra", m{"tag": set(inner(m{"k": str("a"), "id": unk}))}, m{"tag": set(inner(m{"k": str("a"), "id": str("1")}), b2)}, []string{"tag"}},
		{"blocks unknown", m{"item": cty.UnknownVal(cty.List(a.Type()))}, m{"item": list(a)}, nil},
		{"single gone", m{"one": a}, m{}, []string{"one"}},
		{"known became unknown", m{"id": str("i"), "obj": object(nil)}, m{"id": unk, "obj": cty.UnknownVal(object(nil).Type())}, []string{"id", "obj"}},
		{"block became unknown", m{"one": a, "item": list(a)}, m{"one": cty.UnknownVal(a.Type()), "item": cty.UnknownVal(cty.List(a.Type()))}, []string{"item", "one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := schema.AssertObjectCompatible(block(), value(t, tt.planned), value(t, tt.actual))
			if d := cmp.Diff(tt.want, broken(t, errs)); d != "" {
				t.Errorf("%v\n%s", errs, d)
			}
		})
	}
}

func TestMismatchTextHasNoValues(t *testing.T) {
	errs := schema.AssertObjectCompatible(block(), value(t, m{"secret": str("hunter1")}), value(t, m{"secret": str("hunter2")}))
	if len(errs) != 1 || errs[0].Error() != "secret: the value is not the planned one" || !errs[0].(*schema.Mismatch).Sensitive {
		t.Errorf("got %v", errs)
	}
}

func TestAssertUsable(t *testing.T) {
	b := block()
	a0 := inner(m{"k": str("a")})
	if err := schema.AssertUsable(b, value(t, m{"id": unk}), false); err != nil {
		t.Error(err)
	}
	if err := schema.AssertUsable(b, value(t, m{"item": list(a0, inner(m{"k": str("a"), "wo": str("x")}))}), false); err == nil || err.Error() != "item[1].wo: a write-only attribute must be null" {
		t.Error(err)
	}
	err := schema.AssertUsable(b, value(t, m{"item": list(inner(m{"k": str("a"), "id": unk}))}), true)
	if err == nil || err.Error() != "item[0].id: the value is unknown, but must be known now" {
		t.Error(err)
	}
}
