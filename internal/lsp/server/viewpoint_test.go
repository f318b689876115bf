package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const viewpointFiles = `
-- root.hcl --
locals {
  env  = basename(get_terragrunt_dir())
  same = "x"
}
inputs = {
  env  = local.env
  same = local.same
}
-- a/terragrunt.hcl --
include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../m"
}
-- b/terragrunt.hcl --
include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../m"
}
-- m/main.tf --
variable "env" {}
variable "same" {}
output "o" {
  value = var.env
}
-- own/terragrunt.hcl --
inputs = {
  x = 1
}
-- own/main.tf --
variable "x" {}
`

// The units of a module and of a shared file are listed, with the value in each.
func TestViewpoints(t *testing.T) {
	c := start(t, unpack(t, viewpointFiles), nil)
	for _, name := range []string{"root.hcl", "m/main.tf", "own/main.tf"} {
		c.open(name)
	}
	views := func(name string) string {
		var r viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r)
		var all []string
		for _, u := range r.All {
			all = append(all, c.name(u))
		}
		current := "none"
		if r.Current != "" {
			current = c.name(r.Current)
		}
		return current + " of " + strings.Join(all, " ")
	}
	choose := func(name, unit string) {
		c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri(name), c.uri(unit)}}, nil)
	}
	equal(t, "root.hcl", []string{views("root.hcl")}, "a/terragrunt.hcl of a/terragrunt.hcl b/terragrunt.hcl")
	equal(t, "a module", []string{views("m/main.tf")}, "a/terragrunt.hcl of a/terragrunt.hcl b/terragrunt.hcl")
	if got := c.hoverText("m/main.tf", "var.en"); !strings.Contains(got, `"a"`) || !strings.Contains(got, "Seen from a:") {
		t.Errorf("hover in a module seen from the nearest unit: %s", got)
	}
	equal(t, "a module with a unit", []string{views("own/main.tf")}, "own/terragrunt.hcl of own/terragrunt.hcl")
	choose("m/main.tf", "m")
	equal(t, "a module alone", []string{views("m/main.tf")}, "none of a/terragrunt.hcl b/terragrunt.hcl")
	if got := c.hoverText("m/main.tf", "var.en"); strings.Contains(got, `"a"`) || strings.Contains(got, "Seen from") {
		t.Errorf("hover in a module seen alone: %s", got)
	}
	choose("own/main.tf", "own")
	equal(t, "a module with a unit alone", []string{views("own/main.tf")}, "none of own/terragrunt.hcl")
	choose("m/main.tf", "b/terragrunt.hcl")
	equal(t, "the chosen unit", []string{views("m/main.tf")}, "b/terragrunt.hcl of a/terragrunt.hcl b/terragrunt.hcl")
	if got := c.hoverText("m/main.tf", "var.en"); !strings.Contains(got, `"b"`) {
		t.Errorf("hover in a module seen from b: %s", got)
	}
	choose("root.hcl", "b/terragrunt.hcl")
	if got := c.hoverText("root.hcl", "env  = local.en"); !strings.Contains(got, `"b"`) {
		t.Errorf("hover at a local value of root.hcl seen from b: %s", got)
	}
	values := func(name, before string) (out []string) {
		var r valuesResult
		c.call("terrace/values", c.at(name, before), &r)
		for _, v := range r.Values {
			line := r.Address + " " + v.Value + ":"
			for _, u := range v.Units {
				line += " " + c.name(u)
			}
			out = append(out, line)
		}
		return out
	}
	equal(t, "different values", values("root.hcl", "local.en"), `local.env "a": a/terragrunt.hcl`, `local.env "b": b/terragrunt.hcl`)
	equal(t, "equal values", values("root.hcl", "local.sam"), `local.same "x": a/terragrunt.hcl b/terragrunt.hcl`)
	equal(t, "a declaration", values("root.hcl", "  sam"), `local.same "x": a/terragrunt.hcl b/terragrunt.hcl`)
	equal(t, "a variable of a module", values("m/main.tf", "var.en"), `var.env "a": a/terragrunt.hcl`, `var.env "b": b/terragrunt.hcl`)
	equal(t, "no name", values("root.hcl", "locals "))
}

// The viewpoint of a file changes when a unit that reads the file appears or disappears.
func TestViewpointAfterChanges(t *testing.T) {
	c := start(t, unpack(t, viewpointFiles), nil)
	c.open("root.hcl")
	seen := func(want string) {
		t.Helper()
		if got := c.hoverText("root.hcl", "env  = local.en"); !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("not seen from %s: %s", want, got)
		}
	}
	changed := func(dir string) {
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": c.uri(dir + "/terragrunt.hcl"), "type": 1}}})
	}
	seen("a")
	seen("a")
	unit, err := os.ReadFile(filepath.Join(c.dir, "b", "terragrunt.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.dir, "0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "terragrunt.hcl"), unit, 0o644); err != nil {
		t.Fatal(err)
	}
	changed("0")
	seen("0")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	changed("0")
	seen("a")
	c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri("root.hcl"), c.uri("b/terragrunt.hcl")}}, nil)
	seen("b")
	c.opened("b/terragrunt.hcl", "inputs = {}\n") // no longer includes root.hcl
	seen("a")
}

// The names of a unit file are not those of the module in the same directory.
func TestNamesOfUnits(t *testing.T) {
	c := start(t, unpack(t, "-- terragrunt.hcl --\nlocals {\n  of_unit = 1\n}\n-- main.tf --\nlocals {\n  of_module = 1\n}\noutput \"o\" {\n  value = local.\n}\n"), nil)
	c.open("main.tf")
	var r any
	c.call("textDocument/completion", c.at("main.tf", "= local."), &r)
	if got := asJSON(r); !strings.Contains(got, "of_module") || strings.Contains(got, "of_unit") {
		t.Errorf("completion: %s", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct{ dir, file string }{
		{"/a/b/", "/a/b/terragrunt.hcl"}, {"/a/b/", "/a/b/c/d/terragrunt.hcl"}, {"/a/b/", "/a/terragrunt.hcl"},
		{"/a/b/", "/a/bc/terragrunt.hcl"}, {"/a/bc/", "/a/b/terragrunt.hcl"}, {"/", "/terragrunt.hcl"}, {"/a/", "/b/terragrunt.hcl"},
	} {
		dir, file := filepath.FromSlash(c.dir), filepath.FromSlash(c.file)
		rel, err := filepath.Rel(filepath.Clean(dir), file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := distance(dir, file), strings.Count(filepath.ToSlash(rel), "/"); got != want {
			t.Errorf("from %s to %s: %d, want %d", dir, file, got, want)
		}
	}
}

// A module that others call is seen from the units and root modules that lead to it.
func TestViewpointsOfCalledModules(t *testing.T) {
	c := start(t, unpack(t, `
-- inner/main.tf --
variable "text" {}
locals {
  part = upper(var.text)
}
-- middle/main.tf --
variable "name" {}
module "inner" {
  source = "../inner"
  text   = "m-${var.name}"
}
-- middle/examples/one/main.tf --
module "this" {
  source = "../.."
  name   = "example"
}
-- root/main.tf --
variable "name" {
  default = "r"
}
module "a" {
  source = "../middle"
  name   = var.name
}
module "b" {
  for_each = toset(["x", "y"])
  source   = "../middle"
  name     = each.key
}
variable "some" {
  type = set(string)
}
module "c" {
  for_each = var.some
  source   = "../middle"
  name     = each.key
}
-- unit/terragrunt.hcl --
terraform {
  source = "..//middle"
}
inputs = {
  name = "u"
}
-- inner/wrapper/main.tf --
module "inner" {
  for_each = {}
  source   = "../"
  text     = each.key
}
-- self/main.tf --
module "self" {
  source = "./"
}
-- called/main.tf --
terraform {
  backend "local" {}
}
-- called/tests/all/main.tf --
module "this" {
  source = "../.."
}
`), nil)
	views := func(name string) (current, standard string, all []string) {
		t.Helper()
		var r viewpointsResult
		c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}, &r)
		short := func(uri string) string {
			v := viewOf(uri)
			if v.at == "" {
				return ""
			}
			rel, _ := filepath.Rel(c.dir, v.at)
			if rel = filepath.ToSlash(rel); v.calls != "" {
				rel += "#" + v.calls
			}
			return rel
		}
		for _, u := range r.All {
			all = append(all, short(u))
		}
		return short(r.Current), short(r.Default), all
	}
	choose := func(at string) {
		t.Helper()
		dir, calls, _ := strings.Cut(at, "#")
		c.choose("inner/main.tf", view{filepath.Join(c.dir, dir), calls}.uri())
	}
	c.open("inner/main.tf")
	current, standard, all := views("inner/main.tf")
	equal(t, "the views of a called module", all, "root#module.a.module.inner", `root#module.b["x"].module.inner`, `root#module.b["y"].module.inner`, `root#module.c.module.inner`, "unit/terragrunt.hcl#module.inner", "middle/examples/one#module.this.module.inner")
	equal(t, "the nearest view", []string{current, standard}, "root#module.a.module.inner", "root#module.a.module.inner")
	if got := c.hoverText("inner/main.tf", "  pa"); !strings.Contains(got, `"M-R"`) || !strings.Contains(got, "Seen from root module.a.module.inner:") {
		t.Errorf("the module is not seen from the nearest root module: %s", got)
	}
	choose("inner")
	current, standard, _ = views("inner/main.tf")
	equal(t, "the module alone", []string{current, standard}, "", "root#module.a.module.inner")
	if got := c.hoverText("inner/main.tf", "  pa"); strings.Contains(got, "M-") || strings.Contains(got, "Seen") {
		t.Errorf("the module is not seen alone: %s", got)
	}
	for at, want := range map[string]string{"root#module.a.module.inner": `"M-R"`, `root#module.b["x"].module.inner`: `"M-X"`, `root#module.b["y"].module.inner`: `"M-Y"`, "root#module.c.module.inner": "not known", "unit/terragrunt.hcl#module.inner": `"M-U"`, "middle/examples/one#module.this.module.inner": `"M-EXAMPLE"`} {
		choose(at)
		dir, calls, _ := strings.Cut(strings.Replace(at, "/terragrunt.hcl", "", 1), "#")
		if got := c.hoverText("inner/main.tf", "  pa"); !strings.Contains(got, want) || !strings.Contains(got, "Seen from "+dir+" "+calls+":") {
			t.Errorf("seen from %s: %s", at, got)
		}
		if got, _, _ := views("inner/main.tf"); got != at {
			t.Errorf("the view is %s, not %s", got, at)
		}
	}
	var r valuesResult
	c.call("terrace/values", c.at("inner/main.tf", "upper(var.te"), &r)
	var values []string
	for _, v := range r.Values {
		values = append(values, v.Value)
	}
	slices.Sort(values)
	equal(t, "the values in all views", values, "", `"m-example"`, `"m-r"`, `"m-u"`, `"m-x"`, `"m-y"`)
	_, _, all = views("self/main.tf")
	equal(t, "a module that calls itself", all)
	// A root module has values of its own, although a test calls it.
	current, standard, all = views("called/main.tf")
	equal(t, "a root module that another calls", append([]string{current, standard}, all...), "", "", "called/tests/all#module.this")

	// The chosen instance disappears, then the chosen call, then the root module.
	now := func() (string, string) {
		current, _, _ := views("inner/main.tf")
		got := c.hoverText("inner/main.tf", "  pa")
		for _, want := range []string{`"M-R"`, `"M-X"`, `"M-U"`, `"M-N"`} {
			if strings.Contains(got, want) {
				return current, want
			}
		}
		return current, got
	}
	text := c.open("root/main.tf")
	edit := func(old, new string) {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		text = strings.Replace(text, old, new, 1)
		c.change("root/main.tf", text)
	}
	choose(`root#module.b["y"].module.inner`)
	edit(`["x", "y"]`, `["x"]`)
	current, value := now()
	equal(t, "another instance", []string{current, value}, `root#module.b["x"].module.inner`, `"M-X"`)
	edit(`["x"]`, `[]`)
	current, value = now()
	equal(t, "no instance", []string{current, value}, "root#module.a.module.inner", `"M-R"`)
	edit(`[]`, `["x"]`)
	current, value = now()
	equal(t, "the choice counts again", []string{current, value}, `root#module.b["x"].module.inner`, `"M-X"`)
	edit(`module "b"`, `module "n"`)
	current, value = now()
	equal(t, "another call", []string{current, value}, "root#module.a.module.inner", `"M-R"`)
	edit("source = \"../middle\"\n  name   = var.name", "source = \"../self\"")
	current, value = now()
	equal(t, "another source", []string{current}, "root#module.c.module.inner")
	if !strings.Contains(value, "not known") {
		t.Errorf("seen from a call with unknown instances: %s", value)
	}
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri("root/main.tf")}})
	if err := os.RemoveAll(filepath.Join(c.dir, "root")); err != nil {
		t.Fatal(err)
	}
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": c.uri("root/main.tf"), "type": 3}}})
	current, value = now()
	equal(t, "another directory", []string{current, value}, "unit/terragrunt.hcl#module.inner", `"M-U"`)
}

// The rules and validations of a called module are checked with the values from its viewpoint.
func TestDiagnosticsFromViewpoint(t *testing.T) {
	c := start(t, unpack(t, `
-- m/main.tf --
variable "size" {
  type = number
  validation {
    condition     = var.size < 5
    error_message = "The size is too large."
  }
}
resource "terraform_data" "it" {
  input = var.size > 2 ? "large" : "small"
}
-- near/main.tf --
module "m" {
  source = "../m"
  size   = 9
}
-- other/far/terragrunt.hcl --
terraform {
  source = "../../m"
}
inputs = {
  size = 3
}
-- size.rules.hcl --
rule "small" {
  resource = "terraform_data"
  enforce {
    condition     = config.input == "small"
    error_message = "The size is not small."
  }
}
-- .git/HEAD --
ref: refs/heads/main
`), nil)
	c.open("m/main.tf")
	from := func(want string) {
		t.Helper()
		c.wait("m/main.tf", func(all []string) bool { return strings.Join(all, "\n") == want })
		equal(t, "pulled diagnostics", c.diagnostics("m/main.tf"), want)
	}
	const large = `9 1 small The size is not small.
other/far terraform_data.it.input [size.rules.hcl:1 the rule]`
	const invalid = `4 3 eval/condition Seen from near: Invalid value for variable: The size is too large.

This was checked by the validation rule at ../m/main.tf:3,3-13. [main.tf:3 the value is given here]
9 1 small The size is not small.
module.m.terraform_data.it.input [size.rules.hcl:1 the rule]`
	from(invalid)
	c.choose("m/main.tf", c.uri("other/far/terragrunt.hcl"))
	from(large)
	c.choose("m/main.tf", c.uri("m"))
	from("")
	c.choose("m/main.tf", "")
	from(invalid)
}
