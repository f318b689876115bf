package unit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/unit"
)

// The way from a line of a generated file ends at the text of the generate block, or continues
// in the interpolations that the requested expression contains.
func TestGenerated(t *testing.T) {
	const file = `locals {
  a  = "eu"
  on = true
  b  = "eu"
  z  = "other"
}
generate "made" {
  path      = "made.tf"
  if_exists = "overwrite"
  contents  = <<EOT
locals {
%{ if local.on }
  chosen = "text"
  choice = "${local.z}"
%{ endif }
  comment = "plain" # for ${local.z}
  both = "${local.a}-${local.z}"
  part = "x-${local.z}"
}
resource "terraform_data" "one" {
  input = "${local.a}"
}
resource "terraform_data" "two" {
  input = "${local.b}"
}
EOT
}
generate "quoted" {
  path      = "quoted.tf"
  if_exists = "overwrite"
  contents  = "locals {\n  q = \"${local.z}\"\n}\n"
}
`
	l := unit.NewLoader(memory(map[string]string{"u/terragrunt.hcl": file}))
	task := l.Task(context.Background())
	u, ds := l.Unit(task, "u", "")
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	for _, c := range []struct {
		file, line, x string // x is the requested expression in the line; "" requests all of it
		earlier       int
		want          string
	}{
		{"made.tf", `  chosen  = "text"`, `"text"`, 0, "13:"},
		{"made.tf", `  choice  = "other"`, `"other"`, 0, "14: local.z"},
		{"made.tf", `  comment = "plain" # for other`, `"plain"`, 0, "16:"},
		{"made.tf", `  comment = "plain" # for other`, "", 0, "16: local.z"},
		{"made.tf", `  both    = "eu-other"`, `"eu-other"`, 0, "17: local.a local.z"},
		{"made.tf", `  part    = "x-other"`, `"x-other"`, 0, "18: local.z"},
		{"made.tf", `  input = "eu"`, `"eu"`, 0, "21: local.a"},
		{"made.tf", `  input = "eu"`, `"eu"`, 1, "24: local.b"},
		{"quoted.tf", `  q = "other"`, `"other"`, 0, "31: local.z"},
	} {
		line := explanation.GeneratedLine{File: c.file, Text: c.line, Earlier: c.earlier}
		if c.x != "" {
			line.From = strings.Index(c.line, c.x)
			line.To = line.From + len(c.x)
		}
		way, ok := u.Origin(task).Generated(line)
		if !ok || len(way.Stops) == 0 {
			t.Errorf("%s: no way", c.line)
			continue
		}
		got := fmt.Sprintf("%d:", way.Stops[0].At.Start.Line)
		if way.Next != nil {
			for _, ref := range way.Next.Expr.Variables() {
				got += " " + addr.Text(ref)
			}
		}
		if got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.line, c.earlier, got, c.want)
		}
	}
}
