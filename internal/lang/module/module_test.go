package module_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
)

func TestConstraint(t *testing.T) {
	for _, c := range []struct{ text, yes, no string }{
		{"1.2.0", "1.2.0 v1.2.0", "1.2.1 1.2.0-beta x"},
		{"= 1.2.0-beta", "1.2.0-beta", "1.2.0"},
		{"~> 1.2", "1.2.0 1.9.9", "2.0.0 1.1.0 1.3.0-rc1"},
		{">= 1.0.0-beta, < 2.0.0", "1.0.0 1.5.0", "2.0.0 1.0.0-beta"},
		{"!= 1.5.0", "1.4.0", "1.5.0"},
	} {
		got, ds := module.ParseConstraint(c.text, source.Range{})
		if ds.HasErrors() {
			t.Fatal(c.text, ds.Err())
		}
		for _, v := range strings.Fields(c.yes) {
			if !got.Allows(v) {
				t.Errorf("%s does not allow %s", c.text, v)
			}
		}
		for _, v := range strings.Fields(c.no) {
			if got.Allows(v) {
				t.Errorf("%s allows %s", c.text, v)
			}
		}
	}
	for _, bad := range []string{"", "x", ">> 1", "1.0,"} {
		if _, ds := module.ParseConstraint(bad, source.Range{}); !ds.HasErrors() {
			t.Errorf("%q is taken for a constraint", bad)
		}
	}
	if any := (module.Constraint{}); !any.Allows("1.0.0") || any.Allows("1.0.0-beta") {
		t.Error("the zero constraint must allow releases alone")
	}
}

// An installed module must satisfy the call.
func TestBuildHoldsInstalled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf":  "variable \"v\" {\n  default = null\n}\nmodule \"a\" {\n  source  = \"x/y/z\"\n  version = \"~> 1.0\"\n}\nmodule \"b\" {\n  source  = \"x/y/z\"\n  version = var.v\n}\n",
		"in/in.tf": "locals {}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const src = "registry.opentofu.org/x/y/z"
	for _, c := range []struct{ source, version, want string }{
		{src, "1.4.0", ""},
		{src, "2.0.0", "Module version requirements have changed"},
		{"registry.opentofu.org/x/y/other", "1.4.0", "Module not installed"},
		{"", "", "Module not installed"},
	} {
		m := map[string]module.Installed{"b": {Source: src, Version: "7.0.0", Dir: "in"}}
		if c.source != "" {
			m["a"] = module.Installed{Source: c.source, Version: c.version, Dir: "in"}
		}
		tree, ds := module.Build(t.Context(), dir, module.Options{Config: config.Options{Set: &source.Set{}}, Manifest: m})
		if c.want == "" {
			if ds.HasErrors() || tree.Root.Calls["a"].Version != "1.4.0" || tree.Root.Calls["b"].Version != "7.0.0" {
				t.Error(ds.Err())
			}
			continue
		}
		if len(ds) != 1 || ds[0].Summary != c.want || !module.NeedsInstall(ds[0]) {
			t.Errorf("%+v: %v", c, ds.Err())
		}
	}
}

func TestResolveLinks(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "real", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "real", "real/up": "../link", "abs": filepath.Join(root, "real"), "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Skip("SKIP: links cannot be made here")
		}
	}
	for name, want := range map[string]string{
		"real": "real", "link/deep": "real/deep", "link/up/deep": "real/deep", "none/x": "none/x", ".": ".", "../x": "../x", "loop/x": "loop/x",
		"abs/deep": filepath.ToSlash(filepath.Join(root, "real", "deep")),
	} {
		if got := module.ResolveLinks(nil, root, name); got != want && name != "abs/deep" {
			t.Errorf("%s is %s, want %s", name, got, want)
		} else if name == "abs/deep" && !strings.HasSuffix(got, "/real/deep") {
			t.Error(got)
		}
	}
}
