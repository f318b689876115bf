package imports

import (
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// written returns an object with arguments of every kind. null omits those that must not be
// written.
func written(id, secret cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"id": id, "name": cty.StringVal("n\n${x}"), "tags": cty.MapVal(map[string]cty.Value{"a b": cty.StringVal("c")}),
		"list": cty.ListVal([]cty.Value{cty.StringVal("l")}), "secret": secret, "wo": cty.NullVal(cty.String),
	})
}

// The generated block for an object results in the same arguments, except those that must not
// be written.
func TestGeneratedConfig(t *testing.T) {
	s := &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Computed: true}, "name": {Type: cty.String, Optional: true},
		"tags": {Type: cty.Map(cty.String), Optional: true}, "list": {Type: cty.List(cty.String), Optional: true},
		"secret": {Type: cty.String, Optional: true, Sensitive: true}, "wo": {Type: cty.String, Optional: true, WriteOnly: true},
	}}}
	r := addr.Resource{Type: "x_thing", Name: "a"}
	text := GenerateConfig(r, nil, s, written(cty.StringVal("i"), cty.StringVal("s")))
	got, ds := GeneratedValue(text, s)
	if ds.HasErrors() {
		t.Fatalf("%s\n%s", ds.Err(), text)
	}
	if want := written(cty.NullVal(cty.String), cty.NullVal(cty.String)); !got.RawEquals(want) {
		t.Errorf("%#v\n%s", got, text)
	}
	for _, bad := range []string{"", "resource \"x_thing\" \"a\" {", "resource \"x_thing\" \"a\" {\n  nope = 1\n}", "resource \"x_thing\" \"a\" {\n  name = var.x\n}", "a = 1"} {
		if _, ds := GeneratedValue(bad, s); !ds.HasErrors() {
			t.Errorf("%q is taken", bad)
		}
	}
}
