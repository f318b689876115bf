package inputs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// open reads a unit whose dependencies have unknown outputs.
func open(t *testing.T, text string) (*demand.Task, *unit.Unit) {
	t.Helper()
	root := testkit.Files(t, "-- dep/terragrunt.hcl --\n-- u/terragrunt.hcl --\n"+text)
	l := unit.NewLoader(unit.Env{WorkingDir: root, Outputs: func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String)}), true, nil
	}})
	task := l.Task(t.Context())
	u, ds := l.Unit(task, filepath.Join(root, "u", "terragrunt.hcl"), "")
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return task, u
}

func variables(t *testing.T, text string) map[string]*config.Variable {
	t.Helper()
	return plantest.Tree(t, text).Root.Config.Variables
}

// A value for a variable is the one that the same text in the environment gives.
func TestForVariable(t *testing.T) {
	declared := variables(t, `
variable "any" {}
variable "text" { type = string }
variable "number" { type = number }
variable "list" { type = list(string) }
variable "object" { type = object({ a = string, b = optional(number, 3) }) }
`)
	list := cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})
	for _, tt := range []struct {
		name     string
		in, want cty.Value
		ds       string
	}{
		{"any", cty.NumberIntVal(1), cty.StringVal("1"), ""},
		{"any", list, cty.StringVal(`["a","b"]`), "Input given as JSON text"},
		{"text", list, cty.StringVal(`["a","b"]`), "Input given as JSON text"},
		{"text", cty.UnknownVal(cty.List(cty.String)), cty.UnknownVal(cty.List(cty.String)), ""},
		{"number", cty.StringVal("x"), cty.StringVal("x"), "Invalid value for input variable"},
		{"list", cty.StringVal(`["a", "b"]`), list, ""},
		{"list", cty.StringVal(`["${a} $${b} %{ if c }"]`), cty.TupleVal([]cty.Value{cty.StringVal("${a} ${b} %{ if c }")}), ""},
		{"list", cty.StringVal(`["%{ if true }a%{ endif }"]`), cty.TupleVal([]cty.Value{cty.StringVal("a")}), ""},
		{"text", cty.StringVal("${a}"), cty.StringVal("${a}"), ""},
		{"list", cty.StringVal(`[`), cty.StringVal(`[`), "Invalid value for input variable"},
		{"object", cty.ObjectVal(map[string]cty.Value{"a": cty.True}), cty.ObjectVal(map[string]cty.Value{"a": cty.True}), ""},
		{"object", cty.EmptyObjectVal, cty.EmptyObjectVal, "Invalid value for input variable"},
	} {
		in, ds := inputs.ForVariable(declared[tt.name], tt.in, nil, nil)
		summary := ""
		if len(ds) > 0 {
			summary = ds[0].Summary
		}
		if !in.Value.RawEquals(tt.want) || summary != tt.ds {
			t.Errorf("%s = %#v: %#v %v", tt.name, tt.in, in.Value, ds.Err())
		}
	}
}

// Marks of a value, such as sensitivity, remain in every form of the value.
func TestMarks(t *testing.T) {
	declared := variables(t, "variable \"any\" {}\nvariable \"list\" { type = list(string) }\n")
	for name, v := range map[string]cty.Value{"any": cty.TupleVal([]cty.Value{cty.StringVal("a").Mark("m")}), "list": cty.StringVal(`["a"]`).Mark("m")} {
		if in, _ := inputs.ForVariable(declared[name], v, nil, nil); !in.Value.ContainsMarked() {
			t.Errorf("%s: %#v", name, in.Value)
		}
	}
}

// Of returns the inputs that the module declares, with their positions. An input with an unknown
// part waits, unless another source gives the variable a value.
func TestOf(t *testing.T) {
	task, u := open(t, "dependency \"dep\" { config_path = \"../dep\" }\ninputs = {\n  a = 1\n  b = dependency.dep.outputs.id\n  other = 2\n}\n")
	declared := variables(t, "variable \"a\" { type = number }\nvariable \"b\" { type = string }\nvariable \"c\" {}\n")
	values, waits, ds := inputs.Of(task, u, declared)
	if ds.HasErrors() || len(values) != 2 || values["a"].At.Start.Line != 3 || len(waits) != 1 || waits[0].Name != "b" {
		t.Fatalf("%v %v %v", values, waits, ds.Err())
	}
	missing := inputs.Missing("u", u.Path, declared, values)
	if len(missing) != 1 || !strings.Contains(missing[0].Detail, `"c"`) || missing[0].At.Filename != u.Path {
		t.Error(missing.Err())
	}
	waits = inputs.Override(values, waits, map[string]engine.InputValue{"b": {Value: cty.StringVal("x")}})
	if len(waits) != 0 || !values["b"].Value.RawEquals(cty.StringVal("x")) {
		t.Errorf("%v %v", waits, values["b"])
	}
}

// The environment of programs contains all inputs that are known, but none that the environment
// of the caller sets.
func TestEnviron(t *testing.T) {
	task, u := open(t, "dependency \"dep\" { config_path = \"../dep\" }\ninputs = {\n  a = 1\n  b = dependency.dep.outputs.id\n  c = [\"x\"]\n  d = \"own\"\n}\n")
	got := strings.Join(inputs.Environ(task, u, sys.Env{"TF_VAR_d=given"}), " ")
	if d := cmp.Diff(`TF_VAR_a=1 TF_VAR_c=["x"]`, got); d != "" {
		t.Error(d)
	}
}
