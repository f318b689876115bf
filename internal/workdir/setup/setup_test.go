package setup_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/setup"
)

// initialize initializes a directory. No program is started.
func initialize(ctx context.Context, t *testing.T, dir string, o setup.Options) diag.List {
	t.Helper()
	d, _, err := workdir.Embedded(workdir.Embedding{Dir: dir, NoExec: true, Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	_, ds := setup.Run(ctx, d, o, setup.Silent{})
	return ds
}

// contents returns the texts of the files below a directory, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, err := os.ReadFile(filepath.Join(dir, name))
			out[name] = string(text)
			return err
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

const configured = `
-- main.tf --
terraform {
  backend "local" { path = "a.tfstate" }
}
module "m" { source = "./m" }
resource "terraform_data" "x" {}
-- m/main.tf --
output "o" { value = 1 }
-- a.tfstate --
{"version":4,"terraform_version":"1.10.0","serial":7,"lineage":"here","outputs":{"o":{"value":1,"type":"number"}},"resources":[]}
`

// A second run succeeds and changes no file.
func TestAgain(t *testing.T) {
	dir := testkit.Files(t, configured)
	if ds := initialize(t.Context(), t, dir, setup.Options{}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	first := contents(t, dir)
	if first[".terraform/modules/modules.json"] == "" || first[".terraform/terraform.tfstate"] == "" {
		t.Fatalf("modules and backend are not set up: %v", first)
	}
	if ds := initialize(t.Context(), t, dir, setup.Options{}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	for name, text := range contents(t, dir) {
		if text != first[name] {
			t.Errorf("%s changed to %s", name, text)
		}
	}
}

// A changed backend is an error that keeps the selected backend, until the options decide about
// the state: Migrate copies the state, Reconfigure does not. The old state remains in both cases.
func TestChangedBackend(t *testing.T) {
	for _, tt := range []struct {
		o    setup.Options
		want string // error
		copy bool
	}{
		{setup.Options{}, "Backend configuration changed", false},
		{setup.Options{Migrate: true, ForceCopy: true}, "", true},
		{setup.Options{Reconfigure: true}, "", false},
	} {
		dir := testkit.Files(t, configured)
		if ds := initialize(t.Context(), t, dir, setup.Options{}); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		before := contents(t, dir)
		main := strings.Replace(before["main.tf"], "a.tfstate", "b.tfstate", 1)
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o644); err != nil {
			t.Fatal(err)
		}
		ds := initialize(t.Context(), t, dir, tt.o)
		after := contents(t, dir)
		if tt.want == "" && ds.HasErrors() || tt.want != "" && (!ds.HasErrors() || ds[0].Summary != tt.want) {
			t.Errorf("%+v: %v", tt.o, ds.Err())
		}
		if kept := before[".terraform/terraform.tfstate"] == after[".terraform/terraform.tfstate"]; kept != (tt.want != "") {
			t.Errorf("%+v: the selected backend is kept: %v", tt.o, kept)
		}
		if copied := strings.Contains(after["b.tfstate"], `"here"`); copied != tt.copy || !strings.Contains(after["a.tfstate"]+after["a.tfstate.backup"], `"here"`) {
			t.Errorf("%+v: copied is %v: %v", tt.o, copied, after)
		}
	}
}

// An error in the configuration is reported with its position, and nothing is written.
func TestInvalid(t *testing.T) {
	dir := testkit.Files(t, "-- main.tf --\nlocals {}\nmodule \"m\" {}\n")
	ds := initialize(t.Context(), t, dir, setup.Options{})
	if !ds.HasErrors() || ds[0].At == nil || ds[0].At.Start.Line != 2 {
		t.Errorf("%v", ds)
	}
	if got := contents(t, dir); len(got) != 1 {
		t.Errorf("files: %v", got)
	}
}

// Add accepts the flags of init and of variables, ignores -input, and reports anything else.
func TestAdd(t *testing.T) {
	var o setup.Options
	if ds := o.Add([]string{"-backend-config=path=x", "-var", "a=1", "-input=false", "-upgrade", "-get=false"}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if strings.Join(o.BackendConfig, " ") != "path=x" || len(o.Vars) != 1 || !o.Upgrade || !o.NoModules || o.Input {
		t.Errorf("%+v", o)
	}
	for _, word := range []string{"-unknown", "word"} {
		if ds := o.Add([]string{word}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), strings.TrimPrefix(word, "-")) {
			t.Errorf("%s: %v", word, ds.Err())
		}
	}
}
