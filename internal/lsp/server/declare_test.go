package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A variable and an output can be declared in a called module. An output needs exactly one value that
// matches its name.
func TestDeclareThroughModule(t *testing.T) {
	c := start(t, unpack(t, `
-- main.tf --
module "m" {
  source = "./m"
  tint   = 1
}
output "o" {
  value = module.m.NAME
}
-- m/main.tf --
variable "given" {}
variable "twice" {}
locals {
  name  = "x"
  twice = 1
}
resource "terraform_data" "web" {}
resource "terraform_data" "many" {
  count = 2
}
-- m/outputs.tf --
output "known" {
  value = 1
}`), nil)
	text := c.open("main.tf")
	actions := func(name, before string) (out []protocol.CodeAction) {
		next := strings.Replace(text, "NAME", name, 1)
		c.change("main.tf", next)
		at := document.New([]byte(next)).Position(strings.Index(next, before)+len(before), document.UTF16)
		c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}, "range": protocol.Range{Start: at, End: at}, "context": map[string]any{"diagnostics": []any{}}}, &out)
		return slices.DeleteFunc(out, func(a protocol.CodeAction) bool { return !strings.HasPrefix(a.Title, "Declare") })
	}
	for _, x := range []struct{ name, value string }{
		{"name", "local.name"},
		{"given", "var.given"},
		{"web", "terraform_data.web"},
		{"web_id", "terraform_data.web.id"},
		{"web_none", ""}, // no such attribute
		{"many_id", ""},  // of several instances
		{"data_id", "terraform_data.web.id"},
		{"twice", ""}, // a variable and a local value
		{"other", ""},
		{"known", ""}, // declared
	} {
		got := actions(x.name, "module.m."+x.name)
		if x.value == "" {
			if len(got) != 0 {
				t.Errorf("%s: %s", x.name, asJSON(got))
			}
			continue
		}
		want := "Declare output \"" + x.name + "\" as " + x.value + " in outputs.tf"
		if len(got) != 1 || got[0].Title != want || len(got[0].Edit.Changes[c.uri("m/outputs.tf")]) != 1 {
			t.Errorf("%s: %s", x.name, asJSON(got))
		}
	}
	variable, output := actions("web_id", "  ti"), actions("web_id", "module.m.we")
	if len(variable) != 1 || len(variable[0].Edit.Changes[c.uri("m/main.tf")]) != 1 || len(output) != 1 {
		t.Fatalf("%s %s", asJSON(variable), asJSON(output))
	}
	apply(t, variable[0].Edit)
	apply(t, output[0].Edit)
	got, err := os.ReadFile(filepath.Join(c.dir, "m", "outputs.tf"))
	if want := "output \"known\" {\n  value = 1\n}\n\noutput \"web_id\" {\n  value = terraform_data.web.id\n}\n"; err != nil || string(got) != want {
		t.Errorf("outputs.tf:\n%s", got)
	}
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	for _, d := range c.diagnostics("main.tf") {
		if strings.Contains(d, "web_id") || strings.Contains(d, "tint") {
			t.Errorf("after both: %s", d)
		}
	}
}
