package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// The keys of a decoded file have definitions, references and values, and can be renamed where every use
// is known.
func TestDataKeys(t *testing.T) {
	files := moduleFiles + `
-- data.tf --
locals {
  data = yamldecode(file("${path.module}/data.yaml"))
  env  = local.data.tags.env
}
-- use.tf --
output "again" {
  value = local.data.tags["env"] == local.data.tags.env
}
-- data.yaml --
# é
tags:
  env: prod
  "team": core
-- unit/terragrunt.hcl --
locals {
  common = jsondecode(file("common.json"))
}
inputs = {
  size = local.common.size.small
}
-- unit/common.json --
{
	"size": {"small": 1}
}
`
	c := start(t, unpack(t, files), nil)
	for _, x := range []struct{ name, before, want string }{
		{"data.tf", "local.data.tags.", "data.yaml:3 env"},
		{"data.tf", "local.data.", "data.yaml:2 tags"},
		{"use.tf", "== local.data.tags.", "data.yaml:3 env"},
		{"unit/terragrunt.hcl", "local.common.size.", "unit/common.json:2 small"},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at(x.name, x.before), &got)
		equal(t, "definition behind "+x.before, c.places(got), x.want)
	}
	p := c.at("data.yaml", "  e")
	p["context"] = map[string]any{"includeDeclaration": false}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references of a key", c.places(refs), "data.tf:3 env", "use.tf:2 env")
	var h *protocol.Hover
	c.call("textDocument/hover", c.at("data.tf", "local.data.tags."), &h)
	if h == nil || !strings.Contains(h.Contents.Value, `"prod"`) || !strings.Contains(h.Contents.Value, "data.yaml:3") {
		t.Errorf("hover of a key: %s", asJSON(h))
	}
	rename := func(name, before, to string) error {
		p := c.at(name, before)
		p["newName"] = to
		var e protocol.WorkspaceEdit
		err := c.try("textDocument/rename", p, &e)
		if err == nil {
			apply(t, &e)
			c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
		}
		return err
	}
	if err := rename("data.yaml", "  e", "stage"); err == nil || !strings.Contains(err.Error(), "as a whole") {
		t.Errorf("the rename of a key that an index uses: %v", err)
	}
	if err := rename("unit/terragrunt.hcl", "local.common.size.", "tiny"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"unit/terragrunt.hcl": "local.common.size.tiny", "unit/common.json": `{"tiny": 1}`} {
		if text, _ := os.ReadFile(filepath.Join(c.dir, name)); !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %s:\n%s", name, want, text)
		}
	}
}

// Tests use the variables of the module around them.
func TestNamesInTests(t *testing.T) {
	c := start(t, unpack(t, moduleFiles+`
-- tests/one.tftest.hcl --
variables {
  size = 4
}
run "first" {
  command = plan
  assert {
    condition     = var.size == 4 && terraform_data.web.input == "over"
    error_message = "no"
  }
}
run "second" {
  variables {
    size = run.first.o
  }
}
`), nil)
	for _, x := range []struct{ before, want string }{
		{"  si", "main.tf:1 size"},
		{"var.si", "main.tf:1 size"},
		{"run.fi", "tests/one.tftest.hcl:4 first"},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at("tests/one.tftest.hcl", x.before), &got)
		equal(t, "definition behind "+x.before, c.places(got), x.want)
	}
	p := c.at("main.tf", `variable "s`)
	p["newName"] = "count_of"
	var e protocol.WorkspaceEdit
	c.call("textDocument/rename", p, &e)
	apply(t, &e)
	text, _ := os.ReadFile(filepath.Join(c.dir, "tests", "one.tftest.hcl"))
	if n := strings.Count(string(text), "count_of"); n != 3 {
		t.Errorf("%d of 3 uses were renamed:\n%s", n, text)
	}
}

// Effective documents link their lines to the origins.
func TestEffectiveLinks(t *testing.T) {
	c := start(t, unpack(t, moduleFiles+unitFiles), nil)
	links := func(name string) (out []string) {
		var x effectiveResult
		c.call("terrace/effective", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &x)
		text := document.New([]byte(x.Text))
		for _, l := range x.Links {
			target, line, _ := strings.Cut(l.Target, "#")
			out = append(out, string(text.Bytes[text.Offset(l.Range.Start, document.UTF16):text.Offset(l.Range.End, document.UTF16)])+" "+c.name(target)+" "+line)
		}
		var again []protocol.DocumentLink
		c.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": x.URI}}, &again)
		if asJSON(again) != asJSON(x.Links) {
			t.Errorf("documentLink: %s", asJSON(again))
		}
		return out
	}
	has := func(all []string, want string) {
		t.Helper()
		for _, l := range all {
			if l == want {
				return
			}
		}
		t.Errorf("no link %q in %q", want, all)
	}
	module := links("main.tf")
	has(module, "web_override.tf:2 web_override.tf L2")
	has(module, "main.tf:10 main.tf L10")
	unit := links("app/terragrunt.hcl")
	has(unit, "region root.hcl L2")
	has(unit, "zone root.hcl L2")
	has(unit, "source app/terragrunt.hcl L6")
	has(unit, "config_path app/terragrunt.hcl L9")
}

// With a setting, hover lists the values of all units that read a file.
func TestHoverOfAllViewpoints(t *testing.T) {
	dir := unpack(t, `
-- root.hcl --
locals {
  name = basename(get_original_terragrunt_dir())
  size = length(local.name)
}
inputs = {
  size = local.size
}
-- one/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
-- two/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
-- three/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
`)
	c := start(t, dir, nil)
	hover := func() string {
		var h *protocol.Hover
		c.call("textDocument/hover", c.at("root.hcl", "inputs = {\n  si"), &h)
		if h == nil {
			return ""
		}
		return h.Contents.Value
	}
	if got := hover(); strings.Contains(got, "in 3 units") {
		t.Errorf("without the setting: %s", got)
	}
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"terrace": map[string]any{"allViewpoints": true}}})
	if got := hover(); !strings.Contains(got, "2 values in 3 units:\n\n3\n  one, two\n5\n  three") {
		t.Errorf("with the setting: %s", got)
	}
}

// An include block can be converted to an import block.
func TestIncludeToImport(t *testing.T) {
	dir := unpack(t, `
-- root.hcl --
inputs = {
  region = "eu"
}
-- app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
inputs = {
  zone = "a"
}
`)
	c := start(t, dir, nil)
	text := c.open("app/terragrunt.hcl")
	at := document.New([]byte(text)).Position(strings.Index(text, "path"), document.UTF16)
	var all []protocol.CodeAction
	c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("app/terragrunt.hcl")}, "range": protocol.Range{Start: at, End: at}, "context": map[string]any{"diagnostics": []any{}}}, &all)
	if len(all) != 1 || all[0].Title != "Convert include to import" {
		t.Fatalf("actions: %s", asJSON(all))
	}
	apply(t, all[0].Edit)
	got, _ := os.ReadFile(filepath.Join(dir, "app", "terragrunt.hcl"))
	if !strings.Contains(string(got), `import "root"`) || strings.Contains(string(got), "include") {
		t.Errorf("after the action:\n%s", got)
	}
}

// Names in blocks with errors have a hover, and the server goes on.
func TestHoverInBrokenBlocks(t *testing.T) {
	c := start(t, unpack(t, "-- main.tf --\noutput \"empty\" {}\nvariable \"v\" {\n  type = nonsense\n}\nresource \"terraform_data\" \"d\" {\n  input = output.empty\n}\nmodule \"m\" {}\nlocals {\n  x = module.m.y\n  y = local.y\n}\n"), nil)
	text := c.open("main.tf")
	for i := range text {
		if err := c.try("textDocument/hover", c.position("main.tf", []byte(text), i), nil); err != nil {
			t.Errorf("hover at %d: %v", i, err)
		}
	}
}
