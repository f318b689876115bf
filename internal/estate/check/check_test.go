package check_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/unit"
)

// check opens an estate, which creates the Checker, and checks it.
func check(t *testing.T, command, archive string) diag.List {
	t.Helper()
	backends := backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{Now: time.Now, Shared: new(backend.Shared)})
	e, ds := estate.Open(t.Context(), estate.Options{
		Discovery: discovery.Settings{Root: testkit.Files(t, archive), Command: command, Whole: true}, Checking: true,
		Request: unit.Request{Command: command, Args: []string{command}}, Machine: unit.Machine{Now: time.Now}, Host: estate.Host{Backends: backends},
	})
	defer e.Close(t.Context())
	return append(ds, e.Check(t.Context(), false)...)
}

// found returns one line for each message: its directory, line and summary.
func found(ds diag.List) string {
	var out []string
	for _, m := range ds {
		text := m.Summary
		if m.At != nil {
			text = filepath.Base(filepath.Dir(m.At.Filename)) + ": " + text
		}
		if m.Severity == diag.Warning {
			text = "warning " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

const connected = `
-- net/terragrunt.hcl --
terraform { source = "../modules/net" }
-- app/terragrunt.hcl --
terraform { source = "../modules/app" }
dependency "net" { config_path = "../net" }
inputs = { id = dependency.net.outputs.OUTPUT }
-- modules/net/main.tf --
resource "terraform_data" "x" {}
output "id" { value = terraform_data.x.id }
-- modules/app/main.tf --
variable "id" { type = number }
`

// An output that is unknown before a run is no error, although the unit was never applied. One that
// the module does not declare is an error in the unit that refers to it.
func TestOutputs(t *testing.T) {
	if ds := check(t, "plan", strings.Replace(connected, "OUTPUT", "id", 1)); len(ds) != 0 {
		t.Error(found(ds))
	}
	if ds := check(t, "plan", strings.Replace(connected, "OUTPUT", "missing", 1)); len(ds) != 1 || filepath.Base(filepath.Dir(ds[0].At.Filename)) != "app" || ds[0].At.Start.Line != 3 {
		t.Error(found(ds))
	}
}

// An input that does not fit its variable, and a required variable without a value, are errors.
func TestInputs(t *testing.T) {
	got := found(check(t, "plan", `
-- a/terragrunt.hcl --
terraform { source = "../m" }
inputs = { n = "text" }
-- m/main.tf --
variable "n" { type = number }
variable "required" {}
`))
	if d := cmp.Diff("a: Invalid value for input variable\na: Missing input", got); d != "" {
		t.Error(d)
	}
}

// An error in a unit that is excluded from the command is a warning.
func TestExcluded(t *testing.T) {
	const archive = `
-- a/terragrunt.hcl --
terraform { source = "../missing" }
exclude {
  if      = true
  actions = ["plan"]
}
`
	if ds := check(t, "plan", archive); len(ds) != 1 || ds.HasErrors() {
		t.Error(found(ds))
	}
	if ds := check(t, "apply", archive); len(ds) != 1 || !ds.HasErrors() {
		t.Error(found(ds))
	}
}

// A message about a module of several units is reported once, and names them.
func TestOnce(t *testing.T) {
	ds := check(t, "plan", `
-- a/terragrunt.hcl --
terraform { source = "../m" }
-- b/terragrunt.hcl --
terraform { source = "../m" }
-- m/main.tf --
output "o" { value = var.missing }
`)
	if len(ds) != 1 || !strings.Contains(ds[0].Detail, "the units a, b") || filepath.Base(ds[0].At.Filename) != "main.tf" {
		t.Error(found(ds))
	}
}
