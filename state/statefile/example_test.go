package statefile_test

import (
	"bytes"
	"fmt"

	"github.com/terrace-iac/terrace/state/statefile"
)

// Read a state file, and write the state again.
func Example() {
	s, ds := statefile.Parse("terraform.tfstate", []byte(`{"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "abc", "outputs": {}, "resources": []}`))
	if ds.HasErrors() {
		fmt.Println(ds.Err())
		return
	}
	fmt.Println(s.Lineage, s.Serial, len(s.Resources))
	var b bytes.Buffer
	fmt.Println(statefile.Write(&b, s, false))
	// Output:
	// abc 3 0
	// <nil>
}
