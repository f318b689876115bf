package provider_test

import (
	"context"
	"fmt"

	"github.com/terrace-iac/terrace/provider"
)

// note is a provider that embeds Unimplemented and has no methods yet.
type note struct{ provider.Unimplemented }

// A method that the provider does not define returns an error.
func Example() {
	_, ds := note{}.Read(context.Background(), provider.ReadRequest{})
	fmt.Println(ds.HasErrors(), ds[0].Code)
	// Output: true provider/unimplemented
}
