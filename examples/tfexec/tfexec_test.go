// Package tfexec tests Terrace with programs that were written for Terraform: it runs
// Terrace with terraform-exec, and parses its output with terraform-json.
package tfexec

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"
)

const configuration = `
variable "n" {
  type    = number
  default = 2
}
resource "terraform_data" "a" {
  count = var.n
  input = "v${count.index}"
}
resource "terraform_data" "b" {
  input = terraform_data.a[0].id
}
check "size" {
  assert {
    condition     = var.n > 0
    error_message = "None."
  }
}
output "ids" { value = terraform_data.a[*].id }
output "secret" {
  value     = "hush"
  sensitive = true
}
`

const tests = `
run "one" {
  assert {
    condition     = output.secret == "hush"
    error_message = "no"
  }
}
`

// folder returns a directory with the configuration, and terraform-exec for it.
func folder(t *testing.T) (string, *tfexec.Terraform) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(configuration), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "one.tftest.hcl"), []byte(tests), 0o644))
	tf, err := tfexec.NewTerraform(dir, program)
	must(t, err)
	return dir, tf
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var program string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	if program = os.Getenv("TERRACE_PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "terrace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "terrace.exe")
	c := exec.Command("go", "build", "-o", program, "./cmd/terrace")
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// All features of terraform-exec that need no service work, in one directory.
func TestCommands(t *testing.T) {
	ctx := context.Background()
	dir, tf := folder(t)
	version, _, err := tf.Version(ctx, true)
	must(t, err)
	if version.Segments()[0] != 1 {
		t.Errorf("version %s", version)
	}
	must(t, tf.Init(ctx, tfexec.Upgrade(true)))
	must(t, tf.Get(ctx))
	valid, err := tf.Validate(ctx)
	must(t, err)
	if !valid.Valid {
		t.Errorf("not valid: %v", valid.Diagnostics)
	}

	changes, err := tf.Plan(ctx, tfexec.Out("plan"), tfexec.Var("n=3"))
	must(t, err)
	planned, err := tf.ShowPlanFile(ctx, "plan")
	must(t, err)
	if !changes || len(planned.ResourceChanges) != 4 || !planned.ResourceChanges[0].Change.Actions.Create() || planned.Config.RootModule.Variables["n"] == nil || len(planned.Checks) != 1 {
		t.Errorf("the plan: %t, %+v", changes, planned)
	}
	text, err := tf.ShowPlanFileRaw(ctx, "plan")
	must(t, err)
	if !strings.Contains(text, "4 to add") {
		t.Errorf("the plan in words: %s", text)
	}
	var events bytes.Buffer
	_, err = tf.PlanJSON(ctx, &events)
	must(t, err)
	lines(t, &events, "planned_change", "change_summary")
	must(t, tf.Apply(ctx, tfexec.DirOrPlan("plan")))
	events.Reset()
	must(t, tf.ApplyJSON(ctx, &events, tfexec.Var("n=2")))
	lines(t, &events, "apply_complete", "outputs")

	outputs, err := tf.Output(ctx)
	must(t, err)
	if !outputs["secret"].Sensitive || !strings.HasPrefix(string(outputs["ids"].Value), "[") {
		t.Errorf("outputs: %+v", outputs)
	}
	if got := addresses(t, tf); got != "terraform_data.a[0] terraform_data.a[1] terraform_data.b" {
		t.Errorf("the state: %s", got)
	}
	must(t, tf.StateMv(ctx, "terraform_data.a[1]", "terraform_data.a[2]"))
	must(t, tf.Taint(ctx, "terraform_data.b"))
	must(t, tf.Untaint(ctx, "terraform_data.b"))
	must(t, tf.StateRm(ctx, "terraform_data.a[2]"))
	must(t, tf.Import(ctx, "terraform_data.a[1]", "an-id"))
	if got := addresses(t, tf); got != "terraform_data.a[0] terraform_data.a[1] terraform_data.b" {
		t.Errorf("the state after edits: %s", got)
	}
	pulled, err := tf.StatePull(ctx)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "pulled"), []byte(pulled), 0o600))
	must(t, tf.StatePush(ctx, "pulled", tfexec.Force(true)))
	must(t, tf.Refresh(ctx))

	graph, err := tf.Graph(ctx)
	must(t, err)
	if !strings.Contains(graph, "terraform_data.b") {
		t.Errorf("the graph: %s", graph)
	}
	schemas, err := tf.ProvidersSchema(ctx)
	must(t, err)
	if schemas.Schemas["terraform.io/builtin/terraform"] == nil {
		t.Errorf("schemas: %v", schemas.Schemas)
	}
	functions, err := tf.MetadataFunctions(ctx)
	must(t, err)
	if functions.Signatures["upper"] == nil {
		t.Errorf("%d functions", len(functions.Signatures))
	}
	must(t, tf.Test(ctx, io.Discard))

	must(t, tf.WorkspaceNew(ctx, "other"))
	all, now, err := tf.WorkspaceList(ctx)
	must(t, err)
	if now != "other" || len(all) != 2 {
		t.Errorf("workspaces: %v, %s", all, now)
	}
	must(t, tf.WorkspaceSelect(ctx, "default"))
	must(t, tf.WorkspaceDelete(ctx, "other"))
	shown, err := tf.WorkspaceShow(ctx)
	must(t, err)
	if shown != "default" {
		t.Errorf("workspace %s", shown)
	}
	events.Reset()
	must(t, tf.DestroyJSON(ctx, &events))
	lines(t, &events, "apply_complete", "change_summary")
	if got := addresses(t, tf); got != "" {
		t.Errorf("after destroy: %s", got)
	}
}

// Errors have the same types as those of Terraform.
func TestErrors(t *testing.T) {
	ctx := context.Background()
	dir, tf := folder(t)
	must(t, tf.Init(ctx))
	must(t, os.WriteFile(filepath.Join(dir, "wrong.tf"), []byte(`locals { x = upper() }`), 0o644))
	if err := tf.Apply(ctx); err == nil || !strings.Contains(err.Error(), "Not enough function arguments") {
		t.Errorf("apply: %v", err)
	}
	valid, err := tf.Validate(ctx)
	must(t, err)
	if valid.Valid || valid.ErrorCount != 1 {
		t.Errorf("validate: %+v", valid)
	}
	for _, d := range valid.Diagnostics {
		if d.Severity == tfjson.DiagnosticSeverityError && (d.Range == nil || d.Snippet == nil) {
			t.Errorf("validate: %+v", d)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "wrong.tf"), []byte("locals { x=1 }\n"), 0o644))
	if ok, files, err := tf.FormatCheck(ctx); err != nil || ok || len(files) != 1 {
		t.Errorf("fmt -check: %t %v %v", ok, files, err)
	}
	if text, err := tf.FormatString(ctx, "a=1"); err != nil || text != "a = 1" {
		t.Errorf("fmt: %q, %v", text, err)
	}
	if err := tf.WorkspaceSelect(ctx, "missing"); err == nil {
		t.Error("a workspace that does not exist was selected")
	}
}

// addresses returns the addresses in the state.
func addresses(t *testing.T, tf *tfexec.Terraform) string {
	t.Helper()
	s, err := tf.Show(context.Background())
	must(t, err)
	if s.Values == nil {
		return ""
	}
	var out []string
	for _, r := range s.Values.RootModule.Resources {
		out = append(out, r.Address)
	}
	return strings.Join(out, " ")
}

// lines parses an event stream with terraform-json, and checks that it has the types.
func lines(t *testing.T, b *bytes.Buffer, types ...string) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(b.String()), "\n") {
		log, err := tfjson.UnmarshalLogMessage([]byte(line))
		if err != nil || log == nil {
			t.Errorf("%v: %s", err, line)
		}
		var typed struct{ Type string }
		must(t, json.Unmarshal([]byte(line), &typed))
		for i, want := range types {
			if typed.Type == want {
				types = append(types[:i:i], types[i+1:]...)
				break
			}
		}
	}
	if len(types) > 0 {
		t.Errorf("no line of the types %v", types)
	}
}
