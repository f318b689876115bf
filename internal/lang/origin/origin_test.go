package origin

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what explanations are into testdata")

// A house is a loaded directory with its Explainer.
type house struct {
	*Explainer
	graph   *demand.Graph
	options eval.Options
}

// open loads the files of a directory. The sources of root variables are terraform.tfvars, env (TF_VAR_)
// and flags, in this order.
func open(t testing.TB, files map[string]string, env, flags map[string]string, known func(addr.Instance) cty.Value) *house {
	t.Helper()
	disk := fstest.MapFS{}
	for name, text := range files {
		disk[name] = &fstest.MapFile{Data: []byte(text)}
	}
	set := &source.Set{}
	table := funcs.Table(funcs.Config{PureOnly: true, ReadFile: disk.ReadFile})
	tree, ds := module.Build(t.Context(), ".", module.Options{Config: config.Options{FS: disk, Set: set}, Workspace: "default"})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	e := &Explainer{Set: set, Layers: map[string]source.Layer{}, Known: known}
	vars := map[string]eval.Input{}
	if text, ok := files["terraform.tfvars"]; ok {
		layer := &source.Layer{Kind: source.VarFile, Name: "terraform.tfvars"}
		set.Add(&source.File{Path: "terraform.tfvars", Bytes: []byte(text), Layer: layer})
		f, diags := hclsyntax.ParseConfig([]byte(text), "terraform.tfvars", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		attrs, _ := f.Body.JustAttributes()
		for name, a := range attrs {
			v, _ := a.Expr.Value(nil)
			at := a.Range
			vars[name] = eval.Input{Value: v, At: &at, From: "a variable definitions file"}
			e.Layers[name] = *layer
		}
	}
	for name, text := range env {
		vars[name] = eval.Input{Value: cty.StringVal(text), From: "the environment variable TF_VAR_" + name}
		e.Layers[name] = source.Layer{Kind: source.Environment, Name: "TF_VAR_" + name}
	}
	for name, text := range flags {
		vars[name] = eval.Input{Value: cty.StringVal(text), From: "a -var option on the command line"}
		e.Layers[name] = source.Layer{Kind: source.Flag, Name: "-var"}
	}
	for name, v := range tree.Root.Config.Variables {
		if _, ok := vars[name]; !ok && v.Required() {
			vars[name] = eval.Input{Value: cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())}
		}
	}
	h := &house{Explainer: e, graph: &demand.Graph{}}
	h.options = eval.Options{Tree: tree, Phase: Phase{e}, Variables: vars, Workspace: "default", RootDir: ".", Cwd: "/work", Functions: table}
	e.Eval = eval.New(h.graph, h.options)
	return h
}

func (h *house) ask(t testing.TB, address string) (*Explanation, diag.List) {
	task := h.graph.Task(t.Context())
	x, ds := h.Explain(task, address)
	end, more := h.Ends(task).Of(address)
	switch {
	case ds.HasErrors() != more.HasErrors() || end == nil && !ds.HasErrors() && len(x.Steps) > 0:
		t.Errorf("%s: its end is %v (%v), but it has %d steps (%v)", address, end, more, len(x.Steps), ds)
	case end != nil:
		last := x.Steps[len(x.Steps)-1]
		if end.Kind != last.Kind || (end.At == nil) != (last.At == nil) || end.At != nil && (end.At.File != last.At.File || end.At.Line != last.At.Line) {
			t.Errorf("%s ends in %v, not in %v", address, end.At, last.At)
		}
	}
	return x, ds
}

// TestExplain runs the archives in testdata. Each contains the files of a directory, the addresses to
// explain in its comment, and the expected explanations in "output". Lines "env NAME=TEXT" and "flag
// NAME=TEXT" set variables.
func TestExplain(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, env, flags := map[string]string{}, map[string]string{}, map[string]string{}
			want, at := "", -1
			for i, f := range archive.Files {
				if f.Name == "output" {
					want, at = string(f.Data), i
					continue
				}
				files[f.Name] = string(f.Data)
			}
			var got strings.Builder
			var h *house
			for line := range strings.Lines(string(archive.Comment)) {
				word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				name, text, _ := strings.Cut(rest, "=")
				switch word {
				case "env":
					env[name] = text
				case "flag":
					flags[name] = text
				case "explain":
					if h == nil {
						h = open(t, files, env, flags, nil)
					}
					fmt.Fprintf(&got, "> %s\n", rest)
					x, ds := h.ask(t, rest)
					if ds.HasErrors() {
						fmt.Fprintf(&got, "error: %s\n\n", ds[0].Detail)
						continue
					}
					if err := x.Print(&got); err != nil {
						t.Fatal(err)
					}
					if _, err := json.Marshal(x); err != nil {
						t.Error(err)
					}
					got.WriteString("\n")
				}
			}
			if *update {
				if at < 0 {
					archive.Files = append(archive.Files, txtar.File{Name: "output"})
					at = len(archive.Files) - 1
				}
				archive.Files[at].Data = []byte(got.String())
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestState(t *testing.T) {
	files := map[string]string{"main.tf": `
resource "terraform_data" "a" {
  input = "x"
}

locals {
  made   = terraform_data.a.id
  secret = terraform_data.a.token
  out    = { id = "${terraform_data.a.id}-1" }
}
`}
	known := func(a addr.Instance) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("i-1"), "token": cty.StringVal("hunter2").Mark(value.Sensitive), "input": cty.StringVal("x")})
	}
	h := open(t, files, nil, nil, known)
	x, ds := h.ask(t, "local.made")
	if ds.HasErrors() || x.Value != cty.StringVal("i-1") {
		t.Errorf("%v %#v", ds.Err(), x.Value)
	}
	if last := x.Steps[len(x.Steps)-1]; last.Kind != Provider || !strings.Contains(last.Text, "in state") {
		t.Errorf("%+v", last)
	}
	if x, _ = h.ask(t, "terraform_data.a.id"); !x.FromState || x.Value != cty.StringVal("i-1") {
		t.Errorf("%+v", x)
	}
	if x, _ = h.ask(t, "local.secret"); !x.Sensitive || strings.Contains(text(t, x), "hunter2") {
		t.Error(text(t, x))
	}
	h = open(t, files, nil, nil, nil)
	if x, _ = h.ask(t, "local.made"); x.Value != cty.NilVal || x.FromState {
		t.Errorf("%+v", x)
	}
}

func text(t *testing.T, x *Explanation) string {
	t.Helper()
	var b strings.Builder
	if err := x.Print(&b); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(raw)
}
