package lang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// scope contains variables and no functions.
type scope map[string]cty.Value

func (s scope) Resolve(_ *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	v, ok := s[ref.RootName()]
	if !ok {
		return cty.DynamicVal, 1, diag.Errorf("", at, "No such name", "There is no %s.", ref.RootName())
	}
	return v, 1, nil
}

func (scope) Functions(*demand.Task, []string) (map[string]function.Function, diag.List) {
	return nil, nil
}

func block() *schema.Block {
	inner := &schema.Block{Attributes: map[string]*schema.Attribute{"k": {Type: cty.String, Required: true}}}
	return &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"name": {Type: cty.String, Required: true}, "n": {Type: cty.Number, Optional: true}, "id": {Type: cty.String, Computed: true},
		},
		Blocks: map[string]*schema.NestedBlock{
			"one": {Nesting: schema.Single, Block: inner}, "some": {Nesting: schema.List, Block: inner, MaxItems: 2},
			"any": {Nesting: schema.Set, Block: inner}, "by": {Nesting: schema.Map, Block: inner},
		},
	}
}

func shown(v cty.Value) string {
	secret := ""
	if value.ContainsMark(v, value.Sensitive) {
		secret = "sensitive "
	}
	v, _ = v.UnmarkDeep()
	out := ""
	for _, name := range []string{"name", "n", "one", "some", "any", "by"} {
		x := v.GetAttr(name)
		switch {
		case !x.IsWhollyKnown():
			out += name + "=? "
		case x.IsNull() || x.CanIterateElements() && x.LengthInt() == 0 && !x.Type().IsObjectType():
		default:
			src, err := ctyjson.Marshal(x, x.Type())
			if err != nil {
				return err.Error()
			}
			out += name + "=" + string(src) + " "
		}
	}
	return secret + out
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		reported         []string
	}{
		{name: "arguments", text: "name = \"a\"\nn = \"3\"", want: `name="a" n=3 `},
		{name: "references", text: "name = v", want: `name="v" `},
		{name: "unknown", text: "name = u", want: "name=? "},
		{name: "sensitive", text: "name = s", want: `sensitive name="s" `},
		{name: "blocks", text: "name = \"a\"\none {\n  k = v\n}\nsome {\n  k = 1\n}\nsome {\n  k = 2\n}\nby \"x\" {\n  k = 3\n}", want: `name="a" one={"k":"v"} some=[{"k":"1"},{"k":"2"}] by={"x":{"k":"3"}} `},
		{name: "dynamic", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = [\"p\", \"q\"]\n  iterator = it\n  content {\n    k = \"${it.key}${it.value}\"\n  }\n}", want: `name="a" some=[{"k":"0p"},{"k":"1q"}] `},
		{name: "dynamic over a map, with labels", text: "name = \"a\"\ndynamic \"by\" {\n  for_each = { p = 1 }\n  labels   = [by.key]\n  content {\n    k = by.value\n  }\n}", want: `name="a" by={"p":{"k":"1"}} `},
		{name: "dynamic, not known", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = ul\n  content {\n    k = some.value\n  }\n}", want: `name="a" some=? `},
		{name: "a needed argument is missing", text: "n = 1", reported: []string{"1 Missing required argument"}},
		{name: "an argument too many", text: "name = \"a\"\nzz = 1", reported: []string{"2 Unsupported argument"}},
		{name: "what the provider alone sets", text: "name = \"a\"\nid = 1", reported: []string{"2 Invalid value for a read-only argument"}},
		{name: "the same by reference", text: "name = \"a\"\nid = v", reported: []string{"2 Invalid value for a read-only argument"}},
		{name: "the same, null", text: "name = \"a\"\nid = null", want: `name="a" `},
		{name: "a wrong type", text: "name = [1]", reported: []string{"1 Incorrect attribute value type"}},
		{name: "blocks too many", text: "name = \"a\"\nsome {\n  k = 1\n}\nsome {\n  k = 1\n}\nsome {\n  k = 1\n}", reported: []string{"8 Too many some blocks"}},
		{name: "a dynamic block of no such type", text: "name = \"a\"\ndynamic \"zz\" {\n  for_each = []\n  content {}\n}", reported: []string{"2 Unsupported block type"}},
		{name: "labels where there are none", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = []\n  labels = []\n  content {\n    k = 1\n  }\n}", reported: []string{"4 Unsupported argument"}},
		{name: "no label where there is one", text: "name = \"a\"\ndynamic \"by\" {\n  for_each = []\n  content {\n    k = 1\n  }\n}", reported: []string{"2 Wrong number of dynamic block labels"}},
		{name: "over a string", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = \"x\"\n  content {\n    k = 1\n  }\n}", reported: []string{"3 Invalid dynamic for_each value"}},
		{name: "over a string that is not known", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = u\n  content {\n    k = 1\n  }\n}", reported: []string{"3 Invalid dynamic for_each value"}},
		{name: "over null", text: "name = \"a\"\ndynamic \"some\" {\n  for_each = null\n  content {\n    k = 1\n  }\n}", reported: []string{"3 Invalid dynamic for_each value"}},
		{name: "a name that is not there", text: "name = zz", reported: []string{"1 No such name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, diags := hclsyntax.ParseConfig([]byte(c.text), "t", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			b, ds := lang.CompileBody(f.Body, block())
			var v cty.Value
			if !ds.HasErrors() {
				var more diag.List
				v, more = b.Eval((&demand.Graph{}).Task(t.Context()), scope{
					"v": cty.StringVal("v"), "u": cty.UnknownVal(cty.String), "ul": cty.UnknownVal(cty.List(cty.String)), "s": cty.StringVal("s").Mark(value.Sensitive),
				})
				ds = append(ds, more...)
			}
			var reported []string
			for _, m := range ds {
				reported = append(reported, fmt.Sprintf("%d %s", m.At.Start.Line, m.Summary))
			}
			if diff := cmp.Diff(c.reported, reported); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			if len(c.reported) == 0 && shown(v) != c.want {
				t.Errorf("got  %s\nwant %s", shown(v), c.want)
			}
		})
	}
}

// An argument that may be written as blocks is null if dynamic blocks have no elements. The
// provider then decides its value. An empty collection would make the provider remove existing
// elements.
func TestArgumentAsBlocks(t *testing.T) {
	entry := map[string]cty.Type{"k": cty.String, "l": cty.String}
	deep := cty.Object(map[string]cty.Type{"k": cty.String, "parts": cty.List(cty.Object(entry))})
	b := &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"list": {Type: cty.List(deep), Optional: true, Computed: true}, "set": {Type: cty.Set(deep), Optional: true},
			"needed": {Type: cty.List(cty.Object(entry)), Required: true},
		},
		Blocks: map[string]*schema.NestedBlock{
			"block": {Nesting: schema.List, Block: &schema.Block{Attributes: map[string]*schema.Attribute{"set": {Type: cty.Set(deep), Optional: true}}}},
		},
	}
	dynamic := func(name, over string, content ...string) string {
		return fmt.Sprintf("dynamic %q {\n  for_each = %s\n  content {\n    %s\n  }\n}\n", name, over, strings.Join(append(content, ""), "\n"))
	}
	const needed = "needed {\n  k = 1\n}\n"
	null, unknown := "null", "unknown"
	for _, c := range []struct {
		name, text          string
		list, set, reported string
	}{
		{"nothing", "", null, null, ""},
		{"none", dynamic("list", "[]") + dynamic("set", "{}"), null, null, ""},
		{"none, twice", dynamic("list", "[]") + dynamic("list", "none"), null, null, ""},
		{"none of something secret", dynamic("list", "secret") + dynamic("set", "secret"), null, null, ""},
		{"empty", "list = []\nset = []\n", "[]", "[]", ""},
		{"one", dynamic("list", "[5]", "k = list.value") + dynamic("set", "[6]", "k = set.value"), `[{"k":"5","parts":null}]`, `[{"k":"6","parts":null}]`, ""},
		{"one beside none", dynamic("list", "[]") + "list {\n  k = 1\n}\n", `[{"k":"1","parts":null}]`, null, ""},
		{"not known", dynamic("list", "ul") + dynamic("set", "ul"), unknown, unknown, ""},
		{"not known beside one", dynamic("list", "ul") + "list {\n  k = 1\n}\n", unknown, null, ""},
		{"none inside", "list {\n  " + dynamic("parts", "[]") + "}\n", `[{"k":null,"parts":null}]`, null, ""},
		{"one inside", dynamic("list", "[1]", dynamic("parts", "[2]", "k = parts.value")), `[{"k":null,"parts":[{"k":"2","l":null}]}]`, null, ""},
		{"none of what is needed", dynamic("needed", "[]"), "", "", "1 Missing required argument"},
		{"the argument and a block", needed + "list = []\nlist {\n}\n", "", "", "5 Unsupported block type"},
		{"the argument and none", needed + "list = []\n" + dynamic("list", "[]"), "", "", "5 Unsupported block type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.text
			if c.reported == "" {
				text += needed
			}
			f, diags := hclsyntax.ParseConfig([]byte(text), "t", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			body, ds := lang.CompileBody(f.Body, b)
			v, more := body.Eval((&demand.Graph{}).Task(t.Context()), scope{
				"ul": cty.UnknownVal(cty.List(cty.String)), "none": cty.ListValEmpty(cty.String), "secret": cty.ListValEmpty(cty.String).Mark(value.Sensitive),
			})
			if ds = append(ds, more...); ds.HasErrors() || c.reported != "" {
				if got := fmt.Sprintf("%d %s", ds[0].At.Start.Line, ds[0].Summary); got != c.reported {
					t.Errorf("got %s, want %s", got, c.reported)
				}
				return
			}
			for name, want := range map[string]string{"list": c.list, "set": c.set} {
				x := v.GetAttr(name)
				if x.IsMarked() {
					t.Errorf("%s is marked", name)
				}
				got := unknown
				if x.IsKnown() {
					src, err := ctyjson.Marshal(x, x.Type())
					if err != nil {
						t.Fatal(err)
					}
					got = string(src)
				}
				if got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

// Values of a secret collection in an argument that is written as blocks are secret, and no
// others.
func TestArgumentAsBlocksSecret(t *testing.T) {
	b := &schema.Block{Attributes: map[string]*schema.Attribute{"list": {Type: cty.List(cty.Object(map[string]cty.Type{"k": cty.String, "l": cty.String})), Optional: true}}}
	f, diags := hclsyntax.ParseConfig([]byte("list {\n  k = 1\n}\ndynamic \"list\" {\n  for_each = secret\n  content {\n    k = 2\n  }\n}\n"), "t", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	body, ds := lang.CompileBody(f.Body, b)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	v, ds := body.Eval((&demand.Graph{}).Task(t.Context()), scope{"secret": cty.ListVal([]cty.Value{cty.True}).Mark(value.Sensitive)})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	want := []cty.Path{cty.GetAttrPath("list").IndexInt(1).GetAttr("k")}
	if got := value.PathsWith(v, value.Sensitive); len(got) != 1 || !got[0].Equals(want[0]) {
		t.Errorf("secret are %#v", got)
	}
}
