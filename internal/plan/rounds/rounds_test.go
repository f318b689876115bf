package rounds_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/rounds"
	"github.com/terrace-iac/terrace/plan"
)

func instance(t *testing.T, text string) addr.Instance {
	a, err := addr.ParseInstance(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Every kind of change needs a permission of its own. A data source and a new output need none.
func TestCheck(t *testing.T) {
	a := instance(t, "x_thing.a")
	for op, name := range map[plan.Op]string{
		plan.Create: "create", plan.Update: "update", plan.Delete: "destroy", plan.Forget: "forget",
		plan.DeleteThenCreate: "replace", plan.CreateThenDelete: "replace", plan.ForgetThenCreate: "replace",
		plan.Read: "", plan.NoOp: "",
	} {
		p := &plan.Plan{Changes: []*plan.Change{{Addr: a, Prev: a, Op: op}}, Outputs: []*plan.OutputChange{{Name: "o", Op: plan.Create}}}
		if ds := rounds.Check(p, 2, nil); ds.HasErrors() != (name != "") {
			t.Errorf("%s without a permission: %v", op, ds)
		}
		all := slices.DeleteFunc(rounds.Actions(), func(n string) bool { return n == name })
		if ds := rounds.Check(p, 2, all); ds.HasErrors() != (name != "") {
			t.Errorf("%s with all other permissions: %v", op, ds)
		}
		if ds := rounds.Check(p, 2, []string{name}); ds.HasErrors() {
			t.Errorf("%s with its permission: %v", op, ds)
		}
	}
	for name, p := range map[string]*plan.Plan{
		"import":  {Changes: []*plan.Change{{Addr: a, Prev: a, Import: &plan.Import{ID: "x"}}}},
		"outputs": {Outputs: []*plan.OutputChange{{Name: "o", Op: plan.Update}}},
	} {
		if ds := rounds.Check(p, 2, []string{"create", "update"}); !ds.HasErrors() {
			t.Errorf("%s is allowed", name)
		}
		if ds := rounds.Check(p, 2, []string{name}); ds.HasErrors() {
			t.Errorf("%s: %v", name, ds)
		}
	}
}

// A replacement is requested again if it was deferred, and the next plan would not find the
// reason.
func TestReplace(t *testing.T) {
	change := func(text string, why plan.Reason) *plan.Change {
		return &plan.Change{Addr: instance(t, text), Op: plan.DeleteThenCreate, Reason: why}
	}
	p := &plan.Plan{
		Deferred: []*plan.Deferred{
			{Addr: "x_thing.requested", Change: change("x_thing.requested", plan.ReplaceByRequest)},
			{Addr: "x_thing.triggered", Change: change("x_thing.triggered", plan.ReplaceByTriggers)},
			{Addr: "x_thing.tainted", Change: change("x_thing.tainted", plan.ReplaceTainted)},
			{Addr: "x_thing.many"},
			{Addr: "module.m"},
		},
	}
	p.Replace = []addr.Instance{instance(t, "x_thing.requested"), instance(t, "x_thing.many[1]"), instance(t, "module.m[0].x_thing.a"), instance(t, "x_thing.done")}
	if got, want := fmt.Sprint(rounds.Replace(p)), "[x_thing.requested x_thing.triggered x_thing.many[1] module.m[0].x_thing.a]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
