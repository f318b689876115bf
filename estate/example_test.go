package estate_test

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/plan"
)

// Open the units below a directory, list them in the order of their dependencies, and plan them. The
// output of vpc does not exist yet, so app is planned with an unknown value.
func Example() {
	ctx := context.Background()
	e, ds := estate.Open(ctx, estate.Options{Dir: "../examples/embed-estate/live"})
	defer e.Close(ctx)
	if ds.HasErrors() {
		fmt.Print(e.Text(ds, nil))
		return
	}
	for _, u := range e.Units() {
		fmt.Println(u.Name, u.Needs)
	}
	for _, r := range e.Plan(ctx, plan.Options{}) {
		fmt.Println(r.Unit, r.Status, r.Counts.Add, "to add")
	}
	// Output:
	// vpc []
	// app [vpc]
	// app succeeded 1 to add
	// vpc succeeded 1 to add
}
