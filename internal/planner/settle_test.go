package planner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/exchange"
	"github.com/terrace-iac/terrace/internal/plan"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/planner"
	"github.com/terrace-iac/terrace/internal/state"
)

// What a resource with create_before_destroy depends on is replaced in the same
// order, also in a chain so long that the lists of dependencies are cut.
func TestCreateBeforeDestroyOfLongChain(t *testing.T) {
	const n = 3300
	var text strings.Builder
	was := state.New().Edit()
	var deps []addr.ConfigResource
	for i := range n {
		name, life := `"first"`, ""
		if i > 0 {
			name = fmt.Sprintf("x_thing.c%d.name", i-1)
		}
		if i == n-1 {
			life = "\n  lifecycle { create_before_destroy = true }"
		}
		fmt.Fprintf(&text, "resource \"x_thing\" \"c%d\" {\n  name = %s\n  new  = \"b\"%s\n}\n", i, name, life)
		a := addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: fmt.Sprint("c", i)}}.Instance(addr.Key{})
		was.Apply(state.Change{
			Object: addr.Object{Instance: a}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")},
			New: &state.Object{JSON: []byte(`{"id":"i","name":"first","new":"a"}`), Dependencies: deps},
		})
		deps = []addr.ConfigResource{a.Config()}
	}
	p, ds := planner.Make(context.Background(), planner.Input{
		Eval:  eval.Options{Tree: plantest.Tree(t, text.String()), Workspace: "default"},
		State: was.Freeze(), Providers: exchange.Options{Providers: plantest.New()},
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if len(p.Changes) != n {
		t.Fatalf("%d changes, want %d", len(p.Changes), n)
	}
	for _, c := range p.Changes {
		if c.Op != plan.CreateThenDelete {
			t.Fatalf("%s: %s, want %s", c.Addr, c.Op, plan.CreateThenDelete)
		}
	}
}
