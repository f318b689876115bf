package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// notes is a provider of the program itself: a note_line is a line of text.
type notes struct {
	provider.Unimplemented // for methods that it does not implement
	lines                  map[string]string
}

func (n *notes) Schema(context.Context) (*schema.Provider, diag.List) {
	line := &schema.Resource{Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"id":   {Type: cty.String, Computed: true},
		"text": {Type: cty.String, Required: true},
	}}}
	return &schema.Provider{
		Config: &schema.Block{},
		Types:  map[addr.Mode][]string{addr.Managed: {"note_line"}},
		Decode: func(mode addr.Mode, name string) *schema.Resource {
			if mode != addr.Managed || name != "note_line" {
				return nil
			}
			return line
		},
	}, nil
}

func (n *notes) UpgradeState(_ context.Context, req provider.UpgradeRequest) (cty.Value, diag.List) {
	var line struct{ ID, Text string }
	if err := json.Unmarshal(req.JSON, &line); err != nil {
		return cty.NilVal, diag.Errorf("", nil, "Unreadable note", "%s.", err)
	}
	return note(line.ID, line.Text), nil
}
func (n *notes) Read(_ context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	id := req.Prior.GetAttr("id").AsString()
	text, ok := n.lines[id]
	if !ok {
		return provider.ReadResponse{State: cty.NullVal(req.Prior.Type())}, nil
	}
	return provider.ReadResponse{State: note(id, text)}, nil
}
func (n *notes) Plan(_ context.Context, req provider.PlanRequest) (provider.PlanResponse, diag.List) {
	p := req.Proposed
	if req.Prior.IsNull() && !p.IsNull() {
		p = cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String), "text": p.GetAttr("text")})
	}
	return provider.PlanResponse{Planned: p}, nil
}
func (n *notes) Apply(_ context.Context, req provider.ApplyRequest) (provider.ApplyResponse, diag.List) {
	if req.Planned.IsNull() {
		delete(n.lines, req.Prior.GetAttr("id").AsString())
		return provider.ApplyResponse{State: req.Planned}, nil
	}
	text := req.Planned.GetAttr("text").AsString()
	n.lines["note"] = text
	return provider.ApplyResponse{State: note("note", text)}, nil
}

func note(id, text string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(id), "text": cty.StringVal(text)})
}

const noted = `terraform {
  required_providers {
    note = { source = "example.com/me/note" }
  }
}
locals { word = "hello" }
resource "note_line" "a" { text = local.word }
output "id" { value = note_line.a.id }
`

// With a provider of the program itself, the state and the journal are files, as with other
// providers.
func TestOwnProvider(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), []byte(noted))
	n := &notes{lines: map[string]string{}}
	o := terrace.Options{
		Dir: dir, Environ: []string{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull},
		Providers: map[addr.Provider]provider.Factory{
			{Host: "example.com", Namespace: "me", Type: "note"}: func(context.Context) (provider.Provider, diag.List) { return n, nil },
		},
	}
	if ds := terrace.Init(t.Context(), o); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	apply := func(mode plan.Mode) {
		t.Helper()
		f, ds := terrace.Open(t.Context(), o)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		p, ds := f.Plan(t.Context(), engine.PlanOptions{Options: plan.Options{Mode: mode}})
		if !ds.HasErrors() && mode == plan.Normal {
			var x *explanation.Explanation
			if x, ds = f.Explain(t.Context(), "note_line.a.text"); len(x.Steps) == 0 || x.Steps[len(x.Steps)-1].Kind != explanation.Local {
				t.Errorf("%v is no explanation", x)
			}
		}
		if !ds.HasErrors() {
			_, ds = f.Apply(t.Context(), p)
		}
		if ds = append(ds, f.Close()...); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	}
	apply(plan.Normal)
	if n.lines["note"] != "hello" {
		t.Fatalf("the provider has %v", n.lines)
	}
	// The state is read, changed and written without a directory.
	path := filepath.Join(dir, "terraform.tfstate")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, ds := statefile.Parse(path, text)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	from, err := addr.ParseInstance("note_line.a")
	to, err2 := addr.ParseInstance("note_line.b")
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	d := s.Edit()
	if !d.MoveInstance(from, to) {
		t.Fatal("the instance is not in the state")
	}
	next := d.Freeze()
	var out bytes.Buffer
	if err := statefile.Write(&out, next.WithMeta(next.Lineage, next.Serial+1, state.LanguageVersion), true); err != nil {
		t.Fatal(err)
	}
	write(t, path, out.Bytes())
	write(t, filepath.Join(dir, "main.tf"), []byte(strings.ReplaceAll(strings.ReplaceAll(noted, "\"a\"", "\"b\""), "line.a", "line.b")))
	f, ds := terrace.Open(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	p, ds := f.Plan(t.Context(), engine.PlanOptions{})
	if ds = append(ds, f.Close()...); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	for _, c := range p.Changes {
		if c.Op != plan.NoOp {
			t.Errorf("%s %s is planned after the state was changed", c.Op, c.Addr)
		}
	}
	apply(plan.Destroy)
	if len(n.lines) > 0 {
		t.Errorf("the provider has %v after destroy", n.lines)
	}
}

// careless is a provider with a bug.
type careless struct{ notes }

func (*careless) Plan(context.Context, provider.PlanRequest) (provider.PlanResponse, diag.List) {
	panic("no plan today")
}

// A missing method and a panic are errors that name the provider.
func TestMistakesOfProviders(t *testing.T) {
	for _, test := range []struct {
		p          provider.Provider
		extra      string
		code, text string
	}{
		{&careless{notes{lines: map[string]string{}}}, "", "provider/panic", "The method Plan of the provider example.com/me/note panicked: no plan today"},
		{&struct{ provider.Provider }{}, "", "provider/panic", "The method Schema of the provider example.com/me/note panicked"},
		{&notes{lines: map[string]string{}}, "import {\n  to = note_line.a\n  id = \"x\"\n}\n", provider.CodeUnimplemented, "no method Import"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "main.tf"), []byte(noted+test.extra))
		o := terrace.Options{
			Dir: dir, Environ: []string{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull},
			Providers: map[addr.Provider]provider.Factory{
				{Host: "example.com", Namespace: "me", Type: "note"}: func(context.Context) (provider.Provider, diag.List) { return test.p, nil },
			},
		}
		ds := terrace.Init(t.Context(), o)
		if !ds.HasErrors() {
			f, more := terrace.Open(t.Context(), o)
			if ds = append(ds, more...); f != nil {
				if !more.HasErrors() {
					_, more = f.Plan(t.Context(), engine.PlanOptions{})
					ds = append(ds, more...)
				}
				ds = append(ds, f.Close()...)
			}
		}
		found := false
		for _, m := range ds.Errors() {
			found = found || m.Code == test.code && strings.Contains(m.Detail, test.text)
		}
		if !found {
			t.Errorf("%s is missing in %v", test.text, ds)
		}
	}
}
