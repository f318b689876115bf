package server

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

const stackFiles = `
-- .git/HEAD --
ref: refs/heads/main
-- live/terragrunt.stack.hcl --
locals {
  env  = "prod"
  size = length(local.env)
}
unit "vpc" {
  source = "../units/vpc"
  path   = "vpc"
  values = {
    cidr = "10.0.0.0/16"
  }
}
unit "app" {
  source = "../units/app"
  path   = "app"
  values = {
    env  = local.env
    size = local.size
    vpc  = "../vpc"
  }
}
-- units/vpc/terragrunt.hcl --
terraform {
  source = "."
}
inputs = {
  cidr = values.cidr
}
-- units/vpc/main.tf --
variable "cidr" {}
output "id" {
  value = var.cidr
}
-- units/app/terragrunt.hcl --
terraform {
  source = "."
}
dependency "vpc" {
  config_path = values.vpc
  mock_outputs = {
    id = "mock"
  }
}
inputs = {
  env  = values.env
  size = values.size
  vpc  = dependency.vpc.outputs.id
}
-- units/app/main.tf --
variable "env" {}
variable "size" {}
variable "vpc" {}
-- hand/terragrunt.values.hcl --
name = "by hand"
list = [1, 2]
-- hand/terragrunt.hcl --
inputs = {
  name = values.name
}
-- hand/main.tf --
variable "name" {}
-- library/terragrunt.hcl --
terraform {
  source = "${values.repo}//x?ref=${values.version}"
}
dependency "db" {
  config_path = values.db_path
}
inputs = {
  a = values.a
  b = dependency.db.outputs.b
}
-- library/terragrunt.stack.hcl --
unit "x" {
  source = "git::https://example.com/units.git//x?ref=${values.version}"
  path   = values.path
  values = values
}
-- part/terragrunt.stack.hcl --
stack "inner" {
  source = "../parts/inner"
  path   = "inner"
  values = {
    word = "deep"
  }
}
-- parts/inner/terragrunt.stack.hcl --
unit "leaf" {
  source = "${get_repo_root()}/units/leaf"
  path   = values.word
  values = {
    word = values.word
  }
}
-- units/leaf/terragrunt.hcl --
inputs = {
  word = values.word
}
-- units/leaf/main.tf --
variable "word" {}
`

// Units that stacks generate are seen with the values of the stack.
func TestStacks(t *testing.T) {
	c := start(t, unpack(t, stackFiles), nil)
	for _, name := range []string{"live/terragrunt.stack.hcl", "units/vpc/terragrunt.hcl", "units/app/terragrunt.hcl", "hand/terragrunt.hcl", "hand/terragrunt.values.hcl", "library/terragrunt.hcl", "library/terragrunt.stack.hcl", "part/terragrunt.stack.hcl", "parts/inner/terragrunt.stack.hcl", "units/leaf/terragrunt.hcl"} {
		equal(t, "diagnostics of "+name, c.diagnostics(name))
	}
	for _, x := range []struct{ name, before, want string }{
		{"units/app/terragrunt.hcl", "values.en", "live/terragrunt.stack.hcl:16 env"},
		{"units/vpc/terragrunt.hcl", "values.ci", "live/terragrunt.stack.hcl:9 cidr"},
		{"hand/terragrunt.hcl", "values.na", "hand/terragrunt.values.hcl:1 name"},
		{"live/terragrunt.stack.hcl", "= local.en", "live/terragrunt.stack.hcl:2 env"},
		{"units/app/terragrunt.hcl", "  en", "units/app/main.tf:1 env"},
		{"units/leaf/terragrunt.hcl", "values.wo", "parts/inner/terragrunt.stack.hcl:5 word"},
		{"parts/inner/terragrunt.stack.hcl", "path   = values.wo", "part/terragrunt.stack.hcl:5 word"},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at(x.name, x.before), &got)
		equal(t, "definition behind "+x.before, c.places(got), x.want)
	}
	for _, x := range []struct{ name, before, want string }{
		{"units/app/terragrunt.hcl", "values.en", `"prod"`},
		{"units/app/terragrunt.hcl", "values.si", "4"},
		{"units/app/terragrunt.hcl", "  si", "4"},
		{"units/vpc/terragrunt.hcl", "values.ci", "terragrunt.stack.hcl:9"},
		{"hand/terragrunt.hcl", "values.na", `"by hand"`},
		{"hand/terragrunt.values.hcl", "na", `"by hand"`},
		{"live/terragrunt.stack.hcl", "  si", "4"},
		{"live/terragrunt.stack.hcl", "    en", `"prod"`},
		{"live/terragrunt.stack.hcl", "env  = local.en", `"prod"`},
		{"units/leaf/terragrunt.hcl", "values.wo", `"deep"`},
	} {
		if got := c.hoverText(x.name, x.before); !strings.Contains(got, x.want) {
			t.Errorf("hover behind %q in %s: %s", x.before, x.name, got)
		}
	}
	p := c.at("live/terragrunt.stack.hcl", "    en")
	p["context"] = map[string]any{"includeDeclaration": true}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references of a value", c.places(refs), "live/terragrunt.stack.hcl:16 env", "units/app/terragrunt.hcl:11 env")
	var links []protocol.DocumentLink
	c.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": c.uri("live/terragrunt.stack.hcl")}}, &links)
	var targets []string
	for _, l := range links {
		targets = append(targets, c.name(l.Target))
	}
	equal(t, "links", targets, "units/vpc/terragrunt.hcl", "units/app/terragrunt.hcl")
	var v viewpointsResult
	c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("units/app/terragrunt.hcl")}}, &v)
	if c.name(v.Current) != "live/.terragrunt-stack/app/terragrunt.hcl" {
		t.Errorf("viewpoint: %s", asJSON(v))
	}
}

// Errors in stack files: types, paths, unknown names, cycles and missing values.
func TestStackErrors(t *testing.T) {
	c := start(t, unpack(t, stackFiles), nil)
	c.open("live/terragrunt.stack.hcl")
	for _, x := range []struct{ text, want string }{
		{"unit \"a\" {\n  source = \"../units/gone\"\n  path = \"a\"\n}\n", "Source of a stack not found"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = \"../a\"\n  values = { cidr = 1 }\n}\n", "Invalid path in a stack"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = local.gone\n  values = { cidr = 1 }\n}\n", "no local value named"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  values = 3\n}\n", "Map expected"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  enabled = \"maybe\"\n}\n", "bool"},
		{"locals {\n  a = local.b\n  b = local.a\n}\nunit \"a\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  values = { cidr = local.a }\n}\n", "ycl"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  values = { cdir = 1 }\n}\n", "needs a value"},
		{"unit \"a\" {\n  sourc = \"../units/vpc\"\n}\n", "Did you mean"},
		{"unit \"a\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  values = { cidr = 1 }\n}\nunit \"b\" {\n  source = \"../units/vpc\"\n  path = \"a\"\n  values = { cidr = 1 }\n}\n", "Duplicate path"},
	} {
		c.change("live/terragrunt.stack.hcl", x.text)
		if got := strings.Join(c.diagnostics("live/terragrunt.stack.hcl"), "\n"); !strings.Contains(got, x.want) {
			t.Errorf("diagnostics of\n%s: %s", x.text, got)
		}
	}
}

// Completion in stack files and of values.
func TestStackCompletion(t *testing.T) {
	c := start(t, unpack(t, stackFiles), nil)
	complete := func(name, text string) string {
		t.Helper()
		before, _, _ := strings.Cut(text, "|")
		text = strings.Replace(text, "|", "", 1)
		c.opened(name, text)
		var r protocol.CompletionList
		c.call("textDocument/completion", c.position(name, []byte(text), len(before)), &r)
		var out []string
		for _, i := range r.Items {
			out = append(out, i.Label)
		}
		c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
		return " " + strings.Join(out, " ") + " "
	}
	for _, x := range []struct{ name, text, want string }{
		{"live/terragrunt.stack.hcl", "|", " unit "},
		{"live/terragrunt.stack.hcl", "unit \"a\" {\n  |\n}\n", " no_dot_terragrunt_stack "},
		{"live/terragrunt.stack.hcl", "unit \"a\" {\n  source = \"../units/|\n}\n", " vpc "},
		{"live/terragrunt.stack.hcl", "unit \"a\" {\n  source = \"../units/app\"\n  values = {\n    |\n  }\n}\n", " size "},
		{"live/terragrunt.stack.hcl", "locals {\n  env = 1\n  x = local.|\n}\n", " env "},
		{"units/app/terragrunt.hcl", "inputs = {\n  env = values.|\n}\n", " size "},
		{"hand/terragrunt.hcl", "inputs = {\n  env = values.|\n}\n", " name "},
		{"hand/terragrunt.hcl", "inputs = {\n  env = |\n}\n", " find_in_parent_folders "},
	} {
		if got := complete(x.name, x.text); !strings.Contains(got, x.want) {
			t.Errorf("completion in %s: %s", x.text, got)
		}
	}
}

// The units of a stack have lenses, and links in clients that open documents of the server, to their effective
// units. The directory has a name that URIs encode.
func TestEffectiveUnitsOfStacks(t *testing.T) {
	files := strings.ReplaceAll(stackFiles, "-- ", "-- a #é b/") + `
-- a #é b/top/terragrunt.stack.hcl --
stack "net" {
  source = "../nested"
  path   = "net"
  values = {
    cidr = "10.1.0.0/16"
  }
}
-- a #é b/nested/terragrunt.stack.hcl --
unit "vpc" {
  source = "${get_repo_root()}/units/vpc"
  path   = "vpc"
  values = {
    cidr = values.cidr
  }
}
unit "remote" {
  source = "git::https://example.com/x.git"
  path   = "remote"
}
`
	c := start(t, unpack(t, files), map[string]any{"workspace": map[string]any{"textDocumentContent": map[string]any{}}})
	doc := func(name string) map[string]any {
		return map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
	}
	effective := func(name string) (out []string) {
		t.Helper()
		var lenses []protocol.CodeLens
		c.call("textDocument/codeLens", doc(name), &lenses)
		for _, l := range lenses {
			var r protocol.CodeLens
			c.call("codeLens/resolve", l, &r)
			if r.Command.Command == "" {
				out = append(out, r.Command.Title)
				continue
			}
			var x effectiveResult
			c.call("workspace/executeCommand", map[string]any{"command": r.Command.Command, "arguments": r.Command.Arguments}, &x)
			out = append(out, x.Text)
			var content protocol.TextDocumentContentResult
			c.call("workspace/textDocumentContent", map[string]any{"uri": x.URI}, &content)
			if content.Text != x.Text {
				t.Errorf("the document %s is %s", x.URI, content.Text)
			}
		}
		return out
	}
	got := effective("a #é b/live/terragrunt.stack.hcl")
	if len(got) != 2 || !strings.Contains(got[0], `cidr = "10.0.0.0/16"`) || !strings.Contains(got[1], "size = 4") {
		t.Errorf("effective units: %q", got)
	}
	got = effective("a #é b/nested/terragrunt.stack.hcl")
	if len(got) != 2 || !strings.Contains(got[0], `cidr = "10.1.0.0/16"`) || !strings.Contains(got[1], "not known") {
		t.Errorf("effective units of a nested stack: %q", got)
	}
	var links []protocol.DocumentLink
	c.call("textDocument/documentLink", doc("a #é b/live/terragrunt.stack.hcl"), &links)
	var targets []string
	for _, l := range links {
		if strings.HasPrefix(l.Target, "terrace:") {
			targets = append(targets, l.Target)
		}
	}
	if len(targets) != 2 || strings.ContainsAny(targets[0], " #") {
		t.Fatalf("links: %s", asJSON(links))
	}
	fresh := start(t, c.dir, nil) // it has not read the stack
	var content protocol.TextDocumentContentResult
	fresh.call("workspace/textDocumentContent", map[string]any{"uri": targets[1]}, &content)
	if !strings.Contains(content.Text, "size = 4") {
		t.Errorf("the document of a link in a new server: %s", content.Text)
	}
	fresh.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": targets[1]}}, &links)
	if !strings.Contains(asJSON(links), "terragrunt.stack.hcl#L") {
		t.Errorf("the origins of a generated unit: %s", asJSON(links))
	}
}
