package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/state"
)

// A resource that is replaced in one order is between two that are replaced in the other order.
// The list of actions has no cycle.
func TestActionsInBothOrders(t *testing.T) {
	const text = `
resource "x_thing" "a" {
  count = 3
  name  = "n${count.index}"
  new   = "b"
}
resource "x_thing" "b" {
  name = "${x_thing.a[0].id}${x_thing.a[1].id}"
  tags = { all = x_thing.a[2].id }
  lifecycle { create_before_destroy = true }
}
resource "x_thing" "c" {
  for_each = { n0 = 1, n1 = 2, n2 = 3 }
  name     = each.key
  new      = x_thing.b.name
  tags     = { a = x_thing.a[0].name }
}
`
	was := state.New().Edit()
	block := func(name string) addr.ConfigResource {
		return addr.ConfigResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: name}}
	}
	add := func(name string, key addr.Key, json string, deps ...addr.ConfigResource) {
		a := addr.AbsResource{Resource: block(name).Resource}.Instance(key)
		was.Apply(state.Change{
			Object: addr.Object{Instance: a}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")},
			New: &state.Object{JSON: []byte(json), Dependencies: deps},
		})
	}
	for i := range 3 {
		add("a", addr.Int(i), fmt.Sprintf(`{"id":"i%d","name":"n%d","new":"a"}`, i, i))
		add("c", addr.Str(fmt.Sprint("n", i)), fmt.Sprintf(`{"id":"c%d","name":"n%d","new":"i0,i1,i2","tags":{"a":"n0"}}`, i, i), block("a"), block("b"))
	}
	add("b", addr.Key{}, `{"id":"b","name":"i0,i1,i2"}`, block("a"))
	p, ds := Make(context.Background(), Input{
		Eval:  eval.Options{Tree: plantest.Tree(t, text), Workspace: "default"},
		State: was.Freeze(), Providers: resourceclient.Options{Providers: plantest.New()},
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if !acyclic(p.Actions) {
		for i, a := range p.Actions {
			what := "join"
			if a.Change >= 0 {
				what = p.Changes[a.Change].Addr.String() + " " + p.Changes[a.Change].Op.String()
			}
			t.Logf("%d: kind %d of %s needs %v", i, a.Kind, what, a.Needs)
		}
		t.Error("the actions close a circle")
	}
}
