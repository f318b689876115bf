package plan_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
)

// Counts contains the numbers in the summary line of a plan.
func Example() {
	a, err := addr.ParseInstance("aws_instance.web")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &plan.Plan{Changes: []*plan.Change{{Addr: a, Op: plan.CreateThenDelete}}}
	n := p.Counts()
	fmt.Printf("%d to add, %d to change, %d to destroy\n", n.Add, n.Change, n.Destroy)
	// Output: 1 to add, 0 to change, 1 to destroy
}
