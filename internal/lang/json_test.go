package lang

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// The native form of a JSON expression has the same value, messages and references.
func TestNativeTreeIsJSON(t *testing.T) {
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{
			"n": cty.NumberIntVal(7), "s": cty.StringVal("e\u0301"), "u": cty.UnknownVal(cty.String), "d": cty.DynamicVal,
			"secret": cty.StringVal("x").Mark("m"), "null": cty.NullVal(cty.String),
		},
		Functions: map[string]function.Function{"upper": stdlib.UpperFunc},
	}
	made := 0
	for _, text := range []string{
		`null`, `true`, `1.50`, `-1e3`, `123456789012345678901234567890.5`, `""`, `"a"`, `"e\u0301"`, `"\u00e9\n\t\"\\"`, `"$${x} %%{y} $ % $$ {"`,
		`"${n}"`, `"${s}-${n}"`, `"a${u}b"`, `"${d}"`, `"${secret}"`, `"${upper(\"a\")}"`, `"%{ if n > 1 }yes%{ endif }"`, `"${[for x in [1] : x]}"`,
		`[]`, `{}`, `[1, "a", null, "${n}", [{}]]`, `{"a": 1, "b-c": "${n}", "1": {"x": "$${y}"}, "": 2, "null": 3, "a.b": 4}`,
		`{"${s}": 1}`, `{"$${k}": 1}`, `{"a": 1, "a": 2}`, `{"${null}": 1}`, `"${"`, `["${missing}"]`, `{"a": "${n."}`, `"${upper(n, n)}"`, `"${1 + true}"`, `"${true}"`, `"\ud800"`,
	} {
		f, diags := hcljson.Parse([]byte(`{"v": `+text+`}`), "t")
		if diags.HasErrors() {
			t.Fatalf("%s: %s", text, diags)
		}
		attrs, _ := f.Body.JustAttributes()
		x := attrs["v"].Expr
		want, wantDiags := x.Value(ctx)
		tree, ok := nativeTree(x)
		if !ok {
			continue
		}
		made++
		got, diags := tree.Value(ctx)
		if !got.RawEquals(want) || fmt.Sprint(diags) != fmt.Sprint(wantDiags) {
			t.Errorf("%s: %#v, %q, want %#v, %q", text, got, diags, want, wantDiags)
		}
		if v, ok := quickIn(tree, ctx); ok != (len(wantDiags) == 0) || ok && !v.RawEquals(want) {
			t.Errorf("%s: evaluated to %#v, %v, want %#v", text, v, ok, want)
		}
		if got, want := tree.Variables(), x.Variables(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: references %v, want %v", text, got, want)
		}
		if tree.Range() != x.Range() && text[0] != '"' { // the range of a template is inside its quotes
			t.Errorf("%s: at %s, want %s", text, tree.Range(), x.Range())
		}
	}
	if made != 27 {
		t.Errorf("%d of the expressions have a tree", made)
	}
}
