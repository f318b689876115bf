package functions

import (
	"regexp"
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Package functions implements every function that package syntax lists as one of the unit
// language.
func TestContextFunctions(t *testing.T) {
	names := syntax.ContextFunctions()
	if len(names) < 30 {
		t.Fatalf("only %d names", len(names))
	}
	l := &Library{}
	for _, name := range names {
		if _, ok := l.Function(name, nil); !ok {
			t.Errorf("there is no function %s", name)
		}
	}
	if _, ok := l.Function("upper", nil); ok {
		t.Error("a function of the configuration language is taken for one of the unit language")
	}
}

// Objects are merged key by key, and lists are joined. Null arguments are ignored.
// Arguments that are neither maps nor objects are an error.
func TestDeepMerge(t *testing.T) {
	object := func(m map[string]cty.Value) cty.Value { return cty.ObjectVal(m) }
	one, two := cty.NumberIntVal(1), cty.NumberIntVal(2)
	null := cty.NullVal(cty.DynamicPseudoType)
	for _, c := range []struct {
		name string
		args []cty.Value
		want cty.Value // NilVal for an error
	}{
		{"nothing", nil, cty.EmptyObjectVal},
		{"null", []cty.Value{null, null}, cty.EmptyObjectVal},
		{"one", []cty.Value{null, object(map[string]cty.Value{"a": one})}, object(map[string]cty.Value{"a": one})},
		{"the later one wins", []cty.Value{object(map[string]cty.Value{"a": one, "b": one}), object(map[string]cty.Value{"a": two})}, object(map[string]cty.Value{"a": two, "b": one})},
		{"lists", []cty.Value{object(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{one})}), object(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{two})})}, object(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{one, two})})},
		{"a text", []cty.Value{cty.StringVal("x")}, cty.NilVal},
		{"a list against a map", []cty.Value{object(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{one})}), object(map[string]cty.Value{"a": cty.EmptyObjectVal})}, cty.NilVal},
	} {
		got, err := DeepMerge().Call(c.args)
		if (err != nil) != (c.want == cty.NilVal) || err == nil && !got.RawEquals(c.want) {
			t.Errorf("%s: %#v, %v", c.name, got, err)
		}
	}
}

// Paths between directories have slashes, and each default retry pattern compiles.
func TestPathsAndPatterns(t *testing.T) {
	if _, err := pathBetween("/a", "b", nil); err == nil {
		t.Error("there is a path between an absolute and a relative directory")
	}
	if p, err := pathBetween("/a/b", "/a/c", nil); err != nil || p != "../c" {
		t.Errorf("%s, %v", p, err)
	}
	for _, p := range DefaultRetryableErrors() {
		if _, err := regexp.Compile(p); err != nil {
			t.Errorf("units retry on errors by %q: %v", p, err)
		}
	}
}
