package resourceclient

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// val evaluates an expression.
func val(t *testing.T, text string) cty.Value {
	t.Helper()
	x, ds := hclsyntax.ParseExpression([]byte(text), "t", hcl.InitialPos)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	v, ds := x.Value(nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return v
}

func thingSchema() *schema.Resource {
	return &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Computed: true}, "name": {Type: cty.String, Optional: true},
		"tags": {Type: cty.Map(cty.String), Optional: true}, "list": {Type: cty.List(cty.String), Optional: true},
		"secret": {Type: cty.String, Optional: true, Sensitive: true}, "wo": {Type: cty.String, Optional: true, WriteOnly: true},
	}}}
}

// obj returns an object of thingSchema. The text contains its attributes.
func obj(t *testing.T, text string) cty.Value {
	t.Helper()
	s := thingSchema()
	vals := map[string]cty.Value{}
	for name, a := range s.Block.Attributes {
		vals[name] = cty.NullVal(a.Type)
	}
	for name, v := range val(t, text).AsValueMap() {
		vals[name] = v
		switch {
		case v.IsNull():
			vals[name] = cty.NullVal(s.Block.Attributes[name].Type)
		case name == "tags":
			vals[name] = cty.MapVal(v.AsValueMap())
		case name == "list":
			vals[name] = cty.ListVal(v.AsValueSlice())
		}
	}
	return cty.ObjectVal(vals)
}

func TestIgnoreChanges(t *testing.T) {
	for _, c := range []struct {
		name, paths, prior, config, want string
		all                              bool
	}{
		{name: "nothing", prior: `{name="p"}`, config: `{name="c"}`, want: `{name="c"}`},
		{name: "an attribute", paths: "name", prior: `{name="p", tags={a="1"}}`, config: `{name="c", tags={a="2"}}`, want: `{name="p", tags={a="2"}}`},
		{name: "a key of both", paths: `tags["a"]`, prior: `{tags={a="1",b="1"}}`, config: `{tags={a="2",b="2"}}`, want: `{tags={a="1",b="2"}}`},
		{name: "a key that is gone", paths: `tags["a"]`, prior: `{tags={a="1"}}`, config: `{tags={b="2"}}`, want: `{tags={a="1",b="2"}}`},
		{name: "a key that is new", paths: `tags["a"]`, prior: `{tags={b="1"}}`, config: `{tags={a="2",b="2"}}`, want: `{tags={b="2"}}`},
		{name: "a key as an attribute", paths: `tags.a`, prior: `{tags={a="1"}}`, config: `{tags={a="2"}}`, want: `{tags={a="1"}}`},
		{name: "an element", paths: `list[1]`, prior: `{list=["a","b"]}`, config: `{list=["c","d"]}`, want: `{list=["c","b"]}`},
		{name: "an element beyond the end", paths: `list[5]`, prior: `{list=["a"]}`, config: `{list=["c"]}`, want: `{list=["c"]}`},
		{name: "all", all: true, prior: `{name="p", wo=null}`, config: `{name="c", wo="w"}`, want: `{name="p", wo="w"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var paths []hcl.Traversal
			if c.paths != "" {
				p, ds := hclsyntax.ParseTraversalAbs([]byte(c.paths), "t", hcl.InitialPos)
				if ds.HasErrors() {
					t.Fatal(ds)
				}
				paths = []hcl.Traversal{p}
			}
			got := ignoreChanges(paths, c.all, obj(t, c.prior), obj(t, c.config), thingSchema())
			if want := obj(t, c.want); !got.RawEquals(want) {
				t.Errorf("got %#v\nwant %#v", got, want)
			}
			null := cty.NullVal(thingSchema().Block.ImpliedType())
			if got := ignoreChanges(paths, c.all, null, obj(t, c.config), thingSchema()); !got.RawEquals(obj(t, c.config)) {
				t.Error("changes against nothing were ignored")
			}
		})
	}
}

func TestRequiresReplace(t *testing.T) {
	path := cty.GetAttrPath
	for _, c := range []struct {
		name, prior, planned string
		path                 cty.Path
		want                 bool
	}{
		{"the same", `{name="a"}`, `{name="a"}`, path("name"), false},
		{"changed", `{name="a"}`, `{name="b"}`, path("name"), true},
		{"an element of both", `{list=["a"]}`, `{list=["b"]}`, path("list").IndexInt(0), true},
		{"an element that is new", `{list=["a"]}`, `{list=["a","b"]}`, path("list").IndexInt(1), true},
		{"an element of neither", `{list=["a"]}`, `{list=["a"]}`, path("list").IndexInt(7), false},
		{"write-only", `{}`, `{}`, path("wo"), true},
	} {
		if got := requiresReplace(c.path, obj(t, c.prior), obj(t, c.planned), thingSchema()); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
