package state_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
)

// A State never changes; a Draft makes a new one.
func Example() {
	s := state.New()
	a, err := addr.ParseInstance("aws_instance.web")
	if err != nil {
		fmt.Println(err)
		return
	}
	d := s.Edit()
	fmt.Println("moved:", d.MoveInstance(a, a))
	fmt.Println("equal:", d.Freeze().Equal(s))
	// Output:
	// moved: false
	// equal: true
}
