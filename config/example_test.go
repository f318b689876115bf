package config_test

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
)

// Load a directory and print its merged resources.
func Example() {
	m, ds := config.Load("testdata/example", config.Options{})
	if ds.HasErrors() {
		fmt.Println(ds.Err())
		return
	}
	for _, name := range slices.SortedFunc(maps.Keys(m.Resources), addr.Resource.Compare) {
		fmt.Println(name)
		attrs, _ := m.Resources[name].Body.JustAttributes()
		for _, arg := range slices.Sorted(maps.Keys(attrs)) {
			for s := m.Setting(m.Resources[name].Body, arg); s != nil; s = s.Replaced {
				fmt.Printf("  %s is set at %s:%d (%s)\n", arg, s.Range.Filename, s.Range.Start.Line, s.Layer)
			}
		}
	}
	// Output:
	// aws_instance.web
	//   ami is set at testdata/example/override.tf:2 (override 1)
	//   ami is set at testdata/example/example.tf:3 (base)
	//   instance_type is set at testdata/example/example.tf:2 (base)
}

// Files in memory need no directory.
func ExampleLoadFiles() {
	m, ds := config.LoadFiles(".", map[string][]byte{
		"variables.tf": []byte(`variable "size" { default = "3" }`),
		"override.tf":  []byte(`variable "size" { type = number }`),
		"notes.txt":    []byte(`not configuration`),
	}, config.Options{})
	fmt.Println(len(ds), m.Variables["size"].Default.AsBigFloat())
	for _, f := range m.Files {
		fmt.Println(f.Path, f.Role)
	}
	// Output:
	// 0 3
	// variables.tf base
	// override.tf override
	// notes.txt ignored
}

// Print writes the merged configuration of a directory.
func ExampleModule_Print() {
	m, _ := config.Load("testdata/example", config.Options{})
	if err := m.Print(os.Stdout, config.PrintOptions{Origins: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # testdata/example/example.tf:1, merged with testdata/example/override.tf:1 (override 1)
	// resource "aws_instance" "web" {
	//   instance_type = "t2.micro" # testdata/example/example.tf:2
	//   ami           = "foo"      # testdata/example/override.tf:2 (override 1), overrides testdata/example/example.tf:3
	// }
}

// A block that override files changed: the blocks that were merged, and what its nested blocks
// replaced.
func ExampleModule_Origin() {
	m, ds := config.LoadFiles(".", map[string][]byte{
		"main.tf": []byte(`
resource "terraform_data" "a" {
  lifecycle {
    prevent_destroy = true
  }
  connection {
    host = "a"
  }
}
`),
		"main_override.tf": []byte(`
resource "terraform_data" "a" {
  lifecycle {
    prevent_destroy = false
  }
  connection {
    host = "b"
  }
}
`),
	}, config.Options{})
	if ds.HasErrors() {
		fmt.Println(ds.Err())
	}
	r := m.Resources[addr.Resource{Type: "terraform_data", Name: "a"}]
	for _, b := range m.Origin(r.At, r.Merged).Blocks() {
		fmt.Print(b.Type)
		for _, p := range b.Parts() {
			fmt.Printf(" from %s:%d", p.At.Filename, p.At.Start.Line)
		}
		for _, p := range b.Replaced {
			fmt.Printf(" in place of %s:%d", p.At.Filename, p.At.Start.Line)
		}
		fmt.Println()
	}
	// Output:
	// lifecycle from main.tf:3 from main_override.tf:3
	// connection from main_override.tf:6 in place of main.tf:6
}
