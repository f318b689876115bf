package unit_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/unit"
)

// Overridden reports what a later layer replaces, in all ways of merging, and nothing that is merged:
// appended lists, and maps in which one element is replaced.
func TestOverridden(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{
		"root.hcl": `inputs = {
  region = "eu"
  size   = 1
  tags   = { team = "a", env = "b" }
  list   = ["x"]
  kept   = "yes"
}
iam_role = "root"
terraform {
  source = "../m"
}
`,
		"region.hcl": `inputs = { region = "us" }
`,
		"deep/terragrunt.hcl": `import "root" {
  config_path = "../root.hcl"
  deep_merge  = true
}
inputs = {
  tags = { team = "c" }
  list = ["y"]
}
`,
		"shallow/terragrunt.hcl": `import "root" {
  config_path = "../root.hcl"
  merge       = true
}
import "region" {
  config_path = "../region.hcl"
  merge       = true
}
iam_role = "own"
inputs = {
  region = "me"
  tags   = { team = "c" }
}
terraform {
  source = "../n"
}
`,
		"include/terragrunt.hcl": `include "root" {
  path = "../root.hcl"
}
inputs = { size = 2 }
`,
		"none/terragrunt.hcl": `import "root" {
  config_path = "../root.hcl"
}
inputs = { region = "me" }
`,
	}))
	for name, want := range map[string][]string{
		"deep": {"root.hcl:4 inputs.tags.team by deep/terragrunt.hcl:6"},
		"shallow": {
			"region.hcl:1 inputs.region by shallow/terragrunt.hcl:11",
			"root.hcl:2 inputs.region by shallow/terragrunt.hcl:11",
			"root.hcl:4 inputs.tags by shallow/terragrunt.hcl:12",
			"root.hcl:8 iam_role by shallow/terragrunt.hcl:9",
			"root.hcl:10 terraform.source by shallow/terragrunt.hcl:15",
		},
		"include": {"root.hcl:3 inputs.size by include/terragrunt.hcl:4"},
		"none":    nil,
	} {
		task, u := load(t, l, name, "")
		var got []string
		for _, o := range u.Overridden(task) {
			at, by := o.At, o.By
			rel, _ := filepath.Rel(filepath.Dir(u.Dir), at.Filename)
			relBy, _ := filepath.Rel(filepath.Dir(u.Dir), by.Filename)
			got = append(got, fmt.Sprintf("%s:%d %s by %s:%d", filepath.ToSlash(rel), at.Start.Line, o.Path, filepath.ToSlash(relBy), by.Start.Line))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
