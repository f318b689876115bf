package event_test

import (
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/event"
)

// A sink receives the events of a run.
func Example() {
	var sink event.Sink = func(e event.Event) {
		if e.Kind == event.ApplyDone {
			fmt.Println("done:", e.Object)
		}
	}
	a, err := addr.ParseInstance("aws_instance.web")
	if err != nil {
		fmt.Println(err)
		return
	}
	sink(event.Event{Kind: event.ApplyStart, Object: addr.Object{Instance: a}})
	sink(event.Event{Kind: event.ApplyDone, Object: addr.Object{Instance: a}})
	// Output: done: aws_instance.web
}
