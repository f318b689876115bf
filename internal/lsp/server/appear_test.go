package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error about a file that does not exist disappears when the file appears, and comes back when it is deleted. An
// open document exists also if its file on disk is deleted.
func TestIncludedFileAppears(t *testing.T) {
	dir := unpack(t, "-- a/terragrunt.hcl --\ninclude \"root\" {\n  path = \"../x.hcl\"\n}\nterraform {\n  source = \".\"\n}\n-- a/main.tf --\n")
	c := start(t, dir, nil)
	c.open("a/terragrunt.hcl")
	file := filepath.Join(dir, "x.hcl")
	missing := func(what string, want int) {
		t.Helper()
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
		if got := c.diagnostics("a/terragrunt.hcl"); len(got) != want {
			t.Errorf("%s: %q", what, got)
		}
	}
	missing("no file", 1)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing("a new file", 0)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	missing("a deleted file", 1)
	c.opened("x.hcl", "")
	missing("an unsaved document", 0)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing("a saved document", 0)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	missing("a document whose file was deleted", 0)
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": c.uri("a/terragrunt.hcl"), "version": 9}, "contentChanges": []any{map[string]any{"text": "include \"root\" {\n  path = \"../x.hcl\"\n}\nterraform {\n  source = \"./\"\n}\n"}}})
	missing("another text of the unit", 0)
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri("x.hcl")}})
	missing("a closed document", 1)
}

// A file that an included file finds for each unit is used by the units again after an edit of its name.
func TestFoundFileIsUsedAgain(t *testing.T) {
	const root = "locals {\n  account = read_terragrunt_config(find_in_parent_folders(\"account.hcl\"))\n}\n"
	c := start(t, unpack(t, "-- root.hcl --\n"+root+"-- eu/account.hcl --\n-- eu/one/terragrunt.hcl --\ninclude \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n"), nil)
	views := func(want ...string) {
		t.Helper()
		var r viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("eu/account.hcl")}}, &r)
		var all []string
		for _, u := range r.All {
			all = append(all, c.name(u))
		}
		equal(t, "the viewpoints", all, want...)
	}
	c.open("root.hcl")
	views("eu/one/terragrunt.hcl")
	c.change("root.hcl", strings.Replace(root, "account.hcl", "other.hcl", 1))
	views()
	c.change("root.hcl", root)
	views("eu/one/terragrunt.hcl")
}
