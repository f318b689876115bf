package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A file that is a symbolic link belongs to the module of the link too: its names are found, and a rename that
// would change both modules is refused.
func TestSymbolicLinks(t *testing.T) {
	dir := unpack(t, "-- a/main.tf --\nvariable \"size\" {}\noutput \"o\" {\n  value = var.size\n}\n-- b/use.tf --\noutput \"p\" {\n  value = \"${var.size} ${local.own}\"\n}\nlocals {\n  own = 1\n}\n-- m/main.tf --\nmodule \"b\" {\n  source = \"../b\"\n  size   = 1\n}\n")
	for link, to := range map[string]string{"b/main.tf": "../a/main.tf", "b/gone.tf": "../nothing.tf", "b/device.tf": "/dev/null", "b/loop.tf": "loop.tf"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	c := start(t, dir, nil)
	p := c.at("b/use.tf", "var.si")
	p["context"] = map[string]any{"includeDeclaration": true}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references", c.places(refs), "b/main.tf:1 size", "b/main.tf:3 size", "b/use.tf:2 size", "m/main.tf:3 size")
	for _, x := range []struct{ name, before, err string }{
		{"b/use.tf", "var.si", "symbolic link"}, {"a/main.tf", "var.si", "symbolic link"}, {"m/main.tf", "  si", "symbolic link"}, {"b/use.tf", "local.ow", ""},
	} {
		p := c.at(x.name, x.before)
		p["newName"] = "new"
		if err := c.try("textDocument/rename", p, nil); x.err == "" && err != nil || x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("rename in %s behind %q: %v", x.name, x.before, err)
		}
	}
}

// A file that is opened through a symbolic link to a directory is the file itself: it has the same module or unit,
// the same references and diagnostics, and its text counts for all. Links that lead back, or out of the workspace, are
// not followed.
func TestLinkedDirectories(t *testing.T) {
	out := unpack(t, "-- far/main.tf --\nvariable \"far\" {}\n")
	dir := unpack(t, `
-- shared/app/terragrunt.hcl --
terraform {
  source = "../../modules/m"
}
inputs = {
  size = 1
}
-- modules/m/main.tf --
variable "size" {}
output "id" {
  value = var.size
}
-- live/prod/db/terragrunt.hcl --
terraform {
  source = "../../../linked/m"
}
dependency "app" {
  config_path = "../app"
}
inputs = {
  size = dependency.app.outputs.id
}
-- live/prod/db/more.tf --
module "far" {
  source = "../../../out/far"
}
`)
	for link, to := range map[string]string{"live/prod/app": "../../shared/app", "linked": "modules", "live/loop": "..", "self": "self", "out": out} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	c := start(t, dir, nil)
	var symbols []protocol.WorkspaceSymbol
	c.call("workspace/symbol", map[string]any{"query": "var."}, &symbols)
	var names []string
	for _, s := range symbols {
		names = append(names, c.name(s.Location.URI)+" "+s.Name)
	}
	equal(t, "the files of the workspace", names, "modules/m/main.tf var.size")
	p := c.at("modules/m/main.tf", `variable "si`)
	p["context"] = map[string]any{"includeDeclaration": true}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references through links", c.places(refs), "live/prod/db/terragrunt.hcl:8 size", "modules/m/main.tf:1 size", "modules/m/main.tf:3 size", "shared/app/terragrunt.hcl:5 size")
	p = c.at("modules/m/main.tf", `output "i`)
	c.call("textDocument/references", p, &refs)
	equal(t, "uses of an output of a linked unit", c.places(refs), "live/prod/db/terragrunt.hcl:8 id")

	const through, real = "live/prod/app/terragrunt.hcl", "shared/app/terragrunt.hcl"
	c.open(through)
	if got := c.hoverText(through, "  siz"); !strings.Contains(got, "size") || strings.Contains(got, "not a directory") {
		t.Errorf("hover through a link: %s", got)
	}
	equal(t, "links", c.targets(through), "modules/m/main.tf")
	equal(t, "diagnostics", c.diagnostics(through))
	var views viewpointsResult
	c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("linked/m/main.tf")}}, &views)
	var all []string
	for _, u := range views.All {
		all = append(all, c.name(u))
	}
	equal(t, "the viewpoints of the module", all, real, "live/prod/db/terragrunt.hcl")
	text := strings.Replace(c.open(real), "size = 1", "size = local.sise", 1)
	right := func(all []string) bool { return len(all) == 0 }
	c.wait(real, right)
	c.change(through, text) // the document that was changed last counts
	wrong := func(all []string) bool { return strings.Contains(strings.Join(all, "\n"), "sise") }
	c.wait(through, wrong)
	c.wait(real, wrong)
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(through)}})
	c.wait(through, right)
	c.wait(real, right)
}
