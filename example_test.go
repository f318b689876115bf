package terrace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace"
	"github.com/terrace-iac/terrace/engine"
)

// Initialize a directory, plan, apply the plan, and read an output.
func Example() {
	dir, err := os.MkdirTemp("", "terrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	config := "resource \"terraform_data\" \"a\" { input = \"hello\" }\noutput \"greeting\" { value = terraform_data.a.output }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	o := terrace.Options{Dir: dir, Environ: []string{"HOME=" + dir}}
	ds := terrace.Init(ctx, o)
	d, more := terrace.Open(ctx, o)
	defer d.Close()
	if ds = append(ds, more...); ds.HasErrors() {
		fmt.Print(d.Text(ds))
		return
	}
	p, ds := d.Plan(ctx, engine.PlanOptions{})
	if !ds.HasErrors() {
		_, ds = d.Apply(ctx, p)
	}
	fmt.Print(d.Text(ds))
	fmt.Println(p.Counts().Add, "to add;", d.State().Outputs["greeting"].Value.AsString())
	// Output: 1 to add; hello
}

// If there are errors, Open returns a Directory too. Its Text method formats them with the lines of
// the files.
func ExampleOpen_errors() {
	dir, err := os.MkdirTemp("", "terrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("locals { a = }\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	d, ds := terrace.Open(context.Background(), terrace.Options{Dir: dir, Environ: []string{"HOME=" + dir}})
	defer d.Close()
	fmt.Print(d.Text(ds))
	// Output:
	// Error: Invalid expression
	//
	//   on main.tf line 1, in locals:
	//    1: locals { a = }
	//
	// Expected the start of an expression, but found an invalid expression token.
}
