package addr_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
)

// Parse the address of a resource instance and print its parts.
func Example() {
	a, err := addr.ParseInstance(`module.net["a"].aws_subnet.private[0]`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a)
	fmt.Println(a.Module)
	fmt.Println(a.Resource.Type, a.Resource.Name)
	// Output:
	// module.net["a"].aws_subnet.private[0]
	// module.net["a"]
	// aws_subnet private
}
