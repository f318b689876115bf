package estate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
)

// TestApprovedValues changes a unit after its plan was approved, without changing its actions.
// Either the values shown as known are applied, or nothing is.
func TestApprovedValues(t *testing.T) {
	const before = `
variable "in" { default = "one" }
resource "terraform_data" "x" { input = { v = "one", id = terraform_data.y.id } }
resource "terraform_data" "y" {}
output "o" { value = "one" }
`
	tests := []struct{ name, from, to, want string }{
		{"same", "", "", ""},
		{"remark", "\nvariable", "\n# a remark\nvariable", ""},
		{"value", `v = "one"`, `v = "two"`, "terraform_data.x (create): another value than the approved one in input.v"},
		{"unknown", `v = "one"`, `v = terraform_data.y.id`, "terraform_data.x (create): another value than the approved one in input.v"},
		{"known", `id = terraform_data.y.id`, `id = "now known"`, ""},
		{"input", `"in" { default = "one"`, `"in" { default = "two"`, ""}, // the default was never used
		{"gone", `resource "terraform_data" "y" {}`, `locals { y = 1 }`, "terraform_data.y (nothing in place of create)"},
		{"output", `value = "one"`, `value = "two"`, "output o: another value than the approved one"},
		{"new", `resource "terraform_data" "y" {}`, "resource \"terraform_data\" \"y\" {}\nresource \"terraform_data\" \"z\" {}", "terraform_data.z (create)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, "-- u/terragrunt.hcl --\n-- u/main.tf --\n"+before)
			approved := saved.Approve(open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Plan}))
			text := strings.Replace(before, tt.from, tt.to, 1)
			if tt.name == "gone" {
				text = strings.Replace(text, "terraform_data.y.id", `"x"`, 1)
			}
			if err := os.WriteFile(filepath.Join(dir, "u", "main.tf"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			res := open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: approved})[0]
			switch {
			case tt.want == "":
				if res.Status != estate.Succeeded {
					t.Errorf("%s %v", res.Status, res.Diags.Err())
				}
			case res.Status != estate.Failed || !strings.Contains(res.Diags.Err().Error(), "than what was approved: "+tt.want+"."):
				t.Errorf("%s %v", res.Status, res.Diags.Err())
			}
		})
	}
}

// TestApprovedDeletion changes, after the plan was approved, the action for an object that was to
// be deleted. If the object would remain, nothing is applied, unless it is already deleted.
func TestApprovedDeletion(t *testing.T) {
	const x, y = "resource \"terraform_data\" \"x\" {}\n", "resource \"terraform_data\" \"y\" { triggers_replace = \"one\" }\n"
	forget := "removed {\n  from = terraform_data.y\n  lifecycle { destroy = false }\n}\n"
	replace := strings.Replace(y, "one", "two", 1)
	tests := []struct{ name, approved, then, want string }{
		{"done", x, x, ""},
		{"kept", x, x + y, "terraform_data.y (kept in place of delete)"},
		{"kept, not forgotten", x + forget, x + y, "terraform_data.y (kept in place of forget)"},
		{"kept, not replaced", x + replace, x + y, "terraform_data.y (kept in place of delete-create)"},
		{"forgotten", x, x + forget, "terraform_data.y (forget)"},
		{"replaced", x + replace, x + replace, ""},
		{"gone", x, "apply", ""},
		{"replaced already", x + replace, "apply", ""},
		{"forgotten already", x + forget, "apply", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, "-- u/terragrunt.hcl --\n-- u/main.tf --\n"+x+y)
			run := func(text string, o estate.RunOptions) *estate.Result {
				if err := os.WriteFile(filepath.Join(dir, "u", "main.tf"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return open(t, options(dir, "apply")).Run(t.Context(), o)[0]
			}
			run(x+y, estate.RunOptions{Op: estate.Apply})
			approved := saved.Approve([]*estate.Result{run(tt.approved, estate.RunOptions{Op: estate.Plan})})
			if tt.then == "apply" { // another process deletes it first
				run(tt.approved, estate.RunOptions{Op: estate.Apply})
				tt.then = tt.approved
			}
			res := run(tt.then, estate.RunOptions{Op: estate.Apply, Approved: approved})
			switch {
			case tt.want == "":
				if res.Status != estate.Succeeded {
					t.Errorf("%s %v", res.Status, res.Diags.Err())
				}
			case res.Status != estate.Failed || !strings.Contains(res.Diags.Err().Error(), "than what was approved: "+tt.want+"."):
				t.Errorf("%s %v", res.Status, res.Diags.Err())
			}
		})
	}
}

// TestApprovedInput changes an input after the plan was approved. A provider configuration may
// depend on it, which no plan shows.
func TestApprovedInput(t *testing.T) {
	dir := tree(t, "-- u/terragrunt.hcl --\ninputs = { in = \"one\" }\n-- u/main.tf --\nvariable \"in\" { type = string }\nresource \"terraform_data\" \"x\" {}\n")
	approved := saved.Approve(open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Plan}))
	if err := os.WriteFile(filepath.Join(dir, "u", "terragrunt.hcl"), []byte("inputs = { in = \"two\" }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res := open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: approved})[0]
	if res.Status != estate.Failed || !strings.Contains(res.Diags.Err().Error(), "input in: another value than the approved one") {
		t.Errorf("%s %v", res.Status, res.Diags.Err())
	}
}
