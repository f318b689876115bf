package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/engine"
)

// Open a directory, plan it and apply the plan. The program decides where it stores the state.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	text := `
variable "name" {
  default = "world"
}

resource "terraform_data" "greeting" {
  input = "hello ${var.name}"
}

output "greeting" {
  value = terraform_data.greeting.output
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o644); err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	e, ds := engine.Open(ctx, engine.Options{Dir: dir})
	if err := ds.Err(); err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	plan, ds := e.Plan(ctx, nil, engine.PlanOptions{})
	if err := ds.Err(); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range plan.Changes {
		fmt.Println(c.Op, c.Addr)
	}

	result, ds := e.Apply(ctx, plan, engine.ApplyOptions{})
	if err := ds.Err(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Counts.Add, "added;", result.State.Outputs["greeting"].Value.AsString())

	again, _ := e.Plan(ctx, result.State, engine.PlanOptions{})
	fmt.Println("changes left:", again.HasChanges())
	// Output:
	// create terraform_data.greeting
	// 1 added; hello world
	// changes left: false
}
