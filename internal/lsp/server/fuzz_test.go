package server

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

func indexOf(path string, text []byte) *index.File { return index.Of(path, text, nil) }

// seeds is the number of random sessions.
var seeds = flag.Int("seeds", 6, "number of random sessions that TestRandomEdits edits; firstSeed begins")

var firstSeed = flag.Int("first-seed", 0, "first seed of TestRandomEdits")

// inserts are the texts that random edits insert.
var inserts = []string{
	"", "x", "\n", "variable \"y\" {}\n", "${", "}", "local.name", "\"", "é😀", " = 1\n", "<<EOT\n", "\x00", "\xff", "\r\n",
	"module \"self\" {\n  source = \"./\"\n}\n", "include \"again\" {\n  path = \"terragrunt.hcl\"\n}\n", "moved {\n  from = a.b\n  to = a.c\n}\n",
	"local.data.tags.", "dependency \"app\" {\n  config_path = \"../app\"\n}\n", strings.Repeat("[", 3000), strings.Repeat("x", 100000), strings.Repeat("a = 1\n", 2000), "1e999999999", "${\"${",
	", ", "\"x\": 1, ", "{", "\\u00e9", "${var.size}", "unit \"again\" {\n  source = \"../units/vpc\"\n  path   = \"again\"\n}\n", "values.env", "values = {\n  cidr = 1\n}\n",
	"rule \"again\" {\n  resource = \"*\"\n  enforce {\n    condition     = local.most > 1\n    error_message = \"no\"\n  }\n}\n", "exception \"region\" {}\n",
	"module \"again\" {\n  source = \"./modules/vpc\"\n  region = module.net.outputs.id\n}\n", "import.prod.module.net.outputs.id", "import.lib.dependency.vpc.outputs.id",
	"&a ", "*a", "<<: *a\n", "small: 1\n", "- ", "\t", "\r", "dependency \"vpc\" {\n  config_path = \"../app\"\n}\n", "for_each = toset([\"a\"])\n",
	"\"module\": {\"self\": {\"source\": \"./\"}}, ", "run \"again\" {\n  module {\n    source = \"./m\"\n  }\n}\n",
}

const dataFiles = `
-- data.tf --
locals {
  data = yamldecode(file("${path.module}/data.yaml"))
  env  = local.data.tags.env
}
-- data.yaml --
tags:
  env: prod
  "team": core
list: [1, 2]
-- tests/one.tftest.hcl --
variables {
  size = 4
}
run "first" {
  command = plan
}
-- live.yaml --
region: eu
-- outputs.tf --
output "other" {
  value = "${module.m.out} ${var.size}"
}
-- tests/two.tftest.json --
{
  "variables": {"size": 4},
  "run": {
    "first": {"command": "plan", "assert": {"condition": "${output.o == module.m.out}", "error_message": "no"}},
    "second": {"module": {"source": "./m"}, "variables": {"color": "${run.first.other}"}}
  }
}
-- js/main.tf.json --
{
  "variable": {"size": {"default": 1}},
  "locals": {"label": "x-${var.size}", "odd": "\u00e9${upper(\"a\")}${var.size}"},
  "resource": {"terraform_data": {"web": {"input": "${local.label}", "depends_on": ["terraform_data.other"]}, "other": {"input": 1}}},
  "module": {"m": {"source": "../m", "color": "${local.odd}"}},
  "output": {"made": {"value": "${module.m.out}"}}
}
-- js/web_override.tf.json --
{"resource": {"terraform_data": {"web": {"input": "over"}}}}
-- js/terraform.tfvars.json --
{"size": 2}
-- js/unit/terragrunt.hcl.json --
{
  "locals": {"env": "dev"},
  "include": {"root": {"path": "../../root.hcl"}},
  "dependency": {"vpc": {"config_path": "../../vpc", "mock_outputs": {"id": "mock"}}},
  "terraform": {"source": "../"},
  "inputs": {"size": "${local.env}", "id": "${dependency.vpc.outputs.id}"}
}
-- all.rules.hcl --
locals {
  most = 40
}
rule "small" {
  resource = "terraform_data"
  enforce {
    condition     = try(length(attrs.input), 0) <= local.most
    error_message = "${meta.address} is too large."
  }
}
rule "region" {
  unit  = "*"
  level = "warning"
  enforce {
    condition     = try(attrs.region, "eu") == "eu"
    error_message = "The region is ${attrs.region}."
  }
}
-- exceptions.rules.hcl --
exception "small" {
  address = "terraform_data.other"
  reason  = "It is large."
}
-- all.rulestest.hcl --
run "small" {
  rules = [rule.small]
  resource "terraform_data" "web" {
    attrs = { input = "x" }
  }
}
-- prod.hcl --
locals {
  region = "eu"
  sizes  = jsondecode(file("${get_terragrunt_dir()}/sizes.json"))
}
module "net" {
  source = "./modules/vpc"
  region = local.region
}
module "app" {
  source = "./modules/app"
  region = local.region
  vpc_id = module.net.outputs.id
  inputs = {
    zone = local.sizes.small
  }
}
-- sizes.json --
{"small": "s", "large": {"name": "l", "é": 1}}
-- shared/lib.hcl --
dependency "vpc" {
  config_path  = "../vpc"
  mock_outputs = {
    id = "mock"
  }
}
inputs = {
  region = path_relative_to_import()
}
-- shared/vars.tfvars --
zone = "z"
-- web/terragrunt.hcl --
import "lib" {
  config_path = "../shared/lib.hcl"
  merge       = true
}
import "prod" {
  config_path = "../prod.hcl"
}
terraform {
  source = "../modules/app"
  extra_arguments "zone" {
    commands           = ["plan"]
    required_var_files = ["${get_terragrunt_dir()}/../shared/vars.tfvars"]
  }
}
inputs = {
  vpc_id = "${dependency.vpc.outputs.id} ${import.prod.module.net.outputs.id} ${path_relative_to_import("lib")}"
}
-- area/root.hcl --
terraform {
  source = "../modules/app"
}
dependencies {
  paths = ["../base"]
}
dependency "base" {
  config_path  = "../base"
  mock_outputs = {
    id = "mock"
  }
}
locals {
  account = read_terragrunt_config(find_in_parent_folders("account.hcl"))
}
inputs = {
  up    = dependency.base.outputs.id
  place = local.account.locals.place
}
-- area/eu/account.hcl --
locals {
  place = "eu"
}
-- area/eu/modules/app/main.tf --
variable "up" {}
variable "place" {
  validation {
    condition     = var.place != "us"
    error_message = "no"
  }
}
variable "own" {
  default = ""
}
module "vpc" {
  source   = "../../../../linked/vpc"
  for_each = toset([var.place])
  region   = each.key
}
output "id" {
  value = values(module.vpc)[*].id
}
-- area/eu/base/terragrunt.hcl --
terraform {
  source = "../../../linked/vpc"
}
inputs = {
  region = "eu"
}
-- area/eu/one/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
inputs = {
  own = dependency.base.outputs.id
}
-- area/us/account.hcl --
locals {
  place = "us"
}
-- area/us/modules/app/main.tf --
variable "up" {}
variable "place" {}
-- area/us/base/terragrunt.hcl --
terraform {
  source = "../../../modules/vpc"
}
inputs = {
  region = "us"
}
-- area/us/one/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
` + stackFiles

// After random edits, renames, saves, changes of branch, new and deleted files, a server gives the same
// answers as one that was started with the result. No goroutine and no open file remains.
func TestRandomEdits(t *testing.T) {
	rounds := *seeds
	if testing.Short() {
		rounds = 1
	}
	counts := map[string]int{}
	var goroutines, files int
	for seed := *firstSeed; seed < *firstSeed+rounds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { randomSession(t, seed, counts) })
		if t.Failed() {
			t.FailNow()
		}
		n, open := settled(goroutines), openFiles()
		if seed == *firstSeed+1 { // the first session starts what the process keeps
			goroutines, files = n, open
		} else if goroutines > 0 && (n > goroutines+2 || open > files+2) {
			t.Fatalf("seed %d: %d goroutines and %d open files remain, after the second session %d and %d", seed, n, open, goroutines, files)
		}
	}
	t.Logf("%d sessions: %v", rounds, counts)
}

// settled returns the number of goroutines, when it is at most want or does not fall any more.
func settled(want int) (n int) {
	for range 100 {
		if n = runtime.NumGoroutine(); n <= want {
			return n
		}
		time.Sleep(20 * time.Millisecond)
	}
	return n
}

// openFiles returns the number of open files of the process, or 0 if that is not known.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func randomSession(t *testing.T, seed int, counts map[string]int) {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	dir := unpack(t, moduleFiles+unitFiles+dataFiles)
	_ = os.Symlink("modules", filepath.Join(dir, "linked")) // without it, its users have errors
	c := start(t, dir, nil)
	names := []string{"main.tf", "web_override.tf", "m/main.tf", "root.hcl", "app/terragrunt.hcl", "modules/app/main.tf", "data.tf", "data.yaml", "tests/one.tftest.hcl",
		"outputs.tf", "tests/two.tftest.json", "js/main.tf.json", "js/terraform.tfvars.json", "js/unit/terragrunt.hcl.json", "live/terragrunt.stack.hcl", "units/app/terragrunt.hcl", "hand/terragrunt.values.hcl", "hand/terragrunt.hcl",
		"all.rules.hcl", "exceptions.rules.hcl", "all.rulestest.hcl", "prod.hcl", "sizes.json", "shared/lib.hcl", "shared/vars.tfvars", "web/terragrunt.hcl", "terraform.tfvars",
		"area/root.hcl", "area/eu/account.hcl", "area/eu/modules/app/main.tf", "area/eu/base/terragrunt.hcl", "area/eu/one/terragrunt.hcl", "modules/vpc/main.tf"}
	texts, before, branch := map[string]string{}, map[string][]string{}, map[string]string{}
	for _, name := range names {
		texts[name] = c.open(name)
		branch[name] = texts[name]
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(kind int, name string) map[string]any { return map[string]any{"uri": c.uri(name), "type": kind} }
	set := func(name, text string) {
		if text != texts[name] {
			before[name] = append(before[name], texts[name])
			texts[name] = text
			c.change(name, text)
		}
	}
	for step := range 40 {
		name := names[r.IntN(len(names))]
		text := []byte(texts[name])
		op := ""
		switch r.IntN(14) {
		case 0:
			op = "undo"
			if past := before[name]; len(past) > 0 {
				set(name, past[r.IntN(len(past))])
			}
		case 1:
			op = "save"
			write(name, texts[name])
			c.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
		case 2:
			op = "rename"
			if r.IntN(2) == 0 { // a file with a syntax error prevents renames
				for _, other := range names {
					set(other, branch[other])
				}
				text = []byte(texts[name])
			}
			p := c.position(name, text, r.IntN(len(text)+1))
			p["newName"] = fmt.Sprintf("renamed_%d", step)
			var e protocol.WorkspaceEdit
			if c.try("textDocument/rename", p, &e) != nil {
				op = "rename refused"
				break
			}
			for uri, all := range e.Changes {
				file := c.name(uri)
				old, open := texts[file]
				if !open {
					raw, err := os.ReadFile(filepath.Join(dir, file))
					if err != nil {
						t.Fatal(err)
					}
					old = string(raw)
				}
				if next := edited(old, all); open {
					set(file, next)
				} else {
					write(file, next)
				}
			}
		case 3:
			op = "change of branch" // files on disk change; some of them are open
			var all []any
			for other, old := range branch {
				if r.IntN(2) == 0 {
					next := old + "# branch " + strconv.Itoa(step) + "\n"
					write(other, next)
					all = append(all, changed(2, other))
				}
			}
			if r.IntN(3) > 0 { // a client may not report it
				c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": all})
			}
		case 4:
			op = "new file"
			file := []string{"new.tf", "new_override.tf", "m/new.tf", "app/new.hcl", "dir/main.tf", "terraform.tfvars", "x.tf.json", "live/terragrunt.values.hcl", "units/app/terragrunt.values.hcl", "tests/three.tftest.json", "more.rules.hcl", "dev.hcl", "web/terraform.tfvars", "area/account.hcl", "area/us/account.hcl", "area/us/modules/app/new.tf"}[r.IntN(16)]
			content := "variable \"made\" {}\n"
			if strings.HasSuffix(file, ".values.hcl") {
				content = "env = \"from a file\"\n"
			}
			if file == "tests/three.tftest.json" {
				content = "{\"variables\": {\"size\": 2}}"
			}
			switch file {
			case "more.rules.hcl":
				content = "exception \"region\" {\n  reason = \"made\"\n}\n"
			case "dev.hcl":
				content = "module \"net\" {\n  source = \"./modules/vpc\"\n  region = \"made\"\n}\n"
			case "area/account.hcl", "area/us/account.hcl":
				content = "locals {\n  place = \"made\"\n}\n"
			case "web/terraform.tfvars":
				content = "zone = \"made\"\n"
			}
			if file == "x.tf.json" {
				content = "{\"output\": {\"json\": {\"value\": \"${var.size}\"}}}"
			}
			write(file, content)
			c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{changed(1, file)}})
		case 5:
			op = "deleted file"
			file := []string{"new.tf", "new_override.tf", "m/new.tf", "dir", "terraform.tfvars", "x.tf.json", "m/main.tf", "root.hcl", "units/vpc", "hand/terragrunt.values.hcl", "live/terragrunt.values.hcl", "more.rules.hcl", "dev.hcl", "shared", "sizes.json", "area/us", "area/us/account.hcl", "area/account.hcl"}[r.IntN(18)]
			if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{changed(3, file)}})
		case 6:
			op = "reopened"
			write(name, texts[name])
			c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
			c.open(name)
		default:
			op = "edit" // insert, delete or replace, as the change of a range
			x := document.New(text)
			from := r.IntN(len(text) + 1)
			to := min(from+r.IntN(12)*r.IntN(2), len(text))
			insert := inserts[r.IntN(len(inserts))]
			if !utf8.ValidString(insert) {
				insert = strings.ToValidUTF8(insert, "\uFFFD") // as JSON transports it
			}
			at := x.Range(from, to, document.UTF16)
			from, to = x.Offset(at.Start, document.UTF16), x.Offset(at.End, document.UTF16) // not inside a character
			before[name] = append(before[name], texts[name])
			texts[name] = string(text[:from]) + insert + string(text[to:])
			c.versions[name]++
			c.notify("textDocument/didChange", map[string]any{
				"textDocument": map[string]any{"uri": c.uri(name), "version": c.versions[name]}, "contentChanges": []any{map[string]any{"range": at, "text": insert}},
			})
		}
		counts[op]++
		if step%8 == 0 {
			c.diagnostics(names[r.IntN(len(names))])
		}
	}
	// Names of a file with a syntax error are completed from its last version without one, which a fresh
	// server does not know.
	got := c.answers(names, texts)
	fresh := start(t, dir, nil)
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			fresh.open(name)
			fresh.change(name, texts[name])
		} else {
			fresh.opened(name, texts[name])
		}
	}
	want := fresh.answers(names, texts)
	counts["answers compared"] += len(want)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("seed %d: after the edits\n%.3000s\na fresh server\n%.3000s", seed, got[i], want[i])
		}
	}
	c.stop()
	fresh.stop()
}

// answers returns the answers about all files.
func (c *client) answers(names []string, texts map[string]string) (out []string) {
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	for _, name := range names {
		doc := map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
		out = append(out, name+" diagnostics "+strings.Join(c.diagnostics(name), "; "))
		for _, method := range []string{"documentSymbol", "foldingRange", "semanticTokens/full", "documentLink", "codeLens"} {
			var r any
			c.call("textDocument/"+method, doc, &r)
			out = append(out, name+" "+method+" "+asJSON(r))
		}
		var hints []protocol.InlayHint
		c.call("textDocument/inlayHint", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "range": protocol.Range{End: protocol.Position{Line: 10000}}}, &hints)
		out = append(out, name+" hints "+asJSON(hints))
		text := []byte(texts[name])
		for i := 3; i < len(text); i += max(97, len(text)/15) {
			var h *protocol.Hover
			c.call("textDocument/hover", c.position(name, text, i), &h)
			var marks []protocol.DocumentHighlight
			c.call("textDocument/documentHighlight", c.position(name, text, i), &marks)
			out = append(out, fmt.Sprintf("%s:%d %s %s", name, i, asJSON(h), asJSON(marks)))
		}
		for i := 0; i < len(text); i += max(17, len(text)/60) {
			var locations []protocol.Location
			c.call("textDocument/definition", c.position(name, text, i), &locations)
			p := c.position(name, text, i)
			p["context"] = map[string]any{"includeDeclaration": true}
			var refs []protocol.Location
			c.call("textDocument/references", p, &refs)
			slices.SortFunc(locations, compareLocations)
			out = append(out, fmt.Sprintf("%s:%d %s %s", name, i, asJSON(locations), asJSON(refs)))
		}
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], c.dir, "")
	}
	return out
}
