package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

func folder(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func declare(names ...string) map[string]*config.Variable {
	out := make(map[string]*config.Variable)
	for _, name := range names {
		out[name] = &config.Variable{Name: name, Type: cty.String, Literal: true}
	}
	return out
}

func TestPrecedence(t *testing.T) {
	dir := folder(t, `
-- terraform.tfvars --
b = "tfvars"
c = "tfvars"
-- terraform.tfvars.json --
{"c": "json ${literal}", "d": "json"}
-- z.auto.tfvars --
d = "z"
e = "z"
-- a.auto.tfvars.json --
{"d": "a"}
-- .hidden.auto.tfvars --
e = "hidden"
-- more --
{"f": "more"}
`)
	values, ds := CollectVariables(VarSources{
		Dir: dir, Env: sys.Env{"TF_VAR_a=env", "TF_VAR_b=env", "TF_VAR_none=x"},
		Flags: []VarFlag{{Value: "e=flag=1"}, {File: true, Value: "more"}, {Value: "e=last"}},
	}, declare("a", "b", "c", "d", "e", "f"))
	if len(ds) > 0 {
		t.Fatal(ds.Err(), ds[0])
	}
	want := map[string]string{"a": "env", "b": "tfvars", "c": "json ${literal}", "d": "z", "e": "last", "f": "more"}
	for name, text := range want {
		v, ds := ReadVariable(declare(name)[name], values[name])
		if ds.HasErrors() || !v.RawEquals(cty.StringVal(text)) {
			t.Errorf("%s is %#v, want %q", name, v, text)
		}
	}
	if k := values["a"].From.Kind; k != source.Environment {
		t.Errorf("a comes from %v", k)
	}
	if at := values["d"].At; at == nil || at.Filename != "z.auto.tfvars" || at.Start.Line != 1 {
		t.Errorf("d stands at %v", at)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"declaration", "variable \"x\" {}\n", "Variable declaration in .tfvars file"},
		{"reference", "x = var.y\n", "Variables not allowed"},
		{"function", "x = upper(\"a\")\n", "Function calls not allowed"},
		{"block", "x {}\n", "Unexpected \"x\" block"},
		{"twice", "x = 1\nx = 2\n", "Attribute redefined"},
		{"syntax", "x = [\n", "Missing item separator|Unterminated|Missing expression"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, "-- f.tfvars --\n"+test.file)
			_, ds := CollectVariables(VarSources{Dir: dir, Flags: []VarFlag{{File: true, Value: "f.tfvars"}}}, declare("x"))
			if !ds.HasErrors() {
				t.Fatal("no error")
			}
			found := false
			for _, want := range strings.Split(test.want, "|") {
				found = found || strings.Contains(ds[0].Summary, want)
			}
			if !found || ds[0].At == nil || ds[0].At.Filename != "f.tfvars" {
				t.Errorf("got %q at %v", ds[0].Summary, ds[0].At)
			}
		})
	}
}

func TestStrangers(t *testing.T) {
	dir := folder(t, "-- terraform.tfvars --\nu1 = 1\nu2 = 2\nu3 = 3\nu4 = 4\n")
	_, ds := CollectVariables(VarSources{Dir: dir, Flags: []VarFlag{{Value: "nobody=1"}, {Value: "bare"}}}, declare("x"))
	if n := len(ds.Errors()); n != 2 {
		t.Errorf("%d errors: %v", n, ds.Err())
	}
	ws := ds.Warnings()
	if len(ws) != 3 || !strings.Contains(ws[2].Detail, "2 other variable(s)") {
		t.Errorf("warnings: %v", ws)
	}
}

func TestMissing(t *testing.T) {
	d := declare("b", "a", "c")
	d["c"].Default = cty.StringVal("")
	m := engine.Missing(Variables{}, d)
	if len(m) != 2 || m[0].Name != "a" || m[1].Name != "b" {
		t.Errorf("missing %v", m)
	}
	if ds := MissingErrors(m); len(ds) != 2 || !ds.HasErrors() {
		t.Error(ds)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a = 1\nb = [\"x\"]\n"), "x.tfvars")
	f.Add([]byte(`{"a": {"b": null}}`), "x.tfvars.json")
	f.Add([]byte("variable \"x\" {}"), "x")
	f.Fuzz(func(t *testing.T, src []byte, name string) {
		entries, ds := parse(src, name)
		for _, e := range entries {
			if e.value == cty.NilVal {
				t.Fatalf("%q has no value; %v", e.name, ds.Err())
			}
		}
	})
}
