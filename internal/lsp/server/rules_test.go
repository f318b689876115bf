package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
)

const ruleFiles = `
-- .git/HEAD --
ref: refs/heads/main
-- all.rules.hcl --
rule "small" {
  resource = "terraform_data"
  enforce {
    condition     = config.input.size <= 10
    error_message = "${meta.address} is too large."
  }
}
rule "region" {
  unit = "*"
  level = "warning"
  enforce {
    condition     = attrs.region == "eu"
    error_message = "The region is ${attrs.region}."
  }
}
-- exceptions.rules.hcl --
exception "small" {
  address = "terraform_data.excused"
  reason  = "It is large."
}
-- module/main.tf --
variable "size" {}
resource "terraform_data" "web" {
  input = { size = var.size }
}
resource "terraform_data" "excused" {
  input = { size = 99 }
}
-- module/terraform.tfvars --
size = 20
-- service/main.tf --
variable "size" {}
variable "region" {}
resource "terraform_data" "web" {
  input = { size = var.size }
}
-- root.hcl --
locals {
  region = "us"
}
inputs = {
  region = local.region
}
-- app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
terraform {
  source = "../service"
}
inputs = {
  size = 30
}
`

// A failed rule is shown where the value was set, on unsaved text, in the file of the module, of the
// variables, of the unit or of an included file.
func TestRulesOnValues(t *testing.T) {
	c := start(t, unpack(t, ruleFiles), nil)
	equal(t, "a variable file", c.diagnostics("module/terraform.tfvars"), "1 1 small terraform_data.web is too large.\nterraform_data.web.input.size [all.rules.hcl:1 the rule]")
	equal(t, "a module", c.diagnostics("module/main.tf"))
	equal(t, "an included file, seen from a unit", c.diagnostics("root.hcl"), "2 2 region The region is us.\napp.region [all.rules.hcl:8 the rule]")
	text := c.open("app/terragrunt.hcl")
	seen := func(want string) func([]string) bool {
		return func(all []string) bool {
			if want == "" {
				return len(all) == 0
			}
			return strings.Contains(strings.Join(all, "\n"), want)
		}
	}
	c.wait("app/terragrunt.hcl", seen("8 1 small terraform_data.web is too large."))
	c.change("app/terragrunt.hcl", strings.Replace(text, "30", "3", 1))
	c.wait("app/terragrunt.hcl", seen(""))
	c.change("app/terragrunt.hcl", "# a line above\n"+strings.Replace(text, "30", "31", 1))
	c.wait("app/terragrunt.hcl", seen("9 1 small terraform_data.web is too large."))
	rules := c.open("all.rules.hcl")
	c.change("all.rules.hcl", strings.Replace(rules, "<= 10", "<= 50", 1))
	c.wait("app/terragrunt.hcl", seen(""))
	equal(t, "a file with rules", c.diagnostics("exceptions.rules.hcl"))
}

// Without a change, a rule is not checked again; with one, the findings are there within the budget of
// the workspace, also if a computer is busy.
func TestRulesInTime(t *testing.T) {
	c := start(t, unpack(t, ruleFiles), nil)
	text := c.open("module/main.tf")
	c.diagnostics("module/terraform.tfvars")
	best := time.Hour
	for i := range 10 {
		c.change("module/main.tf", text+strings.Repeat("# edited\n", i+1))
		at := time.Now()
		if got := c.diagnostics("module/terraform.tfvars"); len(got) != 1 {
			t.Fatalf("diagnostics: %q", got)
		}
		best = min(best, time.Since(at))
	}
	if best > 300*time.Millisecond {
		t.Errorf("the fastest check took %s", best)
	}
}

// Local values of included and read files have their values as the unit sees them, also if the unit does
// not expose them.
func TestLocalsOfOtherFiles(t *testing.T) {
	c := start(t, unpack(t, `
-- root.hcl --
locals {
  common = read_terragrunt_config(find_in_parent_folders("common.hcl"))
  name   = basename(get_original_terragrunt_dir())
  both   = "${local.name}-${local.common.locals.word}"
  secret_token = "hidden-${local.kind}"
  kind         = "k"
}
inputs = {
  both  = local.both
  token = local.secret_token
}
-- common.hcl --
locals {
  word = "w"
  long = "${local.word}${local.word}"
}
-- shared.hcl --
locals {
  kind = "shared"
}
inputs = {
  kind = local.kind
}
-- live/app/terragrunt.hcl --
include {
  path = find_in_parent_folders("root.hcl")
}
-- live/shared/terragrunt.hcl --
import "shared" {
  config_path = "../../shared.hcl"
}
-- live/app/main.tf --
variable "both" {}
variable "kind" {}
variable "token" {
  sensitive = true
}
-- live/db/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
`), nil)
	for _, x := range []struct{ name, before, want string }{
		{"root.hcl", "  na", `"app"`},
		{"root.hcl", "${local.na", `"app"`},
		{"root.hcl", "  bo", `"app-w"`},
		{"root.hcl", "both  = local.bo", `"app-w"`},
		{"root.hcl", "local.common.locals.wo", `"w"`},
		{"common.hcl", "  lo", `"ww"`},
		{"common.hcl", "${local.wo", `"w"`},
		{"shared.hcl", "  ki", `"shared"`},
		{"shared.hcl", "kind = local.ki", `"shared"`},
	} {
		if got := c.hoverText(x.name, x.before); !strings.Contains(got, x.want) {
			t.Errorf("hover behind %q in %s: %s", x.before, x.name, got)
		}
	}
	c.call("workspace/executeCommand", map[string]any{"command": "terrace.viewpoint", "arguments": []string{c.uri("root.hcl"), c.uri("live/db/terragrunt.hcl")}}, nil)
	if got := c.hoverText("root.hcl", "  bo"); !strings.Contains(got, `"db-w"`) {
		t.Errorf("hover seen from another unit: %s", got)
	}
	for _, before := range []string{"  secret_to", "token = local.secret_to"} {
		if got := c.hoverText("root.hcl", before); strings.Contains(got, "hidden-") {
			t.Errorf("hover behind %q shows a secret: %s", before, got)
		}
	}
}

// Environment files hold several units.
func TestEnvironmentFiles(t *testing.T) {
	c := start(t, unpack(t, `
-- env.hcl --
locals {
  name = "prod"
}
module "vpc" {
  source = "./vpc"
  inputs = {
    name = local.name
  }
}
module "app" {
  source = "./app"
  inputs = {
    size   = 3
    vpc_id = module.vpc.outputs.id
  }
}
-- vpc/main.tf --
variable "name" {}
output "id" {
  value = var.name
}
-- app/main.tf --
variable "size" {
  type = number
}
variable "vpc_id" {}
`), nil)
	equal(t, "diagnostics", c.diagnostics("env.hcl"))
	for _, x := range []struct{ before, want string }{
		{"    na", `"prod"`},
		{"    si", "3"},
		{"  na", `"prod"`},
	} {
		if got := c.hoverText("env.hcl", x.before); !strings.Contains(got, x.want) {
			t.Errorf("hover behind %q: %s", x.before, got)
		}
	}
	for _, x := range []struct{ before, want string }{
		{"module.vpc.outputs.i", "vpc/main.tf:2 id"},
		{"module.vp", "env.hcl:4 vpc"},
		{"    si", "app/main.tf:1 size"},
	} {
		var got []protocol.Location
		c.call("textDocument/definition", c.at("env.hcl", x.before), &got)
		equal(t, "definition behind "+x.before, c.places(got), x.want)
	}
	text := c.open("env.hcl")
	for _, x := range []struct{ from, to, want string }{
		{"size   = 3", `size   = "many"`, "number"},
		{"outputs.id", "outputs.ix", "id"},
		{"    size   = 3\n", "", "size"},
		{"local.name", "local.nam", "no local value named"},
		{"vpc_id", "vpc_ix", "vpc_ix"},
	} {
		c.change("env.hcl", strings.Replace(text, x.from, x.to, 1))
		if got := strings.Join(c.diagnostics("env.hcl"), "\n"); !strings.Contains(got, x.want) {
			t.Errorf("diagnostics with %q: %s", x.to, got)
		}
	}
}

// Commands that run programs ask for trust, and refuse without it.
func TestTrustOfCommands(t *testing.T) {
	for name, x := range map[string]struct {
		answer  any
		options map[string]any
		asked   int
		err     string
	}{
		"refused": {answer: map[string]any{"title": "Cancel"}, asked: 1, err: "not trusted"},
		"closed":  {asked: 1, err: "not trusted"},
		"granted": {answer: map[string]any{"title": "Trust"}, asked: 1},
		"trusted": {options: map[string]any{"trust": true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := unpack(t, untrustedFiles)
			asked := 0
			c := startServer(t, dir, nil, x.options, func(method string, params json.RawMessage) any {
				if method == "window/showMessageRequest" {
					if asked++; !strings.Contains(string(params), dir) {
						t.Errorf("the question does not name the directory: %s", params)
					}
					return x.answer
				}
				return nil
			}, func(o *Options) {
				o.Affected = fakeAffected
			})
			for range 2 {
				var got string
				err := c.try("workspace/executeCommand", map[string]any{"command": "terrace.affected", "arguments": []string{c.uri("app/main.tf")}}, &got)
				switch {
				case x.err == "" && (err != nil || got != filepath.Join(dir, "app")):
					t.Errorf("%q, %v", got, err)
				case x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)):
					t.Errorf("the error is %v", err)
				}
				if x.err != "" {
					break
				}
			}
			if asked != x.asked {
				t.Errorf("asked %d times, not %d", asked, x.asked)
			}
		})
	}
}

// A client whose settings do not come from the repository can trust the commands alone: no function of a unit
// runs a program then.
func TestTrustOfCommandsAlone(t *testing.T) {
	for _, x := range []struct {
		name, option, section string
		runs                  bool
	}{
		{"trusted", "configuration", `{"trust": false, "trustCommands": true}`, true},
		{"not trusted", "configuration", `{"trust": false}`, false},
		{"settings of a repository", "", `{"trustCommands": true}`, false},
		{"settings of a repository without trust", "", `{"trust": false, "trustCommands": true}`, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := unpack(t, untrustedFiles)
			answered := make(chan bool, 8)
			options := map[string]any{}
			if x.option != "" {
				options["trust"] = x.option
			}
			c := startServer(t, dir, map[string]any{"workspace": map[string]any{"configuration": true}}, options, func(method string, _ json.RawMessage) any {
				if method != "workspace/configuration" {
					return nil
				}
				defer func() { answered <- true }()
				return []json.RawMessage{json.RawMessage("{}"), json.RawMessage(x.section)}
			}, func(o *Options) { o.Affected = fakeAffected })
			<-answered
			c.open("app/terragrunt.hcl")
			var err error
			for range 200 { // the server has the answer a moment later
				err = c.try("workspace/executeCommand", map[string]any{"command": "terrace.affected", "arguments": []string{c.uri("app/main.tf")}}, nil)
				if x.runs == (err == nil) && (x.runs || strings.Contains(err.Error(), "not trusted")) {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if x.runs != (err == nil) {
				t.Errorf("the command: %v", err)
			}
			if text := c.hintText("app/terragrunt.hcl"); !strings.Contains(text, "is not run") {
				t.Errorf("the functions run: %s", text)
			}
		})
	}
}

// Schemas are fetched after trust and a confirmation, and never without.
func TestFetchSchemas(t *testing.T) {
	dir := unpack(t, "-- main.tf --\nterraform {\n  required_providers {\n    acme = {\n      source  = \"example.com/acme/acme\"\n      version = \">= 1.2\"\n    }\n  }\n}\nresource \"acme_thing\" \"a\" {\n}\n")
	var questions []string
	answers := []any{map[string]any{"title": "Trust"}, nil, map[string]any{"title": "Fetch"}}
	var fetched []workspace.Requirement
	c := startServer(t, dir, nil, nil, func(method string, params json.RawMessage) any {
		if method != "window/showMessageRequest" {
			return nil
		}
		questions = append(questions, string(params))
		return answers[len(questions)-1]
	}, func(o *Options) { o.Schemas = recordSchemas(&fetched) })
	text := c.open("main.tf")
	at := c.position("main.tf", []byte(text), strings.Index(text, "acme_thing"))["position"]
	var all []protocol.CodeAction
	c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("main.tf")}, "range": map[string]any{"start": at, "end": at}, "context": map[string]any{"diagnostics": []any{}}}, &all)
	if len(all) != 1 || all[0].Command == nil || all[0].Command.Command != "terrace.schemas" || !strings.Contains(all[0].Title, "acme") {
		t.Fatalf("actions: %s", asJSON(all))
	}
	run := func() error {
		return c.try("workspace/executeCommand", map[string]any{"command": all[0].Command.Command, "arguments": all[0].Command.Arguments}, nil)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "confirmation") || fetched != nil {
		t.Errorf("without a confirmation: %v, %v", fetched, err)
	}
	if err := run(); err != nil || len(fetched) != 1 || fetched[0].Provider.String() != "example.com/acme/acme" || fetched[0].Constraints != ">= 1.2" {
		t.Errorf("with a confirmation: %v, %v", fetched, err)
	}
	if len(questions) != 3 || !strings.Contains(questions[1], "example.com/acme/acme (\\u003e= 1.2)") && !strings.Contains(questions[1], "example.com/acme/acme (>= 1.2)") {
		t.Errorf("questions: %q", questions)
	}
}

// A rule about units is checked for units that read each other's outputs: inputs that no module declares are
// no dependencies.
func TestRulesOnMutualOutputs(t *testing.T) {
	c := start(t, unpack(t, `
-- .git/HEAD --
ref: refs/heads/main
-- all.rules.hcl --
rule "empty" {
  unit = "*"
  enforce {
    condition     = attrs.from == ""
    error_message = "The input ${attrs.from}."
  }
}
-- m/main.tf --
variable "name" { default = "n" }
output "x" { value = "v-${var.name}" }
-- env.hcl --
dependency "a" { config_path = "a" }
dependency "b" { config_path = "b" }
-- a/terragrunt.hcl --
import "env" { config_path = "../env.hcl" }
terraform { source = "../m" }
inputs = {
  name = "1"
  from = import.env.dependency.b.outputs.x
}
-- b/terragrunt.hcl --
import "env" { config_path = "../env.hcl" }
terraform { source = "../m" }
inputs = { from = "is ${import.env.dependency.a.outputs.x}" }
`), nil)
	got := make(chan []string)
	go func() { got <- c.diagnostics("b/terragrunt.hcl") }()
	select {
	case all := <-got:
		if text := strings.Join(all, "\n"); !strings.Contains(text, "empty The input is v-1.") {
			t.Errorf("diagnostics: %s", text)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("the units wait for each other")
	}
}
