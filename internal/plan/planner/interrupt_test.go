package planner

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/zclconf/go-cty/cty"
)

// An interrupt ends the wait of one evaluation for another. The plan is marked as incomplete
// although no provider call was cancelled.
func TestInterruptEndsWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{})
	providers := plantest.New()
	providers.Data["x_thing"].Read = func(v cty.Value) (cty.Value, diag.List) {
		close(begun)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // waiting tasks stop meanwhile
		return v, nil
	}
	go func() {
		<-begun
		time.Sleep(50 * time.Millisecond) // the other task is waiting now
		cancel()
	}()
	p, ds := Make(ctx, Input{
		Eval:      eval.Options{Tree: plantest.Tree(t, "data \"x_thing\" \"d\" { name = \"d\" }\nresource \"x_thing\" \"r\" { name = data.x_thing.d.name }\n"), Workspace: "default"},
		Providers: resourceclient.Options{Providers: providers, Parallelism: 2},
	})
	if !p.Errored || !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Summary == "Execution halted" }) {
		t.Errorf("errored %v, %v", p.Errored, ds.Err())
	}
}
