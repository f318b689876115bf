package affected_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/unit"
)

const units = `
-- root.hcl --
locals { region = "eu" }
inputs = { region = local.region }
-- a/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
inputs = { name = "a" }
-- net/terragrunt.hcl --
terraform { source = "../m" }
inputs = { name = "net", region = "eu" }
-- b/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
dependency "net" { config_path = "../net" }
inputs = {
  name = "b-${dependency.net.outputs.name}"
  id   = dependency.net.outputs.id
}
-- m/main.tf --
variable "name" { type = string }
variable "region" { type = string }
variable "id" { default = "" }
resource "terraform_data" "x" {
  input = { name = var.name, region = var.region, id = var.id }
}
output "name" { value = var.name }
output "id" { value = terraform_data.x.id }
`

// estateOptions returns the options of an estate in a directory.
func estateOptions(dir string, m unit.Machine) estate.Options {
	return estate.Options{
		Discovery: discovery.Settings{Root: dir, Command: "plan", Whole: true}, Checking: true,
		Request: unit.Request{Command: "plan", Args: []string{"plan"}}, Machine: m,
		Host: estate.Host{Backends: backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{Now: time.Now, Shared: new(backend.Shared)})},
	}
}

// lines returns one line for each difference between units and units with replaced texts.
func lines(t *testing.T, replace ...string) string {
	t.Helper()
	before, after := testkit.Files(t, units), testkit.Files(t, strings.NewReplacer(replace...).Replace(units))
	all, ds := affected.Estates(t.Context(), openRevision(t, before, after, unit.Machine{Now: time.Now}), openRevision(t, after, after, unit.Machine{Now: time.Now}))
	if ds.HasErrors() {
		t.Fatal(ds.Errors()[0].Detail)
	}
	r := &affected.Report{Units: all}
	r.Finish()
	var out []string
	for _, u := range r.Units {
		if len(u.Objects) == 0 {
			out = append(out, strings.TrimSuffix(u.Name+" "+string(u.Action)+" "+u.Was, " "))
		}
		for _, o := range u.Objects {
			for _, c := range o.Changes {
				text := u.Name + " " + o.Address + " " + c.Path + " " + string(c.Action)
				if c.Cause != nil {
					at := r.Causes[*c.Cause]
					text += " " + at.File + ":" + string(rune('0'+at.Line))
				}
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "\n")
}

func TestEstates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		replace []string
		want    string
	}{
		{"equal", nil, ""},
		{"comment", []string{"locals {", "# a comment\nlocals {", "dependency \"net\" {", "\n\ndependency \"net\" {"}, ""},
		{"renamed local", []string{"locals { region", "locals { where", "local.region", "local.where"}, ""},
		{"root file", []string{`locals { region = "eu" }`, `locals { region = "us" }`},
			"a inputs region changed root.hcl:1\na output.id  may_change root.hcl:1\na terraform_data.x input.region changed root.hcl:1\n" +
				"b inputs region changed root.hcl:1\nb output.id  may_change root.hcl:1\nb terraform_data.x input.region changed root.hcl:1"},
		{"known output", []string{`name = "net"`, `name = "network"`},
			"b inputs id may_change net/terragrunt.hcl:2\nb inputs name changed net/terragrunt.hcl:2\nb output.id  may_change net/terragrunt.hcl:2\n" +
				"b output.name  changed net/terragrunt.hcl:2\nb terraform_data.x input.id may_change net/terragrunt.hcl:2\nb terraform_data.x input.name changed net/terragrunt.hcl:2\n" +
				"net inputs name changed net/terragrunt.hcl:2\nnet output.id  may_change net/terragrunt.hcl:2\nnet output.name  changed net/terragrunt.hcl:2\nnet terraform_data.x input.name changed net/terragrunt.hcl:2"},
		{"hook", []string{"terraform { source = \"../m\" }\ninputs = { name = \"a\" }", "terraform {\n  source = \"../m\"\n  before_hook \"h\" {\n    commands = [\"plan\"]\n    execute = [\"touch\", \"x\"]\n  }\n}\ninputs = { name = \"a\" }"},
			"a terraform before_hook[0] h added a/terragrunt.hcl:4"},
		{"added", []string{"-- m/main.tf --", "-- new/terragrunt.hcl --\nterraform { source = \"../m\" }\ninputs = { name = \"n\", region = \"eu\" }\n-- m/main.tf --"}, "new added"},
		{"moved", []string{"-- a/terragrunt.hcl --", "-- z/terragrunt.hcl --"}, "z moved a"},
		{"moved, with another value", []string{"-- a/terragrunt.hcl --", "-- z/terragrunt.hcl --", `inputs = { region = local.region }`, "inputs = {\n  region = local.region\n  id = 1\n}"},
			"z inputs id added root.hcl:4\nz output.id  may_change root.hcl:4\nz terraform_data.x input.id changed root.hcl:4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, lines(t, test.replace...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// An output that is unknown before an apply may change its readers only if its definition differs.
func TestUnknownOutput(t *testing.T) {
	t.Parallel()
	got := lines(t, `output "id" { value = terraform_data.x.id }`, `output "id" { value = "${terraform_data.x.id}-x" }`)
	for _, want := range []string{"b inputs id may_change m/main.tf:8", "b terraform_data.x input.id may_change m/main.tf:8", "net output.id  may_change m/main.tf:8"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "net inputs") || strings.Contains(got, "name") {
		t.Error(got)
	}
}
