package server

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// Values of wrong types and undeclared names in variable files are reported, in both syntaxes.
func TestVariableFiles(t *testing.T) {
	c := start(t, unpack(t, `
-- main.tf --
variable "size" {
  type = number
}
variable "tags" {
  type = object({ team = string, cost = optional(number) })
}
variable "token" {
  sensitive = true
  nullable  = false
}
-- good.tfvars --
size  = "3"
tags  = { team = "core" }
token = "x"
-- bad.tfvars --
size  = "many"
tags  = { cost = 1 }
token = null
sise  = 1
-- bad.tfvars.json --
{"size": "many", "tags": {"cost": 1}, "sise": 1}
-- reference.tfvars --
size = var.size
-- elsewhere/bad.tfvars --
anything = 1
`), nil)
	for name, want := range map[string][]string{
		"good.tfvars": nil, "elsewhere/bad.tfvars": nil, "reference.tfvars": {"Variables not allowed"},
		"bad.tfvars":      {`"size" is not suitable: a number is required`, `"tags" is not suitable`, `"token" may not be set to null`, `does not declare a variable named "sise". Did you mean "size"?`},
		"bad.tfvars.json": {`"size" is not suitable: a number is required`, `"tags" is not suitable`, `does not declare a variable named "sise"`},
	} {
		c.open(name)
		got := c.diagnostics(name)
		if len(got) != len(want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(got, "\n"), w) {
				t.Errorf("%s: %q does not contain %s", name, got, w)
			}
		}
	}
	at := c.at("bad.tfvars", "\nsi")["position"]
	var actions []protocol.CodeAction
	c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("bad.tfvars")}, "range": map[string]any{"start": at, "end": at}, "context": map[string]any{"diagnostics": []any{}}}, &actions)
	if !strings.Contains(asJSON(actions), `Change \"sise\" to \"size\"`) {
		t.Errorf("actions: %s", asJSON(actions))
	}
}

// A cycle of units is an error in each of them, also through a file that a unit merges, and while it is typed.
func TestCyclesOfUnits(t *testing.T) {
	unit := func(name, text string) string { return "-- " + name + "/terragrunt.hcl --\n" + text }
	to := func(label, path string) string {
		return "dependency \"" + label + "\" {\n  config_path = \"" + path + "\"\n}\n"
	}
	c := start(t, unpack(t, unit("a", to("x", "../b"))+unit("b", to("y", "../c"))+unit("c", "include \"deps\" {\n  path = \"../deps.hcl\"\n}\n")+
		unit("self", to("me", "."))+unit("off", "dependency \"a\" {\n  config_path = \"../on\"\n  enabled     = false\n}\n")+unit("on", to("off", "../off"))+
		"-- deps.hcl --\n"+to("z", "../a")), nil)
	cycle := func(name string) string {
		for _, d := range c.diagnostics(name + "/terragrunt.hcl") {
			if strings.Contains(d, "in a cycle") {
				return d
			}
		}
		return ""
	}
	for name, want := range map[string]string{"a": "a → b → c → a", "b": "b → c → a → b", "c": "c → a → b → c", "self": "self → self", "off": "", "on": ""} {
		c.open(name + "/terragrunt.hcl")
		if got := cycle(name); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	c.change("b/terragrunt.hcl", "")
	if got := cycle("a"); got != "" {
		t.Errorf("after an edit: %q", got)
	}
}
