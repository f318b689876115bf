package source_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/source"
)

// A position names its file, and the file names its layer.
func Example() {
	set := &source.Set{}
	set.Add(&source.File{Path: "main_override.tf", Bytes: []byte("locals { a = 1 }\n"), Layer: &source.Layer{Kind: source.Override, N: 1}})
	at := source.Range{Filename: "main_override.tf"}
	fmt.Println(set.LayerOf(at))
	fmt.Println(set.File("main_override.tf").Line(1))
	// Output:
	// override 1
	// locals { a = 1 }
}
