package explanation_test

import (
	"os"

	"github.com/terrace-iac/terrace/explanation"
	"github.com/zclconf/go-cty/cty"
)

// An explanation prints the value and each step to the text that set it.
func Example() {
	x := &explanation.Explanation{
		Address: "local.region", Value: cty.StringVal("eu"),
		Steps: []*explanation.Step{{
			Kind: explanation.Local, Text: "local.region",
			At: &explanation.SourceLine{File: "main_override.tf", Line: 2, Source: `region = "eu"`, Part: `region = "eu"`, Layer: "override 1"},
		}},
	}
	_ = x.Print(os.Stdout)
	// Output:
	// local.region = "eu"
	//
	// local.region
	//   main_override.tf:2 (override 1)
	//     region = "eu"
}
