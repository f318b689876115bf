package planner_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/exchange"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/planner"
	"github.com/terrace-iac/terrace/internal/provider"
	"github.com/zclconf/go-cty/cty"
)

// Who waits for another object keeps nobody from asking the provider: with
// chains that stand one after the other, as many calls are in flight as may be.
func TestCallsInFlight(t *testing.T) {
	const chains, parallelism = 10, 5
	var text strings.Builder
	for c := range chains {
		for i := range chains {
			name := `"first"`
			if i > 0 {
				name = fmt.Sprintf("x_thing.c%d_%d.id", c, i-1)
			}
			fmt.Fprintf(&text, "resource \"x_thing\" \"c%d_%d\" {\n  name = %s\n}\n", c, i, name)
		}
	}
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	open := sync.OnceFunc(func() { close(full) })
	providers := plantest.New()
	providers.Managed["x_thing"].Plan = func(r provider.PlanRequest) (provider.PlanResponse, diag.List) {
		mu.Lock()
		now++
		if most = max(most, now); now == parallelism {
			open()
		}
		mu.Unlock()
		select { // the first calls wait for one another
		case <-full:
		case <-time.After(20 * time.Second):
			t.Error("the calls that may be in flight never were")
			open()
		}
		mu.Lock()
		now--
		mu.Unlock()
		attrs := r.Proposed.AsValueMap()
		attrs["id"] = cty.UnknownVal(cty.String)
		return provider.PlanResponse{Planned: cty.ObjectVal(attrs)}, nil
	}
	_, ds := planner.Make(context.Background(), planner.Input{
		Eval: eval.Options{Tree: plantest.Tree(t, text.String()), Workspace: "default"}, Providers: exchange.Options{Providers: providers, Parallelism: parallelism},
	})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if most != parallelism {
		t.Errorf("%d calls at a time, want %d", most, parallelism)
	}
}
