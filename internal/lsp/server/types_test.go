package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// completed returns the items behind the mark "|" in the text of a file, first ones first.
func (c *client) completed(name, text string) []protocol.CompletionItem {
	c.t.Helper()
	before, after, _ := strings.Cut(text, "|")
	c.opened(name, before+after)
	defer c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
	var l protocol.CompletionList
	c.call("textDocument/completion", c.position(name, []byte(before+after), len(before)), &l)
	return l.Items
}

// References whose types fit the argument are first, and none is hidden.
func TestCompletionByType(t *testing.T) {
	c := start(t, unpack(t, `
-- names.tf --
variable "a_list" { type = list(string) }
variable "b_any" {}
variable "c_object" { type = object({ name = string, on = bool }) }
variable "d_number" { type = number }
variable "e_string" { type = string }
variable "f_numbers" { type = list(number) }
locals {
  a_tuple = ["x", var.e_string]
  b_text  = "x-${var.d_number}"
  c_sum   = var.d_number + 1
  d_list  = var.a_list
  e_upper = upper(var.e_string)
  f_loop  = local.f_loop
  g_out   = module.m.z_text
  h_flag  = var.c_object.on
}
-- call.tf --
module "m" {
  source = "./m"
}
-- m/main.tf --
variable "names" { type = list(string) }
variable "count_of" { type = number }
variable "tags" { type = map(string) }
output "a_numbers" { value = [1, 2] }
output "z_text" { value = upper("x") }
-- app/terragrunt.hcl --
terraform { source = "../m" }
dependency "other" { config_path = "../other" }
-- other/terragrunt.hcl --
terraform { source = "../m" }
`), nil)
	const call = "module \"x\" {\n  source = \"./m\"\n  "
	for _, x := range []struct{ name, text, want string }{
		{"new.tf", call + "names = var.|\n}\n", "a_list f_numbers b_any c_object d_number e_string"},
		{"new.tf", call + "names = [var.|]\n}\n", "e_string d_number a_list b_any c_object f_numbers"},
		{"new.tf", call + "count_of = var.|\n}\n", "d_number b_any e_string f_numbers a_list c_object"},
		{"new.tf", call + "tags = {\n    x = var.|\n  }\n}\n", "e_string d_number a_list b_any c_object f_numbers"},
		{"new.tf", call + "names = local.|\n}\n", "d_list a_tuple f_loop b_text c_sum e_upper g_out h_flag"},
		{"new.tf", call + "names = split(\",\", local.|)\n}\n", "b_text e_upper g_out c_sum h_flag a_tuple d_list f_loop"},
		{"new.tf", call + "names = module.m.|\n}\n", "a_numbers z_text"},
		{"new.tf", call + "tags = { x = \"${module.m.|}\" }\n}\n", "z_text a_numbers"},
		{"new.tf", call + "count_of = var.c_object.|\n}\n", "name on"},
		{"new.tf", call + "tags = { x = var.c_object.|}\n}\n", "name on"},
		{"new.tf", "output \"o\" {\n  value = var.|\n}\n", "a_list b_any c_object d_number e_string f_numbers"},
		{"app/terragrunt.hcl", "terraform {\n  source = \"../m\"\n}\nlocals {\n  a = [\"x\"]\n  b = 1\n}\ninputs = {\n  count_of = local.|\n}\n", "b a"},
		{"app/terragrunt.hcl", "terraform {\n  source = \"../m\"\n}\ndependency \"other\" {\n  config_path = \"../other\"\n}\ninputs = {\n  tags = { x = dependency.other.outputs.|\n}\n}\n", "z_text a_numbers"},
	} {
		var got []string
		for _, i := range c.completed(x.name, x.text) {
			got = append(got, i.Label)
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s\n%q\nwant %s", x.text, got, x.want)
		}
	}
	details := map[string]string{}
	for _, i := range c.completed("new.tf", "output \"o\" {\n  value = local.|\n}\n") {
		details[i.Label] = i.Detail
	}
	for name, want := range map[string]string{"c_sum": "number, names.tf", "g_out": "string, names.tf", "d_list": "list(string), names.tf", "f_loop": "names.tf"} {
		if details[name] != want {
			t.Errorf("the detail of %s is %q", name, details[name])
		}
	}
	items := c.completed("new.tf", call+"names = |\n}\n")
	at := func(label string) int {
		return slices.IndexFunc(items, func(i protocol.CompletionItem) bool { return i.Label == label })
	}
	if at("upper") < at("split") || at("upper") < at("var") || at("split") < 0 || at("var") < 0 {
		t.Errorf("functions: split is at %d, upper at %d, var at %d", at("split"), at("upper"), at("var"))
	}
}
