package rounds_test

import (
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
