package diag_test

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// Make an error about a place in a file and print it with the line.
func Example() {
	set := &source.Set{}
	set.Add(&source.File{Path: "main.tf", Bytes: []byte("locals { size = 0 }\n"), Layer: &source.Layer{}})
	at := source.Range{Filename: "main.tf", Start: hcl.Pos{Line: 1, Column: 10, Byte: 9}, End: hcl.Pos{Line: 1, Column: 18, Byte: 17}}
	ds := diag.Errorf(diag.CodeEvalBadInput, &at, "Invalid size", "The size is %d, and must be 1 or more.", 0)
	p := diag.Printer{Set: set}
	fmt.Print(p.Text(ds[0]))
	// Output:
	// Error: Invalid size
	//
	//   on main.tf line 1, in locals:
	//    1: locals { size = 0 }
	//
	// The size is 0, and must be 1 or more.
}
