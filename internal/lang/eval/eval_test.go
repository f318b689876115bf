package eval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"golang.org/x/tools/txtar"
)

// phase returns the configuration of an instance, with the address as id.
type phase struct{ schema *schema.Resource }

func (p phase) Value(t *demand.Task, d *eval.Desired) (cty.Value, diag.List) {
	v, ds := d.Config(t, p.schema)
	if ds.HasErrors() {
		return cty.UnknownVal(p.schema.Block.ImpliedType()), ds
	}
	vals := v.AsValueMap()
	vals["id"] = cty.StringVal("id of " + d.Addr().String())
	return cty.ObjectVal(vals), ds
}

func (p phase) Schema(*demand.Task, addr.Provider) (*schema.Provider, diag.List) {
	return &schema.Provider{
		Config: &schema.Block{}, Types: map[addr.Mode][]string{addr.Managed: {"x_thing"}},
		Decode: func(addr.Mode, string) *schema.Resource { return p.schema },
	}, nil
}

func (p phase) Function(*demand.Task, addr.Provider, *eval.ProviderConfig, string) (function.Function, diag.List) {
	return stdlib.UpperFunc, nil
}

func evaluator(t *testing.T, text string, vars map[string]cty.Value) (*demand.Graph, *eval.Evaluator) {
	t.Helper()
	a := txtar.Parse([]byte(text))
	fsys := fstest.MapFS{"main.tf": {Data: a.Comment}}
	for _, f := range a.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	tree, ds := module.Build(context.Background(), ".", module.Options{Config: config.Options{FS: fsys, Set: &source.Set{}}})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	in := map[string]eval.Input{}
	for name, v := range vars {
		in[name] = eval.Input{Value: v, From: "the test"}
	}
	g := &demand.Graph{}
	s := &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Computed: true}, "name": {Type: cty.String, Optional: true}, "old": {Type: cty.String, Optional: true, Deprecated: "use name"},
	}}}
	return g, eval.New(g, eval.Options{
		Tree: tree, Phase: phase{s}, Variables: in, Workspace: "ws", RootDir: ".", Cwd: "/cwd",
		Functions: map[string]function.Function{"upper": stdlib.UpperFunc, "length": stdlib.LengthFunc},
	})
}

// text returns a value as JSON with its marks.
func text(v cty.Value) string {
	marks := ""
	if value.ContainsMark(v, value.Sensitive) {
		marks += "sensitive "
	}
	if value.ContainsMark(v, value.Ephemeral) {
		marks += "ephemeral "
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		return marks + "unknown"
	}
	src, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return err.Error()
	}
	return marks + string(src)
}

func summaries(ds diag.List) []string {
	var out []string
	for _, m := range ds {
		if m.Summary == "" {
			continue // reported elsewhere
		}
		place := "nowhere"
		if m.At != nil {
			place = fmt.Sprintf("%s:%d", m.At.Filename, m.At.Start.Line)
		}
		out = append(out, place+" "+m.Severity.String()+": "+m.Summary)
	}
	return out
}

const child = "\n-- m/m.tf --\nvariable \"n\" {\n  default = 1\n}\noutput \"twice\" {\n  value = [var.n, var.n]\n}\noutput \"gone\" {\n  value      = 1\n  deprecated = \"use twice\"\n}\n"

func TestOutputs(t *testing.T) {
	for _, c := range []struct {
		name, config string
		vars         map[string]cty.Value
		want         string // value of the output o
		reported     []string
	}{
		{name: "a chain", config: "locals {\n  a = local.b\n  b = upper(\"x\")\n}\noutput \"o\" { value = local.a }", want: `"X"`},
		{name: "a default", config: "variable \"v\" { default = 2 }\noutput \"o\" { value = var.v }", want: "2"},
		{name: "a converted value", config: "variable \"v\" { type = list(string) }\noutput \"o\" { value = var.v }", vars: map[string]cty.Value{"v": cty.TupleVal([]cty.Value{cty.NumberIntVal(1)})}, want: `["1"]`},
		{name: "a wrong value", config: "variable \"v\" { type = number }\noutput \"o\" { value = var.v }", vars: map[string]cty.Value{"v": cty.StringVal("x")}, reported: []string{"main.tf:1 error: Invalid value for input variable"}},
		{name: "null where none is allowed", config: "variable \"v\" {\n  nullable = false\n  default  = \"d\"\n}\noutput \"o\" { value = var.v }", vars: map[string]cty.Value{"v": cty.NullVal(cty.String)}, want: `"d"`},
		{name: "an attribute that may be left out", config: "variable \"v\" {\n  type = object({ a = optional(number, 3) })\n}\noutput \"o\" { value = var.v }", vars: map[string]cty.Value{"v": cty.EmptyObjectVal}, want: `{"a":3}`},
		{name: "sensitive", config: "variable \"v\" {\n  sensitive = true\n  default   = \"s\"\n}\noutput \"o\" {\n  sensitive = true\n  value     = [upper(var.v)]\n}", want: `sensitive ["S"]`},
		{name: "sensitive, not said", config: "variable \"v\" {\n  sensitive = true\n  default   = \"s\"\n}\noutput \"o\" { value = var.v }", reported: []string{"main.tf:5 error: Output refers to sensitive values"}},
		{name: "ephemeral, not said", config: "variable \"v\" {\n  ephemeral = true\n  default   = \"s\"\n}\noutput \"o\" { value = var.v }", reported: []string{"main.tf:5 error: Output does not allow ephemeral value"}},
		{name: "paths and workspace", config: "output \"o\" { value = [path.root, path.cwd, terraform.workspace] }", want: `[".","/cwd","ws"]`},
		{name: "a resource", config: "resource \"x_thing\" \"a\" { name = \"n\" }\noutput \"o\" { value = x_thing.a.id }", want: `"id of x_thing.a"`},
		{name: "count", config: "resource \"x_thing\" \"a\" {\n  count = 2\n  name  = \"n${count.index}\"\n}\noutput \"o\" { value = x_thing.a[*].name }", want: `["n0","n1"]`},
		{name: "for_each", config: "resource \"x_thing\" \"a\" {\n  for_each = { k = \"v\" }\n  name     = each.value\n}\noutput \"o\" { value = x_thing.a[\"k\"].id }", want: `"id of x_thing.a[\"k\"]"`},
		{name: "disabled", config: "resource \"x_thing\" \"a\" {\n  lifecycle {\n    enabled = false\n  }\n}\noutput \"o\" { value = x_thing.a == null }", want: "true"},
		{name: "a negative count", config: "resource \"x_thing\" \"a\" { count = -1 }\noutput \"o\" { value = x_thing.a }", reported: []string{"main.tf:1 error: Invalid count argument"}},
		{name: "a count beyond all memory", config: "resource \"x_thing\" \"a\" { count = 1000000000 }\noutput \"o\" { value = x_thing.a }", reported: []string{"main.tf:1 error: Invalid count argument"}},
		{name: "a module", config: "module \"m\" {\n  source = \"./m\"\n  n      = 5\n}\noutput \"o\" { value = module.m.twice }" + child, want: "[5,5]"},
		{name: "modules", config: "module \"m\" {\n  source = \"./m\"\n  count  = 2\n  n      = count.index\n}\noutput \"o\" { value = module.m[*].twice }" + child, want: "[[0,0],[1,1]]"},
		{name: "a deprecated output", config: "module \"m\" { source = \"./m\" }\noutput \"o\" { value = module.m.gone }" + child, want: "1", reported: []string{"main.tf:2 warning: Value derived from a deprecated source"}},
		{name: "a deprecated attribute, told once", config: "resource \"x_thing\" \"a\" { old = \"z\" }\nlocals { l = x_thing.a.old }\noutput \"o\" { value = local.l }", want: `"z"`, reported: []string{"main.tf:2 warning: Value derived from a deprecated source"}},
		{name: "a deprecated attribute that is not set", config: "resource \"x_thing\" \"a\" {}\noutput \"o\" { value = x_thing.a.old }", want: "null", reported: []string{"main.tf:2 warning: Value derived from a deprecated source"}},
		{name: "a circle", config: "locals {\n  a = local.b\n  b = local.a\n}\noutput \"o\" { value = local.a }", reported: []string{"main.tf:2 error: Cycle"}},
		{name: "nothing of the name", config: "output \"o\" { value = local.nope }", reported: []string{"main.tf:1 error: Reference to undeclared local value"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, ev := evaluator(t, c.config, c.vars)
			v, ok := ev.Root.Output(g.Task(context.Background()), "o")
			if diff := cmp.Diff(c.reported, summaries(g.Diags())); diff != "" {
				t.Errorf("messages: -want +got:\n%s", diff)
			}
			if want := c.want != ""; ok != want {
				t.Fatalf("ok = %t", ok)
			}
			if ok && text(v) != c.want {
				t.Errorf("got %s, want %s", text(v), c.want)
			}
		})
	}
}

// The message of a failed == contains the two sides without secrets.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name, condition, message string
		status                   eval.Status
		reported                 string // the failure, and the differences
	}{
		{"holds", `var.v == "a"`, `"m"`, eval.Pass, ""},
		{"an ==", `var.v == "b"`, `"got ${var.v}"`, eval.Fail, `got a | "a" != "b"`},
		{"a !=", `var.v != "a"`, `"m"`, eval.Fail, `m`},
		{"a secret", `[var.s] == ["b"]`, `"m"`, eval.Fail, `m | ["s"] (secret: [0]) != ["b"]`},
		{"a secret in the message", `var.v == "b"`, `"${var.s}"`, eval.Fail, `The error message included a sensitive value, so it will not be displayed. | "a" != "b"`},
		{"null", `var.v == "a" ? null : true`, `"m"`, eval.Failed, ""},
		{"no condition", `length(var.v) == 1 ? "maybe" : "no"`, `"m"`, eval.Failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, ev := evaluator(t, "variable \"v\" { default = \"a\" }\nvariable \"s\" {\n  sensitive = true\n  default   = \"s\"\n}\ncheck \"c\" {\n  assert {\n    condition     = "+c.condition+"\n    error_message = "+c.message+"\n  }\n}", nil)
			outcomes, ds := ev.Root.Checks()[0].Run(g.Task(context.Background()))
			if len(outcomes) != 1 || outcomes[0].Status != c.status {
				t.Fatalf("%+v", outcomes)
			}
			reported := outcomes[0].Message
			for _, m := range ds {
				if m.Severity != diag.Warning || !m.Alone {
					t.Errorf("%s: %s", m.Severity, m.Summary)
				}
				if d := m.Diff; d != nil {
					reported += " | " + text(d.Before)
					for _, p := range d.BeforeSecret {
						reported += " (secret: " + strings.TrimPrefix(value.PathString(p), ".") + ")"
					}
					reported += " != " + text(d.After)
				}
			}
			if reported != c.reported {
				t.Errorf("got  %s\nwant %s", reported, c.reported)
			}
		})
	}
}
