package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

const includedPaths = `
-- live/root.hcl --
terraform {
  source = "../modules/app"
}
dependencies {
  paths = ["../db", "${get_terragrunt_dir()}/../net"]
}
dependency "db" {
  config_path = "../db"
}
inputs = {
  size = 1
  id   = dependency.db.outputs.id
}
-- live/eu/app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
inputs = {
  name = "a"
}
-- live/us/app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- live/eu/db/terragrunt.hcl --
-- live/eu/db/main.tf --
output "id" {
  value = 1
}
-- live/us/db/terragrunt.hcl --
-- live/us/db/main.tf --
output "id" {
  value = 2
}
-- live/eu/net/terragrunt.hcl --
-- live/us/net/terragrunt.hcl --
dependencies {
  paths = ["../app"]
}
-- live/eu/modules/app/main.tf --
variable "size" {}
variable "name" {}
variable "id" {}
-- live/us/modules/app/main.tf --
variable "size" {}
variable "id" {}
-- modules/app/main.tf --
variable "wrong" {}
-- computed/web/terragrunt.hcl --
terraform {
  source = "../../modules/${basename(dirname(get_terragrunt_dir()))}_${basename(get_terragrunt_dir())}"
}
inputs = {
  here = 1
}
-- modules/computed_web/main.tf --
variable "here" {}
`

// targets returns the targets of the links of a file, in the order of the text.
func (c *client) targets(name string) (out []string) {
	c.t.Helper()
	var links []protocol.DocumentLink
	c.call("textDocument/documentLink", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &links)
	for _, l := range links {
		out = append(out, c.name(l.Target))
	}
	return out
}

// A relative path in an included file is relative to the unit, as for the engine and for Terragrunt: in links,
// definition, hover, completion, viewpoints and cycles.
func TestPathsInIncludedFiles(t *testing.T) {
	c := start(t, unpack(t, includedPaths), nil)
	c.open("live/root.hcl")
	defined := func(name, before string) []string {
		t.Helper()
		var all []protocol.Location
		c.call("textDocument/definition", c.at(name, before), &all)
		return c.places(all)
	}
	completed := func(name, before string) string {
		t.Helper()
		var r any
		c.call("textDocument/completion", c.at(name, before), &r)
		return asJSON(r)
	}
	links := func(region string) []string {
		return []string{"live/" + region + "/modules/app/main.tf", "live/" + region + "/db/terragrunt.hcl", "live/" + region + "/net/terragrunt.hcl", "live/" + region + "/db/terragrunt.hcl"}
	}
	equal(t, "links seen from eu", c.targets("live/root.hcl"), links("eu")...)
	equal(t, "the definition of an input", defined("live/root.hcl", "  siz"), "live/eu/modules/app/main.tf:1 size")
	equal(t, "the definition of the source", defined("live/root.hcl", "../modules/a"), "live/eu/modules/app/main.tf:1 ")
	equal(t, "the definition of an output", defined("live/root.hcl", "outputs.i"), "live/eu/db/main.tf:1 id")
	if got := completed("live/root.hcl", "inputs = {\n"); !strings.Contains(got, `"label":"name"`) || strings.Contains(got, "wrong") {
		t.Errorf("completion of inputs: %s", got)
	}
	if got := completed("live/eu/app/terragrunt.hcl", "inputs = {\n"); !strings.Contains(got, `"label":"size"`) || strings.Contains(got, "wrong") {
		t.Errorf("completion of the inputs of a unit: %s", got)
	}
	c.choose("live/root.hcl", c.uri("live/us/app/terragrunt.hcl"))
	equal(t, "links seen from us", c.targets("live/root.hcl"), links("us")...)
	equal(t, "the definition of an input seen from us", defined("live/root.hcl", "  siz"), "live/us/modules/app/main.tf:1 size")
	if got := completed("live/root.hcl", "inputs = {\n"); strings.Contains(got, `"label":"name"`) {
		t.Errorf("completion of inputs seen from us: %s", got)
	}
	views := func(name string) (out []string) {
		var r viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r)
		for _, u := range r.All {
			out = append(out, c.name(u))
		}
		return out
	}
	equal(t, "the viewpoints of the module", views("live/eu/modules/app/main.tf"), "live/eu/app/terragrunt.hcl")
	equal(t, "the viewpoints of a module that no unit has", views("modules/app/main.tf"))
	if got := c.hoverText("live/eu/modules/app/main.tf", "variable \"na"); !strings.Contains(got, `"a"`) || !strings.Contains(got, "Seen from live/eu/app:") {
		t.Errorf("hover in the module: %s", got)
	}
	p := c.at("live/eu/modules/app/main.tf", "variable \"si")
	p["newName"] = "new"
	if err := c.try("textDocument/rename", p, nil); err == nil || !strings.Contains(err.Error(), "root.hcl") {
		t.Errorf("a rename that would change the input of another module: %v", err)
	}
	if got := strings.Join(c.diagnostics("live/us/app/terragrunt.hcl"), "\n"); !strings.Contains(got, "live/us/net needs live/us/app here") {
		t.Errorf("a cycle through dependencies blocks: %s", got)
	}
	if got := c.diagnostics("live/eu/app/terragrunt.hcl"); slices.ContainsFunc(got, func(d string) bool { return strings.Contains(d, "cycle") }) {
		t.Errorf("no cycle: %s", got)
	}
	equal(t, "edits for a moved module that no unit has", c.changed(c.willRename("modules/app:modules/other")))
	equal(t, "edits for a module that moves for one unit", c.changed(c.willRename("live/eu/modules/app:live/eu/modules/other")))
	equal(t, "a source that the index does not know", c.targets("computed/web/terragrunt.hcl"), "modules/computed_web/main.tf")
	c.mu.Lock()
	if got := strings.Join(c.messages, "\n"); !strings.Contains(got, "live/root.hcl, line 2: the path is relative to each unit that includes the file, such as live/eu/app/terragrunt.hcl, and is not updated.") {
		t.Errorf("the warnings are %q", got)
	}
	c.mu.Unlock()
	equal(t, "the definition of its input", defined("computed/web/terragrunt.hcl", "  he"), "modules/computed_web/main.tf:1 here")
}

// Each path of a dependencies block is a link, in native and in JSON syntax.
func TestLinksOfDependencies(t *testing.T) {
	c := start(t, unpack(t, `
-- a/terragrunt.hcl --
dependencies {
  paths = ["../b", "../c/terragrunt.hcl", "../gone", "../${local.b}"]
}
locals {
  b = "b"
}
-- b/terragrunt.hcl --
-- c/terragrunt.hcl --
-- j/terragrunt.hcl.json --
{"dependencies": {"paths": ["../b", "../c"]}}
`), nil)
	equal(t, "native syntax", c.targets("a/terragrunt.hcl"), "b/terragrunt.hcl", "c/terragrunt.hcl", "b/terragrunt.hcl")
	equal(t, "JSON syntax", c.targets("j/terragrunt.hcl.json"), "b/terragrunt.hcl", "c/terragrunt.hcl")
	var all []protocol.Location
	c.call("textDocument/definition", c.at("a/terragrunt.hcl", `"../c`), &all)
	equal(t, "definition", c.places(all), "c/terragrunt.hcl:1 ")
}

// A file that an included file reads where find_in_parent_folders finds it is another one for each unit.
func TestFilesThatIncludedFilesFind(t *testing.T) {
	c := start(t, unpack(t, `
-- root.hcl --
locals {
  account = read_terragrunt_config(find_in_parent_folders("account.hcl"))
  name    = local.account.locals.name
}
inputs = {
  name = local.name
}
-- prod/account.hcl --
locals {
  name = "p"
  long = "${local.name}-account"
}
-- dev/account.hcl --
locals {
  name = "d"
}
-- prod/eu/app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- prod/us/app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- dev/app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
`), nil)
	views := func(name string) (out []string) {
		var r viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r)
		for _, u := range r.All {
			out = append(out, c.name(u))
		}
		return out
	}
	defined := func() []string {
		t.Helper()
		var all []protocol.Location
		c.call("textDocument/definition", c.at("root.hcl", "account.locals.na"), &all)
		return c.places(all)
	}
	equal(t, "viewpoints", views("prod/account.hcl"), "prod/eu/app/terragrunt.hcl", "prod/us/app/terragrunt.hcl")
	equal(t, "viewpoints of the other file", views("dev/account.hcl"), "dev/app/terragrunt.hcl")
	equal(t, "definition", defined(), "dev/account.hcl:2 name")
	if got := c.hoverText("prod/account.hcl", "local.na"); !strings.Contains(got, `local.name = "p"`) || !strings.Contains(got, "Seen from prod/eu/app:") {
		t.Errorf("hover: %s", got)
	}
	if got := c.hoverText("root.hcl", "account.locals.na"); !strings.Contains(got, `"d"`) {
		t.Errorf("hover in the root file: %s", got)
	}
	c.choose("root.hcl", c.uri("prod/us/app/terragrunt.hcl"))
	equal(t, "definition seen from prod", defined(), "prod/account.hcl:2 name")
	p := c.at("prod/account.hcl", "  na")
	p["newName"] = "new"
	if err := c.try("textDocument/rename", p, nil); err == nil || !strings.Contains(err.Error(), "root.hcl") {
		t.Errorf("a rename that would have to change the other file too: %v", err)
	}
	p = c.at("prod/account.hcl", "  lo")
	p["newName"] = "new"
	c.call("textDocument/rename", p, nil)
}
