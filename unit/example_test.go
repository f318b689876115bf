package unit_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// An estate of two units: the app reads the output of the network, and both
// take their region from a file that they import.
func Example() {
	dir, err := os.MkdirTemp("", "estate")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"region.hcl":         "inputs = { region = \"eu\" }\n",
		"vpc/main.hcl":       "",
		"vpc/terragrunt.hcl": "import \"region\" {\n  config_path = \"../region.hcl\"\n  merge       = true\n}\n",
		"app/terragrunt.hcl": `
import "region" {
  config_path = "../region.hcl"
  merge       = true
}
dependency "vpc" {
  config_path = "../vpc"
}
inputs = {
  vpc_id = dependency.vpc.outputs.id
}
`,
	} {
		path := filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o777)
		_ = os.WriteFile(path, []byte(text), 0o666)
	}

	l := unit.NewLoader(unit.Env{
		WorkingDir: dir,
		Outputs: func(t *demand.Task, target string, at source.Range) (cty.Value, bool, diag.List) {
			// An estate reads the outputs from the state of the unit with this ID.
			return cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("vpc-1")}), true, nil
		},
	})
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && l.IsUnitFile(path) {
			files = append(files, path)
		}
		return nil
	})
	slices.Sort(files)
	t := l.Task(context.Background())
	for _, f := range files {
		u, ds := l.Unit(t, f, "")
		if ds.HasErrors() {
			fmt.Println(ds.Err())
			return
		}
		rel, _ := filepath.Rel(dir, u.ID)
		edges, _ := u.Dependencies(t, nil)
		fmt.Printf("%s comes after %d units\n", rel, len(edges))
		inputs, _ := u.Inputs(t, nil)
		for _, in := range inputs {
			fmt.Printf("  %s = %q, from line %d of %s (%s)\n", in.Name, in.Value.AsString(), in.At.Start.Line, filepath.Base(in.At.Filename), in.Layer)
		}
	}
	// Output:
	// app comes after 1 units
	//   region = "eu", from line 1 of region.hcl (import)
	//   vpc_id = "vpc-1", from line 10 of terragrunt.hcl (base)
	// vpc comes after 0 units
	//   region = "eu", from line 1 of region.hcl (import)
}

// This example explains where a value of a unit comes from.
func ExampleUnit_Explain() {
	files := map[string]string{
		"account.hcl":      "inputs = { tags = { team = \"core\" } }",
		"u/terragrunt.hcl": "import \"account\" {\n  config_path = \"../account.hcl\"\n}\ninputs = merge(import.account.inputs, { name = \"u\" })",
	}
	l := unit.NewLoader(memory(files))
	t := l.Task(context.Background())
	u, _ := l.Unit(t, "u", "")
	x, _ := u.Explain(t, "inputs.tags.team")
	for _, s := range x.Steps {
		fmt.Printf("%s:%d %s\n", filepath.Base(s.At.File), s.At.Line, s.Text)
	}
	// Output:
	// terragrunt.hcl:4 inputs.tags.team
	// terragrunt.hcl:4 argument 1 of merge wins
	// terragrunt.hcl:1 import.account is ../account.hcl
	// account.hcl:1 inputs.tags.team
}
