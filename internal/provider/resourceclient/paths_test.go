package resourceclient

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func path(names ...string) cty.Path {
	var p cty.Path
	for _, n := range names {
		p = p.GetAttr(n)
	}
	return p
}

func texts(list []cty.Path) (out []string) {
	for _, p := range list {
		s := ""
		for _, step := range p {
			s += "." + step.(cty.GetAttrStep).Name
		}
		out = append(out, s)
	}
	return out
}

// SensitivePaths joins the given paths with those of the schema, without duplicates.
// BySchema separates them again.
func TestSensitivePaths(t *testing.T) {
	s := &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"a": {Type: cty.String, Optional: true, Sensitive: true}, "b": {Type: cty.String, Optional: true}, "c": {Type: cty.String, Optional: true, Sensitive: true},
	}}}
	v := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "b": cty.StringVal("x"), "c": cty.StringVal("x")})
	given := []cty.Path{path("c"), path("b"), path("c")}
	all := SensitivePaths(s, v, given)
	if diff := cmp.Diff([]string{".a", ".b", ".c"}, texts(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".a"}, texts(BySchema(all, given))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".c", ".b", ".c"}, texts(given)); diff != "" {
		t.Error("the given list was changed: ", diff)
	}
}

func TestSamePaths(t *testing.T) {
	for _, c := range []struct {
		a, b []cty.Path
		same bool
	}{
		{nil, nil, true},
		{nil, []cty.Path{path("a")}, false},
		{[]cty.Path{path("a"), path("b", "c")}, []cty.Path{path("b", "c"), path("a")}, true},
		{[]cty.Path{path("a"), path("b")}, []cty.Path{path("a"), path("c")}, false},
		{[]cty.Path{path("a"), path("b")}, []cty.Path{path("a")}, false},
	} {
		if got := SamePaths(c.a, c.b); got != c.same {
			t.Errorf("%v and %v: %t", texts(c.a), texts(c.b), got)
		}
	}
}

// The time per path grows logarithmically.
func BenchmarkSamePaths(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		list := make([]cty.Path, n)
		for i := range list {
			list[i] = cty.GetAttrPath("list").Index(cty.NumberIntVal(int64((i * 7919) % n)))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				if !SamePaths(list, list) {
					b.Fatal("not the same")
				}
			}
		})
	}
}

// Called returns the same as Identify for the object with its marks.
func TestCalled(t *testing.T) {
	for _, hidden := range []string{"", "id", "name"} {
		attrs := map[string]*schema.Attribute{}
		for _, name := range []string{"id", "name", "x"} {
			attrs[name] = &schema.Attribute{Type: cty.String, Optional: true, Sensitive: name == hidden}
		}
		sub := &Subject{Schema: &schema.Resource{Block: &schema.Block{Attributes: attrs}}}
		for _, id := range []cty.Value{cty.StringVal("i"), cty.NullVal(cty.String), cty.UnknownVal(cty.String)} {
			v := cty.ObjectVal(map[string]cty.Value{"id": id, "name": cty.StringVal("n"), "x": cty.StringVal("x")})
			for _, v := range []cty.Value{v, cty.NullVal(v.Type()), cty.UnknownVal(v.Type()), cty.NilVal} {
				for _, paths := range [][]cty.Path{nil, {path("id")}, {path("name"), path("x")}, {path("id"), path("name")}, {{}}} {
					key, text := Identify(sub.Marked(v, paths))
					if got := sub.Called(v, paths); got != (Called{key, text}) {
						t.Errorf("%#v with %q hidden and %v: %v, want %s = %s", v, hidden, texts(paths), got, key, text)
					}
				}
			}
		}
	}
}
