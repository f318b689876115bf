package selection_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/inmem"
	"github.com/terrace-iac/terrace/internal/state/backend/local"
	"github.com/terrace-iac/terrace/internal/state/backend/selection"
	"github.com/zclconf/go-cty/cty"
)

// signer is a user with a secret of its own.
type signer string

func (s signer) Sign(purpose string, texts ...string) (string, bool) {
	return string(s) + purpose + strings.Join(texts, "|"), true
}

func (s signer) Signed(code, purpose string, texts ...string) bool {
	want, _ := s.Sign(purpose, texts...)
	return strings.ReplaceAll(code, "\n", "") == strings.ReplaceAll(want, "\n", "")
}

func directory(t *testing.T) selection.Directory {
	path := t.TempDir()
	unknown := func(name string) diag.List {
		return diag.Errorf(diag.CodeBackendUnknown, nil, "Unsupported backend type", "There is no %s.", name)
	}
	return selection.Directory{
		Backends: backend.NewSet([]backend.Kind{local.Kind(), inmem.Kind()}, unknown, backend.Services{}),
		Path:     path, Data: filepath.Join(path, ".terraform"), User: signer("me"), Default: "local", Program: "terrace", Product: "Terrace",
	}
}

func block(t *testing.T, kind, body string) *config.Backend {
	t.Helper()
	f, diags := hclsyntax.ParseConfig([]byte(body), "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return &config.Backend{Type: kind, Body: f.Body}
}

func eval(x hcl.Expression) (cty.Value, diag.List) {
	v, diags := x.Value(nil)
	return v, diag.FromHCL(diags)
}

// initialize selects and records the backend like init.
func initialize(t *testing.T, d selection.Directory, in selection.Init) (*selection.Outcome, diag.List) {
	t.Helper()
	in.Eval = eval
	out, ds := d.Settle(t.Context(), in)
	if ds.HasErrors() {
		return nil, ds
	}
	return out, append(ds, d.Save(out)...)
}

func path(c backend.Config) string { return c.Value.GetAttr("path").AsString() }

// Commands use the recorded backend, and refuse a block that differs.
func TestRecordOfInit(t *testing.T) {
	d := directory(t)
	a, b := block(t, "local", `path = "a"`), block(t, "local", `path = "b"`)
	if _, ds := d.Current(a, eval); len(ds) != 1 || ds[0].Code != selection.InitCode {
		t.Errorf("before init: %v", ds)
	}
	if _, ds := initialize(t, d, selection.Init{Block: a}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if c, ds := d.Current(a, eval); ds.HasErrors() || path(c) != "a" {
		t.Errorf("after init: %v, %v", c, ds)
	}
	for _, changed := range []*config.Backend{b, block(t, "inmem", ""), nil} {
		if _, ds := d.Current(changed, eval); len(ds) != 1 || ds[0].Code != selection.InitCode {
			t.Errorf("after a change of the block: %v", ds)
		}
		if c, initialized, ds := d.Settled(); ds.HasErrors() || !initialized || path(c) != "a" {
			t.Errorf("the states are at %v, %v", c, ds)
		}
	}
	if _, ds := initialize(t, d, selection.Init{Block: b}); len(ds) != 1 || ds[0].Code != selection.CodeChanged {
		t.Errorf("init after a change: %v", ds)
	}
	out, ds := initialize(t, d, selection.Init{Block: b, Migrate: true})
	if ds.HasErrors() || out.From == nil || path(*out.From) != "a" || path(out.Config) != "b" {
		t.Errorf("migration: %+v, %v", out, ds)
	}
	if c, ds := d.Current(b, eval); ds.HasErrors() || path(c) != "b" {
		t.Errorf("after migration: %v, %v", c, ds)
	}
}

// A record that overrides the block counts only if this user's init wrote it in this
// directory.
func TestRecordOfAnother(t *testing.T) {
	d := directory(t)
	a := block(t, "local", `path = "a"`)
	if _, ds := initialize(t, d, selection.Init{Block: a, Options: []string{"path=other"}}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if c, ds := d.Current(a, eval); ds.HasErrors() || path(c) != "other" {
		t.Errorf("my own init: %v, %v", c, ds)
	}
	d.User = signer("somebody")
	if _, ds := d.Current(a, eval); len(ds) != 1 || ds[0].Code != selection.InitCode || !strings.Contains(ds[0].Detail, "another value of path") {
		t.Errorf("the init of another user: %v", ds)
	}
}

// Settle changes nothing.
func TestSettleChangesNothing(t *testing.T) {
	d := directory(t)
	if _, ds := d.Settle(t.Context(), selection.Init{Block: block(t, "local", `path = "a"`), Eval: eval}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if files, err := os.ReadDir(d.Path); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// Without a block, states are in files of the directory.
func TestWithoutBlock(t *testing.T) {
	d := directory(t)
	if c, ds := d.Current(nil, eval); ds.HasErrors() || c.Type != "local" {
		t.Errorf("%v, %v", c, ds)
	}
	if _, ds := initialize(t, d, selection.Init{Block: block(t, "local", `path = "a"`)}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	out, ds := initialize(t, d, selection.Init{Migrate: true})
	if ds.HasErrors() || !out.Unset || out.From == nil || path(*out.From) != "a" {
		t.Errorf("%+v, %v", out, ds)
	}
	if c, ds := d.Current(nil, eval); ds.HasErrors() || !c.Value.GetAttr("path").IsNull() {
		t.Errorf("%v, %v", c, ds)
	}
}

// The variable has precedence over the recorded workspace.
func TestWorkspace(t *testing.T) {
	data := t.TempDir()
	for _, step := range []struct {
		env        sys.Env
		note, want string
	}{{nil, "", "default"}, {nil, "dev\n", "dev"}, {sys.Env{"TF_WORKSPACE=prod"}, "dev\n", "prod"}} {
		if step.note != "" {
			if err := os.WriteFile(filepath.Join(data, "environment"), []byte(step.note), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := selection.Workspace(step.env, data); err != nil || got != step.want {
			t.Errorf("%+v: %s, %v", step, got, err)
		}
	}
}
