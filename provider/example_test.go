package provider_test

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/provider"
)

// note is a provider that embeds Unimplemented and has no methods yet.
type note struct{ provider.Unimplemented }

// A method that is not written is an error of the object that it is asked for.
func Example() {
	_, ds := note{}.Read(context.Background(), provider.ReadRequest{})
	fmt.Println(ds.HasErrors(), ds[0].Code)
	// Output: true provider/unimplemented
}
