package outline_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/outline"
)

// Two outlines are compared argument by argument.
func ExampleCompare() {
	one := func(size byte) *outline.Outline {
		return &outline.Outline{Objects: []*outline.Object{{
			Kind: outline.Resource, Addr: "aws_instance.web",
			Parts: []outline.Part{{Path: ".name", Print: outline.Print{1}}, {Path: ".size", Print: outline.Print{size}}},
		}}}
	}
	for _, d := range outline.Compare(one(1), one(2)) {
		fmt.Println(d.Addr, d.Action, d.Parts[0].Path)
	}
	// Output: aws_instance.web changed .size
}
