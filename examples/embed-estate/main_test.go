package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEstate lists, checks, plans and explains a copy of the estate in this directory.
func TestEstate(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"live", "modules"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	live := filepath.Join(dir, "live")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"list"}, []string{"vpc \napp vpc\n"}},
		{[]string{"check"}, nil},
		{[]string{"plan"}, []string{"app succeeded: 1 to add", "vpc succeeded: 1 to add"}},
		{[]string{"inputs", "app"}, []string{"name at line 6, known: true", "vpc at line 7, known: false"}},
		{[]string{"explain", "app", "local.tags.name"}, []string{`local.tags.name = "web"`, "app/terragrunt.hcl:6"}},
		{[]string{"explain", "app", "inputs.name"}, []string{`inputs.name = "web"`, "app/terragrunt.hcl:6"}},
	} {
		var out strings.Builder
		if err := run(t.Context(), &out, append([]string{live}, test.args...)); err != nil {
			t.Errorf("%v: %v", test.args, err)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v printed %q, which lacks %q", test.args, out.String(), want)
			}
		}
	}
}

// A missing unit and an unreadable file are errors that name them.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "terragrunt.hcl"), []byte("inputs = {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, []string{dir, "plan"}); err == nil || !strings.Contains(err.Error(), "terragrunt.hcl line 2") {
		t.Errorf("got %v", err)
	}
	if err := run(t.Context(), &out, []string{"live", "explain", "nobody", "local.x"}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("got %v", err)
	}
	if err := run(t.Context(), &out, []string{filepath.Join(dir, "missing"), "plan"}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}
