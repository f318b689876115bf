package server

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

const secretFiles = `
-- .git/HEAD --
ref: refs/heads/main
-- app/variables.tf --
variable "token" {
  type      = string
  sensitive = true
  default   = "hidden-default"
}
variable "nested" {
  type      = object({ user = string, password = string, list = list(object({ key = string })) })
  sensitive = true
}
variable "map" {
  type      = map(string)
  sensitive = true
}
variable "short" {
  type      = number
  sensitive = true
}
-- app/main.tf --
locals {
  upper  = upper(var.token)
  object = { user = "me", deep = { password = var.nested.password, again = [var.nested.list[0].key] } }
  joined = join("-", [for k, v in var.map : "${k}=${v}"])
  marked = sensitive("hidden-marked")
  inside = { a = { b = sensitive("hidden-inside") } }
  json   = jsonencode({ password = var.nested.password })
  length = length(var.token)
  plain  = nonsensitive(var.map["user"]) == "x" ? 1 : 2
}
module "child" {
  source = "./child"
  secret = var.token
  given  = { plain = local.marked }
}
resource "terraform_data" "web" {
  input = local.object
  triggers_replace = [local.upper, local.inside.a.b]
}
output "secret" {
  value     = "hidden-output"
  sensitive = true
}
output "object" {
  value     = local.object
  sensitive = true
}
output "child" {
  value     = module.child.marked
  sensitive = true
}
-- app/web_override.tf --
resource "terraform_data" "web" {
  input = merge(local.object, { also = var.nested.list[0].key })
}
-- app/child/main.tf --
variable "secret" {
  sensitive = true
}
variable "given" {}
locals {
  here  = "x-${var.secret}"
  given = var.given.plain
}
output "marked" {
  value     = "hidden-child"
  sensitive = true
}
-- app/terraform.tfvars --
token  = "hidden-tfvars"
nested = {
  user     = "hidden-user"
  password = "hidden-password"
  list     = [{ key = "hidden-key" }]
}
map = {
  user = "hidden-map"
}
short = 8675309
-- app/all.rules.hcl --
rule "web" {
  resource = "terraform_data"
  enforce {
    condition     = config.input.deep.password == "x"
    error_message = "The password is ${config.input.deep.password}."
  }
}
-- called/main.tf --
locals {
  user = "u"
}
module "app" {
  source = "../app"
  token  = "hidden-argument"
  nested = { user = upper(local.user), password = "hidden-nested-argument", list = [{ key = "k" }] }
  map    = { a = "hidden-map-argument" }
  short  = 1
}
-- root.hcl --
locals {
  password = "hidden-root-local"
  region   = "eu"
}
inputs = {
  token = local.password
}
-- unit/terragrunt.hcl --
include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../app"
}
locals {
  secret = include.root.locals.password
  object = { password = sensitive("hidden-unit") }
}
inputs = {
  nested = {
    user     = "me"
    password = "hidden-input"
    list     = [{ key = local.object.password }]
  }
  map   = { x = "hidden-input-map" }
  short = 8675309
}
-- user/terragrunt.hcl --
terraform {
  source = "../app"
}
dependency "unit" {
  config_path  = "../unit"
  mock_outputs = {
    secret = "hidden-mock"
  }
}
inputs = {
  token = dependency.unit.outputs.secret
}
-- env/terragrunt.hcl --
locals {
  token = get_env("TERRACE_TEST_SECRET", "none")
}
terraform {
  source = "../app"
}
inputs = {
  token = local.token
}
`

// No answer contains a sensitive value, except the text of the file itself that the client sends.
func TestSecretsStayHidden(t *testing.T) {
	dir := unpack(t, secretFiles)
	c := startWith(t, dir, map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}}}, map[string]any{"allViewpoints": true}, nil)
	check := func(what string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"hidden-", "HIDDEN-", "8675309"} {
			if text := string(raw); strings.Contains(text, secret) {
				i := strings.Index(text, secret)
				t.Errorf("%s: …%s…", what, text[max(0, i-300):min(len(text), i+80)])
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == "HEAD" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(dir, path)
		name := filepath.ToSlash(rel)
		doc := map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
		for _, method := range []string{"diagnostic", "documentSymbol", "foldingRange", "documentLink", "codeLens"} {
			var r any
			c.call("textDocument/"+method, doc, &r)
			check(name+" "+method, r)
		}
		var lenses []protocol.CodeLens
		c.call("textDocument/codeLens", doc, &lenses)
		for _, l := range lenses {
			var r any
			c.call("codeLens/resolve", l, &r)
			check(name+" lens", r)
		}
		whole := protocol.Range{End: protocol.Position{Line: 10000}}
		for _, method := range []string{"inlayHint", "codeAction"} {
			var r any
			c.call("textDocument/"+method, map[string]any{"textDocument": doc["textDocument"], "range": whole, "context": map[string]any{"diagnostics": []any{}}}, &r)
			check(name+" "+method, r)
		}
		var r any
		if c.try("terrace/effective", doc, &r) == nil {
			check(name+" effective", r)
		}
		if c.try("terrace/viewpoints", doc, &r) == nil {
			check(name+" viewpoints", r)
		}
		for i := 0; i < len(text); i += 2 {
			at := c.position(name, text, i)
			for _, method := range []string{"hover", "completion", "signatureHelp", "definition"} {
				var r any
				if c.try("textDocument/"+method, at, &r) == nil {
					check(name+":"+string(text[max(0, i-10):i])+"|"+string(text[i:min(len(text), i+10)])+" "+method, r)
				}
			}
			if i%16 == 0 {
				var r any
				if c.try("terrace/values", at, &r) == nil {
					check(name+" values", r)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var h *protocol.Hover
	if c.call("textDocument/hover", c.at("root.hcl", "  tok"), &h); h == nil || !strings.Contains(h.Contents.Value, `inputs.token = "(sensitive value)"`) {
		t.Errorf("the hover of an input: %s", asJSON(h))
	}
	for name, want := range map[string]string{"unit/terragrunt.hcl": `password = "(sensitive value)"`, "app/main.tf": `default   = "(sensitive value)" # variables.tf:4`, "called/main.tf": `user = upper(local.user), password = "(sensitive value)"`} {
		var r effectiveResult
		if c.call("terrace/effective", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r); !strings.Contains(r.Text, want) {
			t.Errorf("the effective document of %s does not contain %s:\n%s", name, want, r.Text)
		}
	}
}
