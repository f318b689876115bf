package server

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/formatting"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
)

const moduleFiles = `
-- main.tf --
variable "size" {
  type        = number
  default     = 1
  description = "How many."
}
locals {
  name = "n-${var.size}"
}
resource "terraform_data" "web" {
  input = local.name
}
module "m" {
  source = "./m"
  color  = local.name
}
output "o" {
  value = module.m.out
}
output "id" {
  value = terraform_data.web.output
}
-- web_override.tf --
resource "terraform_data" "web" {
  input = "over"
}
-- terraform.tfvars --
size = 3
-- m/main.tf --
variable "color" {}
variable "kind" {
  default = "k"
}
output "out" {
  value = "${var.color} ${var.kind}"
}
`

const unitFiles = `
-- root.hcl --
locals {
  region = "eu"
}
inputs = {
  region = local.region
}
-- vpc/terragrunt.hcl --
terraform {
  source = "../modules/vpc"
}
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- app/terragrunt.hcl --
include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../modules/app"
}
dependency "vpc" {
  config_path  = "../vpc"
  mock_outputs = {
    id = "mock"
  }
}
locals {
  zone = include.root.locals.region
}
inputs = {
  vpc_id = dependency.vpc.outputs.id
  zone   = local.zone
}
-- modules/vpc/main.tf --
variable "region" {}
output "id" {
  value = var.region
}
-- modules/app/main.tf --
variable "region" {}
variable "vpc_id" {}
variable "zone" {}
output "all" {
  value = "${var.region} ${var.vpc_id} ${var.zone}"
}
`

func TestLifecycle(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	c.open("main.tf")
	if err := c.try("textDocument/nothing", map[string]any{}, nil); err == nil {
		t.Error("an unknown method has an answer")
	}
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	select {
	case ok := <-c.done:
		if !ok {
			t.Error("exit after shutdown is not clean")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not end")
	}
}

// The server ends after exit also if the client keeps the connection open.
func TestExitWhileOpen(t *testing.T) {
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: t.TempDir(), Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	answers, to := io.Pipe()
	done := make(chan bool, 1)
	go func() { done <- Serve(t.Context(), Options{Session: workspace.New(d, who)}, in, to) }()
	c := channel.LSP(answers, out)
	for _, m := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`, `{"jsonrpc":"2.0","id":2,"method":"shutdown"}`} {
		if err := c.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Send([]byte(`{"jsonrpc":"2.0","method":"exit"}`)); err != nil {
		t.Fatal(err)
	}
	select {
	case ok := <-done:
		if !ok {
			t.Error("exit after shutdown is not clean")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not end")
	}
}

// A second initialize is refused.
func TestInitializedTwice(t *testing.T) {
	c := start(t, t.TempDir(), nil)
	if err := c.try("initialize", map[string]any{"capabilities": map[string]any{}}, nil); err == nil {
		t.Error("the server is initialized twice")
	}
}

// A connection that ends without shutdown ends the server.
func TestDisconnect(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	_ = c.rpc.Close()
	select {
	case ok := <-c.done:
		if ok {
			t.Error("the end of the connection is clean")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not end")
	}
}

func TestFormatting(t *testing.T) {
	c := start(t, unpack(t, "-- main.tf --\nlocals {\na=1\n  bcd =   2\n}\n-- broken.tf --\nlocals {\n"), nil)
	for _, name := range []string{"main.tf", "broken.tf"} {
		c.open(name)
	}
	var edits []protocol.TextEdit
	c.call("textDocument/formatting", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}}, &edits)
	if len(edits) != 1 {
		t.Errorf("%d edits, want one for two lines that follow each other: %s", len(edits), asJSON(edits))
	}
	apply(t, &protocol.WorkspaceEdit{Changes: map[string][]protocol.TextEdit{c.uri("main.tf"): edits}})
	if got, _ := os.ReadFile(filepath.Join(c.dir, "main.tf")); string(got) != "locals {\n  a   = 1\n  bcd = 2\n}\n" {
		t.Errorf("formatted: %s", got)
	}
	c.call("textDocument/rangeFormatting", map[string]any{
		"textDocument": map[string]any{"uri": c.uri("main.tf")},
		"range":        protocol.Range{Start: protocol.Position{Line: 2}, End: protocol.Position{Line: 2, Character: 5}},
	}, &edits)
	if len(edits) != 1 || edits[0].NewText != "  bcd = 2\n" {
		t.Errorf("range: %s", asJSON(edits))
	}
	c.call("textDocument/formatting", map[string]any{"textDocument": map[string]any{"uri": c.uri("broken.tf")}}, &edits)
	if len(edits) != 0 {
		t.Errorf("a file with a syntax error has the edits %s", asJSON(edits))
	}
}

// Edits in the encoding of the client arrive, for characters outside of the basic plane too.
func TestIncrementalSync(t *testing.T) {
	for _, e := range []document.Encoding{document.UTF8, document.UTF16} {
		c := start(t, unpack(t, "-- main.tf --\nlocals {\n  a = \"😀é\" # 😀\n}\n"), map[string]any{"general": map[string]any{"positionEncodings": []string{string(e)}}})
		text := document.New([]byte(c.open("main.tf")))
		i := strings.Index(string(text.Bytes), "é")
		at := text.Range(i, i+len("é"), e)
		c.notify("textDocument/didChange", map[string]any{
			"textDocument": map[string]any{"uri": c.uri("main.tf"), "version": 2}, "contentChanges": []any{map[string]any{"range": at, "text": "\" b"}},
		})
		want := string(text.Bytes[:i]) + "\" b" + string(text.Bytes[i+2:])
		var syms []protocol.DocumentSymbol
		c.call("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}}, &syms)
		if got := c.diagnostics("main.tf"); len(got) == 0 || !strings.HasPrefix(got[0], "2 1") {
			t.Errorf("%s: the text should be %q; diagnostics: %q", e, want, got)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	text := c.open("main.tf")
	equal(t, "without errors", c.diagnostics("main.tf"))
	c.change("main.tf", strings.Replace(text, "color  = local.name", "color  = local.nam", 1))
	got := c.diagnostics("main.tf")
	if len(got) != 1 || !strings.Contains(got[0], `Did you mean "name"?`) && !strings.Contains(got[0], "nam") {
		t.Errorf("an unsaved mistake: %q", got)
	}
	c.wait("main.tf", func(ds []string) bool { return len(ds) == len(got) })
	c.change("main.tf", strings.Replace(text, "  color  = local.name\n", "", 1))
	if got := c.diagnostics("main.tf"); len(got) != 1 || !strings.Contains(got[0], "color") {
		t.Errorf("a missing argument: %q", got)
	}
	// A change of the called module is seen in the caller.
	c.change("main.tf", text)
	child := c.open("m/main.tf")
	c.change("m/main.tf", child+"variable \"more\" {}\n")
	if got := c.diagnostics("main.tf"); len(got) != 1 || !strings.Contains(got[0], "more") {
		t.Errorf("a new variable of the module: %q", got)
	}
	c.wait("main.tf", func(ds []string) bool { return len(ds) == 1 && strings.Contains(ds[0], "more") })
	c.change("m/main.tf", child)
	c.wait("main.tf", func(ds []string) bool { return len(ds) == 0 })
	c.change("main.tf", text+"variable {")
	if got := c.diagnostics("main.tf"); len(got) == 0 {
		t.Error("a syntax error is not reported")
	}
	// An error in an override has both places.
	c.change("main.tf", text)
	over := c.open("web_override.tf")
	c.change("web_override.tf", strings.Replace(over, `"over"`, "var.sise", 1))
	if got := c.diagnostics("web_override.tf"); len(got) != 1 || !strings.Contains(got[0], "[main.tf:10") {
		t.Errorf("an error in an override: %q", got)
	}
}

func TestUnitDiagnostics(t *testing.T) {
	c := start(t, unpack(t, unitFiles), nil)
	text := c.open("app/terragrunt.hcl")
	equal(t, "without errors", c.diagnostics("app/terragrunt.hcl"))
	c.change("app/terragrunt.hcl", strings.Replace(text, "outputs.id", "outputs.idd", 1))
	if got := c.diagnostics("app/terragrunt.hcl"); len(got) == 0 || !strings.Contains(strings.Join(got, " "), "idd") {
		t.Errorf("an output that does not exist: %q", got)
	}
	c.change("app/terragrunt.hcl", strings.Replace(text, "  zone   = local.zone\n", "", 1))
	if got := c.diagnostics("app/terragrunt.hcl"); len(got) != 1 || !strings.Contains(got[0], "zone") {
		t.Errorf("a missing input: %q", got)
	}
	// An unsaved change of an included file is seen in the unit.
	c.change("app/terragrunt.hcl", text)
	root := c.open("root.hcl")
	c.change("root.hcl", strings.Replace(root, "region = \"eu\"", "reg = \"eu\"", 1))
	if got := c.diagnostics("app/terragrunt.hcl"); len(got) == 0 {
		t.Error("a local value that the included file does not have any more is not reported")
	}
	if got := c.diagnostics("root.hcl"); len(got) == 0 {
		t.Error("an included file has no diagnostics from its viewpoint")
	}
}

// A program that a unit file names does not run, and its value is no error.
func TestNothingRuns(t *testing.T) {
	dir := unpack(t, `
-- terragrunt.hcl --
locals {
  x = run_cmd("touch", "ran")
  s = sops_decrypt_file("s.yaml")
  a = get_aws_account_id()
}
inputs = { x = local.x, s = local.s, a = local.a }
-- s.yaml --
a: 1
-- main.tf --
variable "x" {}
variable "s" {}
variable "a" {}
data "external" "e" {
  program = ["touch", "ran"]
}
resource "terraform_data" "d" {
  input = [var.x, var.s, var.a]
  provisioner "local-exec" {
    command = "touch ran"
  }
}
`)
	c := start(t, dir, nil)
	for _, name := range []string{"terragrunt.hcl", "main.tf"} {
		c.open(name)
		if got := c.diagnostics(name); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	var h protocol.Hover
	c.call("textDocument/hover", c.at("terragrunt.hcl", "x = local."), &h)
	for _, name := range []string{"ran", ".terraform", ".terragrunt-cache"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

func TestDefinitionAndReferences(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	for _, x := range []struct {
		name, before string
		want         []string
	}{
		{"main.tf", "n-${var.", []string{"main.tf:2 size"}},
		{"main.tf", "input = local.", []string{"main.tf:7 name"}},
		{"main.tf", "module.m.o", []string{"m/main.tf:5 out"}},
		{"main.tf", "value = module.", []string{"main.tf:12 m"}},
		{"main.tf", "  col", []string{"m/main.tf:1 color"}},
		{"main.tf", `source = "./`, []string{"m/main.tf:1 "}},
		{"main.tf", "terraform_data.w", []string{"main.tf:9 web", "web_override.tf:1 web"}},
		{"web_override.tf", "  inp", []string{"main.tf:10 input"}},
		{"terraform.tfvars", "si", []string{"main.tf:1 size"}},
	} {
		if x.before == "n-${var." || x.name == "terraform.tfvars" {
			x.want = []string{"main.tf:1 size"}
		}
		if x.before == "input = local." {
			x.want = []string{"main.tf:7 name"}
		}
		var got []protocol.Location
		c.call("textDocument/definition", c.at(x.name, x.before), &got)
		equal(t, "definition behind "+x.before+" in "+x.name, c.places(got), x.want...)
	}
	refs := func(name, before string, declared bool) []string {
		p := c.at(name, before)
		p["context"] = map[string]any{"includeDeclaration": declared}
		var got []protocol.Location
		c.call("textDocument/references", p, &got)
		return c.places(got)
	}
	equal(t, "var.size", refs("main.tf", `variable "s`, true), "main.tf:1 size", "main.tf:7 size", "terraform.tfvars:1 size")
	equal(t, "var.color", refs("m/main.tf", `variable "c`, false), "m/main.tf:6 color", "main.tf:14 color")
	equal(t, "output.out", refs("m/main.tf", `output "o`, false), "main.tf:17 out")
	var hs []protocol.DocumentHighlight
	c.call("textDocument/documentHighlight", c.at("main.tf", "input = local."), &hs)
	if len(hs) != 3 {
		t.Errorf("highlights: %s", asJSON(hs))
	}
}

func TestUnitDefinitionAndReferences(t *testing.T) {
	c := start(t, unpack(t, unitFiles), nil)
	for _, x := range []struct {
		name, before string
		want         []string
	}{
		{"app/terragrunt.hcl", "include.root.locals.", []string{"root.hcl:2 region"}},
		{"app/terragrunt.hcl", "dependency.vpc.outputs.", []string{"modules/vpc/main.tf:2 id"}},
		{"app/terragrunt.hcl", "= dependency.", []string{"app/terragrunt.hcl:8 vpc"}},
		{"app/terragrunt.hcl", `config_path  = "..`, []string{"vpc/terragrunt.hcl:1 "}},
		{"app/terragrunt.hcl", "  vpc_", []string{"modules/app/main.tf:2 vpc_id"}},
		{"app/terragrunt.hcl", "= local.", []string{"app/terragrunt.hcl:15 zone"}},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at(x.name, x.before), &got)
		equal(t, "definition behind "+x.before+" in "+x.name, c.places(got), x.want...)
	}
	p := c.at("modules/vpc/main.tf", `output "i`)
	p["context"] = map[string]any{"includeDeclaration": false}
	var got []protocol.Location
	c.call("textDocument/references", p, &got)
	equal(t, "output.id", c.places(got), "app/terragrunt.hcl:11 id", "app/terragrunt.hcl:18 id")
	var v viewpointsResult
	c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("root.hcl")}}, &v)
	equal(t, "viewpoints", []string{c.name(v.Current), c.name(v.All[0]), c.name(v.All[1])}, "app/terragrunt.hcl", "app/terragrunt.hcl", "vpc/terragrunt.hcl")
	c.call("workspace/executeCommand", map[string]any{"command": commandViewpoint, "arguments": []any{c.uri("root.hcl"), c.uri("vpc/terragrunt.hcl")}}, nil)
	c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("root.hcl")}}, &v)
	equal(t, "the chosen viewpoint", []string{c.name(v.Current)}, "vpc/terragrunt.hcl")
}

func TestRename(t *testing.T) {
	for _, x := range []struct {
		files, name, before, to string
		want                    map[string][]string // parts of files after the rename
		refused                 string
	}{
		{moduleFiles, "main.tf", "n-${var.", "count_of", map[string][]string{"main.tf": {`variable "count_of"`, "${var.count_of}"}, "terraform.tfvars": {"count_of = 3"}}, ""},
		{moduleFiles, "m/main.tf", `variable "c`, "paint", map[string][]string{"main.tf": {"paint  = local.name"}, "m/main.tf": {`variable "paint"`, "${var.paint}"}}, ""},
		{moduleFiles, "main.tf", "terraform_data.w", "site", map[string][]string{"main.tf": {`"terraform_data" "site"`, "terraform_data.site.output", "moved {\n  from = terraform_data.web\n  to   = terraform_data.site\n}"}, "web_override.tf": {`"terraform_data" "site"`}}, ""},
		{moduleFiles, "main.tf", `module "`, "n", map[string][]string{"main.tf": {`module "n"`, "module.n.out", "from = module.m\n  to   = module.n"}}, ""},
		{moduleFiles, "main.tf", "n-${var.", "a b", nil, "not a valid name"},
		{moduleFiles, "m/main.tf", `variable "c`, "kind", nil, "exists already"},
		{moduleFiles + "-- x.tf.json --\n{\"output\": {\"y\": {\"value\": \"${var.size}\"}}}\n", "main.tf", "n-${var.", "q", map[string][]string{"x.tf.json": {"${var.q}"}}, ""},
		{moduleFiles + "-- x.tf --\nlocals {\n", "main.tf", "n-${var.", "q", nil, "syntax error"},
		{unitFiles, "modules/vpc/main.tf", `output "i`, "vpc", map[string][]string{"app/terragrunt.hcl": {"dependency.vpc.outputs.vpc", `vpc = "mock"`}}, ""},
		{unitFiles, "root.hcl", "  reg", "place", map[string][]string{"app/terragrunt.hcl": {"include.root.locals.place"}, "root.hcl": {`place = "eu"`, "region = local.place"}}, ""},
		{unitFiles, "modules/app/main.tf", `variable "r`, "place", nil, "root.hcl, line 5, sets var.region for units of several modules"},
	} {
		c := start(t, unpack(t, x.files), nil)
		p := c.at(x.name, x.before)
		p["newName"] = x.to
		var e protocol.WorkspaceEdit
		err := c.try("textDocument/rename", p, &e)
		if x.refused != "" {
			if err == nil || !strings.Contains(err.Error(), x.refused) {
				t.Errorf("rename behind %q to %q: %v, want a refusal with %q", x.before, x.to, err, x.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("rename behind %q to %q: %v", x.before, x.to, err)
			continue
		}
		apply(t, &e)
		for name, parts := range x.want {
			text, _ := os.ReadFile(filepath.Join(c.dir, name))
			for _, part := range parts {
				if !strings.Contains(string(text), part) {
					t.Errorf("after the rename behind %q to %q, %s does not contain %q:\n%s", x.before, x.to, name, part, text)
				}
			}
		}
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
		for name := range x.want {
			if got := c.diagnostics(name); len(got) != 0 {
				t.Errorf("after the rename behind %q to %q, %s: %q", x.before, x.to, name, got)
			}
		}
	}
}

func TestHover(t *testing.T) {
	c := start(t, unpack(t, moduleFiles+"-- secret.tf --\nvariable \"token\" {\n  sensitive = true\n  default   = \"hidden-text\"\n}\nlocals {\n  t = upper(var.token)\n}\n"), nil)
	text := func(name, before string) string {
		var h *protocol.Hover
		c.call("textDocument/hover", c.at(name, before), &h)
		if h == nil {
			return ""
		}
		return h.Contents.Value
	}
	for _, x := range []struct{ name, before, want string }{
		{"main.tf", "n-${var.", "How many."},
		{"main.tf", "n-${var.", "terraform.tfvars:1"},
		{"main.tf", "input = local.", `local.name = "n-3"`},
		{"main.tf", "module.m.o", `"n-3 k"`},
		{"secret.tf", "upp", "upper(str string)"},
		{"secret.tf", "var.to", "sensitive"},
	} {
		if got := text(x.name, x.before); !strings.Contains(got, x.want) {
			t.Errorf("hover behind %q: %q, want %q", x.before, got, x.want)
		}
	}
	if got := text("secret.tf", "var.to") + text("secret.tf", "  t"); strings.Contains(strings.ToLower(got), "hidden-text") {
		t.Errorf("hover shows a secret: %s", got)
	}
}

func TestCompletion(t *testing.T) {
	c := start(t, unpack(t, moduleFiles+unitFiles), nil)
	c.call("shutdown", nil, nil) // no effect on requests
	complete := func(name, before, insert string) []string {
		text := c.open(name)
		i := strings.Index(text, before) + len(before)
		next := text[:i] + insert + text[i:]
		c.change(name, next)
		var l protocol.CompletionList
		c.call("textDocument/completion", c.position(name, []byte(next), i+len(insert)), &l)
		var out []string
		for _, item := range l.Items {
			out = append(out, item.Label)
		}
		return out
	}
	for _, x := range []struct {
		name, before, insert string
		want, not            []string
	}{
		{"main.tf", "  name = ", "[var.", []string{"size"}, []string{"name"}},
		{"main.tf", "  name = ", "[local.", []string{"name"}, []string{"size"}},
		{"main.tf", "  name = ", "[module.m.", []string{"out"}, nil},
		{"main.tf", "  name = ", "[", []string{"var", "upper", "terraform_data"}, nil},
		{"main.tf", "  source = \"./m\"\n", "  ", []string{"color", "kind", "for_each"}, []string{"size"}},
		{"main.tf", "\"terraform_data\" \"web\" {\n", "  ", []string{"input", "triggers_replace", "lifecycle", "count"}, []string{"output", "resource"}},
		{"main.tf", "  value = terraform_data.web.output\n}\n", "", []string{"resource", "variable"}, nil},
		{"main.tf", "  name = ", "[terraform_data.web.", []string{"output", "id"}, nil},
		{"app/terragrunt.hcl", "  zone = ", "[dependency.vpc.outputs.", []string{"id"}, nil},
		{"app/terragrunt.hcl", "  zone = ", "[include.root.locals.", []string{"region"}, nil},
		{"app/terragrunt.hcl", "inputs = {\n", "  ", []string{"vpc_id", "region"}, nil},
		{"app/terragrunt.hcl", "dependency \"vpc\" {\n", "  ", []string{"config_path", "skip_outputs"}, nil},
	} {
		got := complete(x.name, x.before, x.insert)
		for _, w := range x.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q behind %q: %q is missing in %q", x.insert, x.before, w, got)
			}
		}
		for _, w := range x.not {
			if slices.Contains(got, w) {
				t.Errorf("%q behind %q: %q is in %q", x.insert, x.before, w, got)
			}
		}
	}
	c.change("main.tf", "locals {\n  x = replace(\"a\", ")
	var sig protocol.SignatureHelp
	c.call("textDocument/signatureHelp", c.position("main.tf", []byte("locals {\n  x = replace(\"a\", "), 27), &sig)
	if len(sig.Signatures) != 1 || !strings.HasPrefix(sig.Signatures[0].Label, "replace(") || sig.ActiveParameter != 1 {
		t.Errorf("signature: %s", asJSON(sig))
	}
}

func TestOverridesAndOrigins(t *testing.T) {
	c := start(t, unpack(t, moduleFiles+unitFiles), nil)
	hints := func(name string) (out []string) {
		var all []protocol.InlayHint
		c.call("textDocument/inlayHint", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "range": protocol.Range{End: protocol.Position{Line: 1000}}}, &all)
		for _, h := range all {
			out = append(out, fmt.Sprintf("%d %s", h.Position.Line+1, h.Label))
		}
		return out
	}
	equal(t, "base", hints("main.tf"), "10 overridden in web_override.tf:2")
	equal(t, "override", hints("web_override.tf"), "2 overrides main.tf:10")
	equal(t, "unit", hints("app/terragrunt.hcl"), "19 from root.hcl:2")
	var lenses []protocol.CodeLens
	c.call("textDocument/codeLens", map[string]any{"textDocument": map[string]any{"uri": c.uri("m/main.tf")}}, &lenses)
	var titles []string
	for i := range lenses {
		var l protocol.CodeLens
		c.call("codeLens/resolve", lenses[i], &l)
		titles = append(titles, fmt.Sprintf("%d %s", l.Range.Start.Line+1, l.Command.Title))
	}
	equal(t, "lenses", titles, "1 2 uses in 2 files", "2 1 use", "5 1 use")
	var x effectiveResult
	c.call("terrace/effective", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}}, &x)
	if !strings.Contains(x.Text, `"over"`) || !strings.Contains(x.Text, "web_override.tf:2") {
		t.Errorf("effective module:\n%s", x.Text)
	}
	c.call("terrace/effective", map[string]any{"textDocument": map[string]any{"uri": c.uri("app/terragrunt.hcl")}}, &x)
	if !strings.Contains(x.Text, `"eu"`) {
		t.Errorf("effective unit:\n%s", x.Text)
	}
	var content protocol.TextDocumentContentResult
	c.call("workspace/textDocumentContent", map[string]any{"uri": x.URI}, &content)
	if content.Text != x.Text {
		t.Error("the document has another text than the answer")
	}
}

func TestActions(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	text := c.open("main.tf")
	titles := func(next, before string) (out []protocol.CodeAction) {
		c.change("main.tf", next)
		i := strings.Index(next, before) + len(before)
		at := document.New([]byte(next)).Position(i, document.UTF16)
		c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}, "range": protocol.Range{Start: at, End: at}, "context": map[string]any{"diagnostics": []any{}}}, &out)
		return out
	}
	has := func(what string, all []protocol.CodeAction, title string) {
		t.Helper()
		if !slices.ContainsFunc(all, func(a protocol.CodeAction) bool { return a.Title == title }) {
			t.Errorf("%s: no action %q in %s", what, title, asJSON(all))
		}
	}
	has("misspelling", titles(strings.Replace(text, "${var.size}", "${var.sise}", 1), "${var.si"), `Change "sise" to "size"`)
	has("undeclared", titles(strings.Replace(text, "${var.size}", "${var.other}", 1), "${var.ot"), `Declare variable "other" in main.tf`)
	has("argument of a module", titles(strings.Replace(text, "  color ", "  tint = 1\n  color ", 1), "  ti"), `Declare variable "tint" in main.tf`)
	has("missing", titles(strings.Replace(text, "  color  = local.name\n", "", 1), `module "m`), "Add missing arguments: color")
	has("lint", titles(text+"locals {\n  unused = 1\n}\n", "unus"), "Fix unused-local")
}

func TestSymbols(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), nil)
	doc := map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}}
	var syms []protocol.DocumentSymbol
	c.call("textDocument/documentSymbol", doc, &syms)
	if len(syms) != 6 || syms[2].Name != `resource "terraform_data" "web"` || len(syms[2].Children) != 1 {
		t.Errorf("symbols: %s", asJSON(syms))
	}
	var all []protocol.WorkspaceSymbol
	c.call("workspace/symbol", map[string]any{"query": "varcol"}, &all)
	if len(all) != 1 || all[0].Name != "var.color" {
		t.Errorf("workspace symbols: %s", asJSON(all))
	}
	var folds []protocol.FoldingRange
	c.call("textDocument/foldingRange", doc, &folds)
	if len(folds) != 6 {
		t.Errorf("folding: %s", asJSON(folds))
	}
	var tokens protocol.SemanticTokens
	c.call("textDocument/semanticTokens/full", doc, &tokens)
	if len(tokens.Data) == 0 || len(tokens.Data)%5 != 0 || !slices.Equal(tokens.Data[:5], []int{0, 0, 8, tokenType, 0}) {
		t.Errorf("tokens: %v", tokens.Data)
	}
	var links []protocol.DocumentLink
	c.call("textDocument/documentLink", doc, &links)
	if len(links) != 1 || c.name(links[0].Target) != "m/main.tf" {
		t.Errorf("links: %s", asJSON(links))
	}
}

// Formatting of 5,000 lines uses only the buffer.
func BenchmarkFormatting(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "resource \"aws_instance\" \"i%d\" {\n  ami = var.ami\n    instance_type=\"t3\"\n  tags = { Name = \"x\" }\n}\n", i)
	}
	buffer := &workspace.Buffer{Path: "/x/main.tf", Text: document.New([]byte(text.String()))}
	for b.Loop() {
		if len(formatting.Document(buffer.Path, buffer.Text, document.UTF16)) == 0 {
			b.Fatal("nothing to do")
		}
	}
}

// A client that can learn it formats only the files that the server formats, so that another formatter formats
// JSON files.
func TestRegisteredFormatting(t *testing.T) {
	dynamic := map[string]any{"dynamicRegistration": true}
	methods := make(chan string, 8)
	c := startWith(t, unpack(t, moduleFiles), map[string]any{"textDocument": map[string]any{"formatting": dynamic, "rangeFormatting": dynamic}}, nil, func(method string, p json.RawMessage) any {
		if method == "client/registerCapability" {
			methods <- string(p)
		}
		return nil
	})
	for _, want := range []string{`"textDocument/formatting"`, `"textDocument/rangeFormatting"`} {
		select {
		case got := <-methods:
			if !strings.Contains(got, want) || !strings.Contains(got, "**/*.{tf,tofu,tfvars,hcl}") {
				t.Errorf("the registration is %s", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is not registered", want)
		}
	}
	if c.server["documentFormattingProvider"] != false || c.server["documentRangeFormattingProvider"] != false {
		t.Errorf("the capabilities are %v", c.server)
	}
}
