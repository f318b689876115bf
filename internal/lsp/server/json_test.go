package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

const jsonFiles = `
-- vars.tf --
variable "size" {
  type        = number
  description = "The size."
  default     = 1
}
variable "name" {
  default = "n"
}
-- main.tf.json --
{
  "//": "a comment",
  "locals": {
    "label": "x-${var.name}",
    "odd": "é\"\u00e9${upper(\"a\")}${var.name}"
  },
  "resource": {
    "terraform_data": {
      "web": {
        "input": "${local.label}",
        "depends_on": ["terraform_data.other"]
      },
      "other": {"input": "${var.size}"}
    }
  },
  "module": {"app": {"source": "./m", "size": "${var.size + 1}"}},
  "output": {"o": {"value": "${module.app.made}"}}
}
-- web_override.tf.json --
{"resource": {"terraform_data": {"web": {"input": "over"}}}}
-- m/main.tf.json --
[
  {"variable": {"size": {"default": "${literal}"}}},
  {"output": {"made": {"value": "${var.size}"}}}
]
-- terraform.tfvars.json --
{"name": "prod"}
-- unit/terragrunt.hcl.json --
{
  "locals": {"env": "dev"},
  "include": {"root": {"path": "../root.hcl"}},
  "dependency": {"vpc": {"config_path": "../vpc"}},
  "terraform": {"source": "../m"},
  "inputs": {"size": "${local.env}", "id": "${dependency.vpc.outputs.made}"}
}
-- root.hcl --
-- vpc/terragrunt.hcl.json --
{"terraform": {"source": "../m"}}
`

// Names in JSON syntax have definitions, references, hover and hints, as those in native syntax.
func TestJSONNames(t *testing.T) {
	c := start(t, unpack(t, jsonFiles), nil)
	for _, x := range []struct{ name, before, want string }{
		{"main.tf.json", "x-${var.na", "vars.tf:6 name"},
		{"main.tf.json", `\"a\")}${var.na`, "vars.tf:6 name"},
		{"main.tf.json", `"${local.lab`, "main.tf.json:4 label"},
		{"main.tf.json", `"depends_on": ["terraform_data.oth`, "main.tf.json:13 other"},
		{"main.tf.json", `"source": "./m", "si`, "m/main.tf.json:2 size"},
		{"main.tf.json", "module.app.ma", "m/main.tf.json:3 made"},
		{"main.tf.json", "${module.ap", "main.tf.json:16 app"},
		{"terraform.tfvars.json", `{"na`, "vars.tf:6 name"},
		{"unit/terragrunt.hcl.json", "local.en", "unit/terragrunt.hcl.json:2 env"},
		{"unit/terragrunt.hcl.json", `"inputs": {"si`, "m/main.tf.json:2 size"},
		{"unit/terragrunt.hcl.json", "outputs.ma", "m/main.tf.json:3 made"},
		{"unit/terragrunt.hcl.json", "${dependency.vp", "unit/terragrunt.hcl.json:4 vpc"},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at(x.name, x.before), &got)
		equal(t, "definition behind "+x.before, c.places(got), x.want)
	}
	p := c.at("vars.tf", `variable "na`)
	p["context"] = map[string]any{"includeDeclaration": false}
	var refs []protocol.Location
	c.call("textDocument/references", p, &refs)
	equal(t, "references", c.places(refs), "main.tf.json:4 name", "main.tf.json:5 name", "terraform.tfvars.json:1 name")
	if got := c.hoverText("main.tf.json", `"${local.lab`); !strings.Contains(got, `"x-prod"`) {
		t.Errorf("hover at a local value: %s", got)
	}
	if got := c.hoverText("main.tf.json", "x-${var.na"); !strings.Contains(got, "`name`") || !strings.Contains(got, `"prod"`) {
		t.Errorf("hover at a variable: %s", got)
	}
	if got := c.hoverText("unit/terragrunt.hcl.json", `"inputs": {"si`); !strings.Contains(got, `"dev"`) {
		t.Errorf("hover at an input: %s", got)
	}
	if got := c.hintText("web_override.tf.json"); !strings.Contains(got, "overrides main.tf.json:10") {
		t.Errorf("hints of an override file: %s", got)
	}
	for _, name := range []string{"main.tf.json", "m/main.tf.json", "terraform.tfvars.json", "unit/terragrunt.hcl.json"} {
		for _, d := range c.diagnostics(name) {
			if strings.Contains(d, " 1 ") {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// A rename edits JSON files too, and adds moved blocks to them.
func TestJSONRename(t *testing.T) {
	c := start(t, unpack(t, jsonFiles), nil)
	rename := func(name, before, to string) {
		t.Helper()
		p := c.at(name, before)
		p["newName"] = to
		var e protocol.WorkspaceEdit
		c.call("textDocument/rename", p, &e)
		apply(t, &e)
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	}
	rename("vars.tf", `variable "na`, "called")
	rename("main.tf.json", `      "we`, "site")
	rename("main.tf.json", `${module.ap`, "core")
	rename("m/main.tf.json", `{"ma`, "built")
	text := map[string]string{}
	for _, name := range []string{"main.tf.json", "web_override.tf.json", "terraform.tfvars.json", "m/main.tf.json", "unit/terragrunt.hcl.json"} {
		raw, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var any any
		if err := json.Unmarshal(raw, &any); err != nil {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
		text[name] = string(raw)
	}
	for name, want := range map[string][]string{
		"main.tf.json": {
			`"x-${var.called}"`, `${upper(\"a\")}${var.called}`, `"site": {`, `"core": {"source"`, `${module.core.built}`,
			`{"from": "terraform_data.web", "to": "terraform_data.site"}`, `{"from": "module.app", "to": "module.core"}`,
		},
		"web_override.tf.json": {`"site"`}, "terraform.tfvars.json": {`"called"`}, "m/main.tf.json": {`"built"`}, "unit/terragrunt.hcl.json": {"outputs.built"},
	} {
		for _, w := range want {
			if !strings.Contains(text[name], w) {
				t.Errorf("%s does not contain %s:\n%s", name, w, text[name])
			}
		}
	}
	for _, d := range c.diagnostics("main.tf.json") {
		if strings.Contains(d, " 1 ") {
			t.Errorf("after the renames: %s\n%s", d, text["main.tf.json"])
		}
	}
}

// Completion in JSON syntax knows keys and references.
func TestJSONCompletion(t *testing.T) {
	c := start(t, unpack(t, jsonFiles), nil)
	complete := func(name, text string) string {
		t.Helper()
		before, _, _ := strings.Cut(text, "|")
		c.opened(name, strings.Replace(text, "|", "", 1))
		var r protocol.CompletionList
		c.call("textDocument/completion", c.position(name, []byte(strings.Replace(text, "|", "", 1)), len(before)), &r)
		c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
		var out []string
		for _, i := range r.Items {
			insert := i.InsertText
			if insert == "" {
				insert = i.Label
			}
			out = append(out, insert)
		}
		return " " + strings.Join(out, " ") + " "
	}
	for _, x := range []struct{ name, text, want string }{
		{"new.tf.json", `{"|`, " resource "},
		{"new.tf.json", `{ |`, ` "resource":  `},
		{"new.tf.json", `{"resource": {"|"}}`, " terraform_data "},
		{"new.tf.json", `{"resource": {"terraform_data": {"x": {"input": 1, "|"}}}}`, " triggers_replace "},
		{"new.tf.json", `{"resource": {"terraform_data": {"x": {"lifecycle": {"|`, " prevent_destroy "},
		{"new.tf.json", `{"module": {"b": {"source": "./m", "|"}}}`, " size "},
		{"new.tf.json", `{"locals": {"x": "a${var.|"}}`, " size "},
		{"new.tf.json", `{"locals": {"x": "${module.app.|}"}}`, " made "},
		{"new.tf.json", `{"output": {"x": {"value": 1, "depends_on": ["terraform_data.|"]}}}`, " web "},
		{"new.tfvars.json", `{"|`, " size "},
		{"unit/terragrunt.hcl.json", `{"|`, " dependency "},
		{"unit/terragrunt.hcl.json", `{"dependency": {"vpc": {"|`, " config_path "},
		{"unit/terragrunt.hcl.json", `{"terraform": {"source": "../m"}, "inputs": {"|"}}`, " size "},
		{"unit/terragrunt.hcl.json", `{"locals": {"env": 1, "x": "${local.|"}}`, " env "},
	} {
		if got := complete(x.name, x.text); !strings.Contains(got, x.want) {
			t.Errorf("completion in %s: %s", x.text, got)
		}
	}
}
