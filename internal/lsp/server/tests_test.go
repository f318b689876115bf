package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// The module calls another module in one file, and uses it in others. Both tests have the same names.
const testedFiles = `
-- main.tf --
variable "size" {
  type    = number
  default = 1
}
module "app" {
  source = "./m"
  size   = var.size
}
resource "terraform_data" "web" {
  input = var.size
}
-- app_override.tf --
module "app" {
  size = 2
}
-- outputs.tf --
output "made" {
  value = module.app.id
}
-- m/main.tf --
variable "size" {}
output "id" {
  value = var.size
}
-- tests/native.tftest.hcl --
variables {
  size = 4
}
mock_provider "aws" {
  alias = "fake"
}
run "first" {
  command = plan
  providers = {
    aws = aws.fake
  }
  override_resource {
    target = terraform_data.web
  }
  assert {
    condition     = output.made == 4 && module.app.id == 4 && var.size == 4
    error_message = "${terraform_data.web.input} is wrong"
  }
}
run "second" {
  module {
    source = "./m"
  }
  variables {
    size = run.first.made + var.size
  }
  assert {
    condition     = output.id == 4 && var.size == 5
    error_message = "wrong"
  }
}
-- tests/syntax.tftest.json --
{
  "variables": {"size": 4},
  "mock_provider": {"aws": {"alias": "fake"}},
  "run": {
    "first": {
      "command": "plan",
      "providers": {"aws": "aws.fake"},
      "override_resource": {"target": "terraform_data.web"},
      "assert": {
        "condition": "${output.made == 4 && module.app.id == 4 && var.size == 4}",
        "error_message": "${terraform_data.web.input} is wrong"
      }
    },
    "second": {
      "module": {"source": "./m"},
      "variables": {"size": "${run.first.made + var.size}"},
      "assert": {
        "condition": "${output.id == 4 && var.size == 5}",
        "error_message": "wrong"
      }
    }
  }
}
`

// Tests in both syntaxes use the names of the module, of the runs before them, and of the module of a run.
func TestNamesOfTests(t *testing.T) {
	c := start(t, unpack(t, testedFiles), nil)
	for _, x := range []struct{ native, json, want string }{
		{"variables {\n  si", `"variables": {"si`, "main.tf:1 size"},
		{"condition     = output.ma", `"${output.ma`, "outputs.tf:1 made"},
		{"module.ap", "module.ap", "app_override.tf:1 app|main.tf:5 app"},
		{"module.app.i", "module.app.i", "m/main.tf:2 id"},
		{"target = terraform_data.we", `"target": "terraform_data.we`, "main.tf:9 web"},
		{`"${terraform_data.we`, `"${terraform_data.we`, "main.tf:9 web"},
		{"variables {\n    si", `"variables": {"size": "${run.first.made + var.size}"},` + "\n" + `      "assert": {` + "\n" + `        "condition": "${output.id == 4 && var.si`, "m/main.tf:1 size"},
		{"run.first.ma", "run.first.ma", "outputs.tf:1 made"},
		{"made + var.si", "made + var.si", "main.tf:1 size"},
		{"output.i", "output.i", "m/main.tf:2 id"},
		{"output.id == 4 && var.si", "output.id == 4 && var.si", "m/main.tf:1 size"},
	} {
		for name, before := range map[string]string{"tests/native.tftest.hcl": x.native, "tests/syntax.tftest.json": x.json} {
			var got []protocol.Location
			c.call("textDocument/definition", c.at(name, before), &got)
			equal(t, name+": definition behind "+before, c.places(got), strings.Split(x.want, "|")...)
		}
	}
	for name, x := range map[string]struct{ fake, run, of string }{
		"tests/native.tftest.hcl":  {"aws = aws.fa", "size = run.fir", "tests/native.tftest.hcl:4 aws|tests/native.tftest.hcl:7 first"},
		"tests/syntax.tftest.json": {`"aws": "aws.fa`, "${run.fir", "tests/syntax.tftest.json:3 aws|tests/syntax.tftest.json:5 first"},
	} {
		provider, run, _ := strings.Cut(x.of, "|")
		var got []protocol.Location
		c.call("textDocument/definition", c.at(name, x.fake), &got)
		equal(t, name+": definition of a mocked provider", c.places(got), provider)
		c.call("textDocument/definition", c.at(name, x.run), &got)
		equal(t, name+": definition of a run", c.places(got), run)
		var links []protocol.DocumentLink
		c.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &links)
		if len(links) != 1 || !strings.HasSuffix(links[0].Target, "/m/main.tf") {
			t.Errorf("%s: links: %s", name, asJSON(links))
		}
		if got := c.hoverText(name, "&& var.si"); !strings.Contains(got, "`size`: `number`") {
			t.Errorf("%s: hover: %s", name, got)
		}
		var symbols []protocol.DocumentSymbol
		c.call("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &symbols)
		if text := asJSON(symbols); !strings.Contains(text, `run \"first\"`) || !strings.Contains(text, `mock_provider \"aws\"`) {
			t.Errorf("%s: symbols: %s", name, text)
		}
		var marks []protocol.DocumentHighlight
		c.call("textDocument/documentHighlight", c.at(name, "&& var.si"), &marks)
		if len(marks) != 3 { // the variables of the file, the first run and the value in the second run
			t.Errorf("%s: highlights: %s", name, asJSON(marks))
		}
	}
	p := c.at("m/main.tf", `output "i`)
	p["context"] = map[string]any{"includeDeclaration": false}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references of an output", c.places(refs), "outputs.tf:2 id", "tests/native.tftest.hcl:16 id", "tests/native.tftest.hcl:28 id", "tests/syntax.tftest.json:10 id", "tests/syntax.tftest.json:18 id")
	p = c.at("m/main.tf", `variable "si`)
	p["context"] = map[string]any{"includeDeclaration": false}
	c.call("textDocument/references", p, &refs)
	equal(t, "references of a variable", c.places(refs), "app_override.tf:2 size", "m/main.tf:3 size", "main.tf:7 size",
		"tests/native.tftest.hcl:25 size", "tests/native.tftest.hcl:28 size", "tests/syntax.tftest.json:16 size", "tests/syntax.tftest.json:18 size")
}

// Renames edit tests in both syntaxes, and uses in other files than that of the module call.
func TestRenameInTests(t *testing.T) {
	c := start(t, unpack(t, testedFiles), nil)
	for _, x := range []struct{ name, before, to string }{
		{"m/main.tf", `output "i`, "ident"},
		{"m/main.tf", `variable "si`, "extent"},
		{"tests/syntax.tftest.json", `"variables": {"si`, "amount"},
		{"outputs.tf", `output "ma`, "built"},
		{"tests/syntax.tftest.json", `"target": "terraform_data.we`, "site"},
	} {
		p := c.at(x.name, x.before)
		p["newName"] = x.to
		var e protocol.WorkspaceEdit
		c.call("textDocument/rename", p, &e)
		apply(t, &e)
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	}
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for name, want := range map[string][]string{
		"tests/native.tftest.hcl": {
			"variables {\n  amount = 4", "output.built == 4 && module.app.ident == 4 && var.amount == 4", "target = terraform_data.site", "${terraform_data.site.input}",
			"extent = run.first.built + var.amount", "output.ident == 4 && var.extent == 5",
		},
		"tests/syntax.tftest.json": {
			`"variables": {"amount": 4}`, "output.built == 4 && module.app.ident == 4 && var.amount == 4", `"target": "terraform_data.site"`, "${terraform_data.site.input}",
			`"extent": "${run.first.built + var.amount}"`, "output.ident == 4 && var.extent == 5",
		},
		"app_override.tf": {"extent = 2"}, "outputs.tf": {`output "built"`, "module.app.ident"}, "main.tf": {"extent   = var.amount", "from = terraform_data.web"},
	} {
		text := read(name)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not contain %s:\n%s", name, w, text)
			}
		}
	}
	if !json.Valid([]byte(read("tests/syntax.tftest.json"))) {
		t.Error("the test in JSON syntax is not valid")
	}
}

// Tests in both syntaxes have diagnostics and completions.
func TestCompletionInTests(t *testing.T) {
	c := start(t, unpack(t, testedFiles), nil)
	for _, x := range []struct{ name, text, want string }{
		{"tests/x.tftest.hcl", "|", " run test variable variables "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  |", " command "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  command = |", " apply plan "},
		{"tests/x.tftest.hcl", "variables {\n  |", " size "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  assert {\n    |", " condition error_message "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  assert {\n    condition = output.|", " made "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  assert {\n    condition = var.|", " size "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  assert {\n    condition = module.app.|", " id "},
		{"tests/x.tftest.hcl", "run \"a\" {\n}\nrun \"b\" {\n  variables {\n    x = run.|", " a "},
		{"tests/x.tftest.hcl", "run \"a\" {\n}\nrun \"b\" {\n  variables {\n    x = run.a.|", " made "},
		{"tests/x.tftest.hcl", "run \"a\" {\n  module {\n    source = \"./|", " m "},
		{"tests/x.tftest.json", `{"|`, " run test variable variables "},
		{"tests/x.tftest.json", `{"run": {"a": {"|`, " command "},
		{"tests/x.tftest.json", `{"run": {"a": {"command": "|`, " apply plan "},
		{"tests/x.tftest.json", `{"variables": {"|`, " size "},
		{"tests/x.tftest.json", `{"run": {"a": {"variables": {"|`, " size "},
		{"tests/x.tftest.json", `{"run": {"a": {"assert": {"|`, " condition error_message "},
		{"tests/x.tftest.json", `{"run": {"a": {"assert": {"condition": "${output.|`, " made "},
		{"tests/x.tftest.json", `{"run": {"a": {"override_resource": {"target": "terraform_data.|`, " web "},
		{"tests/x.tftest.json", `{"run": {"a": {}, "b": {"variables": {"x": "${run.|`, " a "},
		{"tests/x.tftest.json", `{"run": {"a": {"module": {"source": "./|`, " m "},
		{"tests/x.tfmock.json", `{"|`, " mock_data mock_resource "},
		{"x.tfquery.hcl", "|", " list "},
	} {
		before, after, _ := strings.Cut(x.text, "|")
		c.opened(x.name, before+after)
		var r protocol.CompletionList
		c.call("textDocument/completion", c.position(x.name, []byte(before+after), len(before)), &r)
		c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(x.name)}})
		var out []string
		for _, i := range r.Items {
			out = append(out, i.Label)
		}
		if got := " " + strings.Join(out, " ") + " "; !strings.Contains(got, x.want) {
			t.Errorf("completion in %s behind %q: %s", x.name, before, got)
		}
	}
	for _, x := range []struct{ name, text, want string }{
		{"tests/y.tftest.hcl", "run \"a\" {\n  comand = plan\n}\n", "comand"},
		{"tests/y.tftest.json", `{"run": {"a": {"comand": "plan"}}}`, "comand"},
		{"tests/y.tftest.hcl", "run \"a\" {\n  command = destroy\n}\n", "keyword"},
		{"tests/y.tftest.json", `{"run": {"a": {"assert": {"condition": true}}}}`, "error_message"},
		{"y.tfmock.hcl", "mock_resource \"a\" {}\nmock_resource \"a\" {}\n", "mocked already"},
		{"y.estatetest.hcl", "run \"a\" {\n  comand = plan\n}\n", "comand"},
	} {
		c.opened(x.name, x.text)
		if got := strings.Join(c.diagnostics(x.name), "\n"); !strings.Contains(got, x.want) {
			t.Errorf("diagnostics of %s: %s", x.text, got)
		}
		c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(x.name)}})
	}
	for _, name := range []string{"tests/native.tftest.hcl", "tests/syntax.tftest.json"} {
		c.open(name)
		if got := c.diagnostics(name); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A unit has the source, and the dependencies, of a file that it includes, or imports with merge.
func TestMergedSource(t *testing.T) {
	c := start(t, unpack(t, `
-- root.hcl --
locals {
  region = "eu"
}
-- common/app.hcl --
terraform {
  source = "${dirname(find_in_parent_folders("root.hcl"))}/modules/app"
}
dependency "up" {
  config_path = "../up"
}
-- common/merged.hcl --
terraform {
  source = "../modules/app"
}
-- modules/app/main.tf --
variable "size" {}
variable "up" {}
output "id" {
  value = var.size
}
-- live/up/terragrunt.hcl --
import "common" {
  config_path = "../../common/merged.hcl"
  merge       = true
}
inputs = {
  size = 1
  up   = ""
}
-- live/app/terragrunt.hcl --
include "common" {
  path = "${dirname(find_in_parent_folders("root.hcl"))}/common/app.hcl"
}
inputs = {
  size = 2
  up   = dependency.up.outputs.id
}
-- live/other/terragrunt.hcl --
import "common" {
  config_path = "../../common/merged.hcl"
}
terraform {
  source = import.common.terraform.source
}
inputs = {
  up = 3
}
-- live/none/terragrunt.hcl --
import "common" {
  config_path = "../../common/merged.hcl"
}
inputs = {
  size = 3
}
`), nil)
	for _, name := range []string{"live/up", "live/app"} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at(name+"/terragrunt.hcl", "inputs = {\n  si"), &got)
		equal(t, "definition of the input of "+name, c.places(got), "modules/app/main.tf:1 size")
	}
	var got []protocol.Location
	c.call("textDocument/definition", c.at("live/app/terragrunt.hcl", "outputs.i"), &got)
	equal(t, "definition of an output", c.places(got), "modules/app/main.tf:3 id")
	for _, x := range []struct {
		before string
		want   []string
	}{
		{`variable "si`, []string{"live/app/terragrunt.hcl:5 size", "live/up/terragrunt.hcl:6 size", "modules/app/main.tf:4 size"}},
		{`output "i`, []string{"live/app/terragrunt.hcl:6 id"}},
	} {
		p := c.at("modules/app/main.tf", x.before)
		p["context"] = map[string]any{"includeDeclaration": false}
		c.call("textDocument/references", p, &got)
		equal(t, "references behind "+x.before, c.places(got), x.want...)
	}
	rename := func(before string) error {
		p := c.at("modules/app/main.tf", before)
		p["newName"] = "new"
		return c.try("textDocument/rename", p, nil)
	}
	if err := rename(`variable "si`); err != nil {
		t.Errorf("rename: %v", err)
	}
	if err := rename(`variable "u`); err == nil || !strings.Contains(err.Error(), "live/other/terragrunt.hcl") {
		t.Errorf("rename of an input of a unit whose source is not known: %v", err)
	}
}
