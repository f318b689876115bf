package value

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func str(s string) cty.Value { return cty.StringVal(s) }

func obj(kv ...any) cty.Value {
	m := map[string]cty.Value{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1].(cty.Value)
	}
	return cty.ObjectVal(m)
}

func same(t *testing.T, got, want cty.Value) {
	t.Helper()
	if !got.RawEquals(want) {
		t.Errorf("\n got %#v\nwant %#v", got, want)
	}
}

func TestMarksShallowAndDeep(t *testing.T) {
	v := obj("a", str("x").Mark(Sensitive), "b", str("y").Mark(Ephemeral))
	if HasMark(v, Sensitive) || !ContainsMark(v, Sensitive) || Secret(v) || !ContainsSecret(v) {
		t.Error("a mark inside is not on the value itself")
	}
	if !Secret(str("x").Mark(Hidden)) || HasMark(str("x").Mark(Hidden), Sensitive) {
		t.Error("hidden is secret without being sensitive")
	}
	same(t, WithoutMark(v.Mark(Sensitive), Sensitive), v)
	same(t, WithoutMark(v, Sensitive), v)
	if cty.StringVal("x").Mark(Sensitive).HasMark("sensitive") {
		t.Error("a plain string is taken for our mark")
	}
}

func TestMarkedAnywhere(t *testing.T) {
	m := cty.StringVal("x").Mark("m")
	for _, v := range []cty.Value{
		cty.StringVal("x"), m, cty.DynamicVal, cty.DynamicVal.Mark("m"), cty.NullVal(cty.String).Mark("n"), cty.UnknownVal(cty.List(cty.String)), cty.EmptyObjectVal, cty.EmptyTupleVal,
		cty.ListValEmpty(cty.String), cty.MapValEmpty(cty.String), cty.ListVal([]cty.Value{cty.StringVal("a"), m}), cty.TupleVal([]cty.Value{cty.True, m}),
		cty.MapVal(map[string]cty.Value{"a": m}), cty.SetVal([]cty.Value{m}), cty.SetVal([]cty.Value{cty.True}),
		cty.ObjectVal(map[string]cty.Value{"a": cty.ObjectVal(map[string]cty.Value{"b": m})}).Mark("n"), cty.ObjectVal(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{cty.True})}),
		cty.ObjectVal(map[string]cty.Value{"a": cty.NullVal(cty.EmptyObject)}), cty.ListVal([]cty.Value{cty.MapVal(map[string]cty.Value{"a": m})}),
	} {
		if Marked(v) != v.ContainsMarked() {
			t.Errorf("%#v: Marked is %v", v, Marked(v))
		}
		for _, mark := range []any{"m", "n"} {
			if ContainsMark(v, mark) != v.HasMarkDeep(mark) {
				t.Errorf("%#v: ContainsMark of %v is %v", v, mark, ContainsMark(v, mark))
			}
		}
	}
}

func TestDeprecations(t *testing.T) {
	one, two := Deprecation{"gone", "module.a.x"}, Deprecation{"gone", "module.b.x"}
	v := obj("p", str("1").Mark(two), "q", obj("r", str("2").Mark(one).Mark(Sensitive), "s", str("3").Mark(two)))
	if d := cmp.Diff([]Deprecation{one, two}, Deprecations(v)); d != "" {
		t.Error(d)
	}
	same(t, WithoutDeprecations(v), obj("p", str("1"), "q", obj("r", str("2").Mark(Sensitive), "s", str("3"))))
	if Deprecations(str("x")) != nil {
		t.Error("an unmarked value has no deprecations")
	}
}

func TestMarkPaths(t *testing.T) {
	secret := str("x").Mark(Sensitive)
	v := obj("m", cty.MapVal(map[string]cty.Value{"k": str("x")}), "l", cty.ListVal([]cty.Value{str("w"), str("x")}),
		"s", cty.SetVal([]cty.Value{str("x")}), "t", cty.TupleVal([]cty.Value{obj("z", str("x"))}),
		"n", cty.NullVal(cty.Object(map[string]cty.Type{"z": cty.String})), "u", cty.UnknownVal(cty.List(cty.String)))
	paths := []cty.Path{
		cty.GetAttrPath("m").IndexString("k"), cty.GetAttrPath("l").IndexInt(1), cty.GetAttrPath("s").Index(str("x")),
		cty.GetAttrPath("t").IndexInt(0).GetAttr("z"), cty.GetAttrPath("n").GetAttr("z"), cty.GetAttrPath("u").IndexInt(0),
		cty.GetAttrPath("absent"), cty.GetAttrPath("l").IndexInt(7), cty.GetAttrPath("m").IndexInt(0),
	}
	want := obj("m", cty.MapVal(map[string]cty.Value{"k": secret}), "l", cty.ListVal([]cty.Value{str("w"), secret}),
		"s", cty.SetVal([]cty.Value{str("x")}).Mark(Sensitive), "t", cty.TupleVal([]cty.Value{obj("z", secret)}),
		"n", cty.NullVal(cty.Object(map[string]cty.Type{"z": cty.String})), "u", cty.UnknownVal(cty.List(cty.String)))
	got := MarkPaths(v, Sensitive, paths...)
	same(t, got, want)

	bare, found := SplitMark(got, Sensitive)
	same(t, bare, v)
	same(t, MarkPaths(bare, Sensitive, found...), got)
	var names []string
	for _, p := range PathsWith(got, Sensitive) {
		names = append(names, PathString(p))
	}
	if d := cmp.Diff([]string{`.l[1]`, `.m["k"]`, `.s`, `.t[0].z`}, names); d != "" {
		t.Error(d)
	}
	same(t, MarkPaths(str("x"), Sensitive, cty.Path{}), secret)
}

func TestPathString(t *testing.T) {
	p := cty.GetAttrPath("tags").IndexString("a \"b\" ${c}\n").IndexInt(3).Index(obj())
	if got, want := PathString(p), `.tags["a \"b\" $${c}\n"][3][...]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if PathString(nil) != "" {
		t.Error("the empty path has a text")
	}
}

func TestRedact(t *testing.T) {
	in := obj("l", cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.NumberIntVal(2).Mark(Sensitive)}),
		"m", cty.MapVal(map[string]cty.Value{"k": cty.True.Mark(Ephemeral)}),
		"d", str("x").Mark(Deprecation{Message: "m"}), "h", str("x").Mark(Hidden),
		"u", cty.UnknownVal(cty.String), "n", cty.NullVal(cty.String),
		"plain", cty.ListVal([]cty.Value{cty.NumberIntVal(1)}))
	same(t, Redact(in), obj("l", cty.TupleVal([]cty.Value{cty.NumberIntVal(1), str(SecretText)}),
		"m", obj("k", str(EphemeralText)), "d", str("x"), "h", str(SecretText),
		"u", cty.UnknownVal(cty.String), "n", cty.NullVal(cty.String),
		"plain", cty.ListVal([]cty.Value{cty.NumberIntVal(1)})))
	same(t, Redact(in.Mark(Sensitive)), str(SecretText))
}

func TestDeepMerge(t *testing.T) {
	list := func(vs ...cty.Value) cty.Value { return cty.ListVal(vs) }
	tuple := func(vs ...cty.Value) cty.Value { return cty.TupleVal(vs) }
	smap := func(k, v string) cty.Value { return cty.MapVal(map[string]cty.Value{k: str(v)}) }
	null := cty.NullVal(cty.DynamicPseudoType)
	for name, c := range map[string]struct{ a, b, want cty.Value }{
		"scalar":              {str("a"), cty.False, cty.False},
		"empty string wins":   {str("a"), str(""), str("")},
		"null replaces":       {obj("a", smap("k", "v")), obj("a", null), obj("a", null)},
		"null is replaced":    {obj("a", null), obj("a", smap("k", "v")), obj("a", smap("k", "v"))},
		"recursive":           {obj("a", obj("x", str("1"), "y", str("2"))), obj("a", obj("y", str("3"), "z", str("4"))), obj("a", obj("x", str("1"), "y", str("3"), "z", str("4")))},
		"lists joined":        {list(str("a")), list(str("b")), list(str("a"), str("b"))},
		"list and tuple":      {list(str("a")), tuple(cty.True), tuple(str("a"), cty.True)},
		"list and other list": {list(str("a")), list(cty.True), tuple(str("a"), cty.True)},
		"sets united":         {cty.SetVal([]cty.Value{str("a")}), cty.SetVal([]cty.Value{str("a"), str("b")}), cty.SetVal([]cty.Value{str("a"), str("b")})},
		"set and tuple":       {cty.SetVal([]cty.Value{str("a")}), tuple(str("b")), tuple(str("a"), str("b"))},
		"empty list left":     {cty.ListValEmpty(cty.String), list(str("b")), list(str("b"))},
		"empty tuple right":   {tuple(str("a")), cty.EmptyTupleVal, tuple(str("a"))},
		"maps stay maps":      {smap("a", "1"), smap("b", "2"), cty.MapVal(map[string]cty.Value{"a": str("1"), "b": str("2")})},
		"map and object":      {smap("a", "1"), obj("b", cty.True), obj("a", str("1"), "b", cty.True)},
		"empty map left":      {cty.MapValEmpty(cty.String), smap("b", "2"), smap("b", "2")},
		"empty object right":  {smap("b", "2"), cty.EmptyObjectVal, smap("b", "2")},
		"unknown left":        {obj("a", cty.DynamicVal), obj("a", str("x")), obj("a", cty.DynamicVal)},
		"unknown right":       {obj("a", str("x")), obj("a", cty.UnknownVal(cty.String)), obj("a", cty.UnknownVal(cty.String))},
		"unknown, other type": {obj("a", str("x")), obj("a", cty.UnknownVal(cty.Number)), obj("a", cty.DynamicVal)},
		"null over unknown":   {obj("a", cty.DynamicVal), obj("a", null), obj("a", null)},
		"marks of containers": {smap("a", "1").Mark(Sensitive), smap("b", "2"), cty.MapVal(map[string]cty.Value{"a": str("1"), "b": str("2")}).Mark(Sensitive)},
		"marks of replaced":   {obj("a", str("x").Mark(Sensitive)), obj("a", str("y")), obj("a", str("y"))},
		"marks of unknown":    {cty.DynamicVal.Mark(Sensitive), str("y"), cty.DynamicVal.Mark(Sensitive)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DeepMerge(c.a, c.b)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, c.want)
		})
	}
}

func TestDeepMergeConflict(t *testing.T) {
	for name, c := range map[string]struct {
		a, b cty.Value
		want string
	}{
		"map over scalar":  {obj("a", obj("b", str("x"), "c", cty.True)), obj("a", obj("b", obj(), "c", cty.False)), "at .a.b: a map cannot be merged with a single value"},
		"scalar over list": {obj("a", cty.EmptyTupleVal), obj("a", str("x")), "at .a: a single value cannot be merged with a list"},
		"list over map":    {obj(), cty.EmptyTupleVal, "a list cannot be merged with a map"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DeepMerge(c.a, c.b)
			var conflict *ConflictError
			if !errors.As(err, &conflict) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
