package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// The dependencies of a resource with create_before_destroy are replaced in the same order,
// even if the lists of dependencies are truncated.
func TestCreateBeforeDestroyOfChain(t *testing.T) {
	const n = 5
	var text strings.Builder
	was := state.New().Edit()
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
			New: &state.Object{JSON: []byte(`{"id":"i","name":"first","new":"a"}`)},
		})
	}
	for _, total := range []int{0, maxTotal + 1} {
		p := newDriver(context.Background(), Input{
			Eval:  eval.Options{Tree: plantest.Tree(t, text.String()), Workspace: "default"},
			State: was.Freeze(), Providers: resourceclient.Options{Providers: plantest.New()},
		})
		if ds := p.prepare(); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		p.walk()
		deps := newDependencies(nil, 0)
		deps.total = total
		p.settle(deps)
		if len(p.found.plans) != n {
			t.Fatalf("%d instances, want %d", len(p.found.plans), n)
		}
		for _, ip := range p.found.plans {
			if ip.change == nil || ip.change.Op != plan.CreateThenDelete {
				t.Errorf("total %d: %s: %+v, want %s", total, ip.d.Addr(), ip.change, plan.CreateThenDelete)
			}
		}
	}
}
