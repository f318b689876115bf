package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// says is a provisioner type of the program. It records its messages.
type says struct{ heard []string }

func (*says) Schema(typ string) *schema.Block {
	if typ != "say" {
		return nil
	}
	return &schema.Block{Attributes: map[string]*schema.Attribute{"text": {Type: cty.String, Required: true}}}
}
func (*says) ConnectionSchema() *schema.Block                 { return &schema.Block{} }
func (*says) Validate(string, cty.Value, cty.Value) diag.List { return nil }
func (s *says) Run(_ context.Context, _ string, config, _ cty.Value, _ func(string)) diag.List {
	s.heard = append(s.heard, config.GetAttr("text").AsString())
	return nil
}

// kept is a state that the program stores itself.
type kept struct {
	begun []string
	final *state.State
}

func (k *kept) Start(context.Context, int, int) diag.List { return nil }
func (k *kept) Begin(_ int, address, _ string) error {
	k.begun = append(k.begun, address)
	return nil
}
func (k *kept) Answer(int, []state.Change) error              { return nil }
func (k *kept) Sync() error                                   { return nil }
func (k *kept) Write(context.Context, *state.State) diag.List { return nil }
func (k *kept) End(final *state.State) diag.List {
	k.final = final
	return nil
}

// Provisioners of the program can be used with the built-in ones. Its own state storage
// takes part in an apply. A plan with errors is not applied at all.
func TestOwnProvisionerAndState(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), []byte(`
variable "n" {
  type    = number
  default = 1
}
resource "terraform_data" "a" {
  provisioner "say" { text = "hello" }
  provisioner "local-exec" { command = "echo made > ${path.module}/made" }
}
resource "terraform_data" "b" {
  lifecycle {
    precondition {
      condition     = var.n == 1
      error_message = "not one"
    }
  }
}
`))
	s := &says{}
	o := terrace.Options{Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TF_CLI_CONFIG_FILE=" + os.DevNull}, Provisioners: s}
	if ds := terrace.Init(t.Context(), o); ds.HasErrors() {
		t.Fatal(ds)
	}
	apply := func(n string) (*kept, diag.List) {
		t.Helper()
		o.Vars = []string{"n=" + n}
		f, ds := terrace.Open(t.Context(), o)
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		defer f.Close()
		p, _ := f.Plan(t.Context(), engine.PlanOptions{})
		k := &kept{}
		_, ds = f.Engine().Apply(t.Context(), p, engine.ApplyOptions{State: k})
		return k, ds
	}
	if k, ds := apply("2"); !ds.HasErrors() || k.begun != nil || k.final != nil || s.heard != nil {
		t.Errorf("a plan with errors: %v; begun %v, said %v", ds, k.begun, s.heard)
	}
	k, ds := apply("1")
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if len(k.begun) != 2 || k.final == nil || len(s.heard) != 1 || s.heard[0] != "hello" {
		t.Errorf("begun %v, said %v", k.begun, s.heard)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}
