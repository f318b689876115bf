package outputs_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/estate/outputs"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Null outputs are omitted, and sensitive ones are hidden wherever they are shown.
func TestStored(t *testing.T) {
	d := state.New().Edit()
	d.SetOutput("a", &state.Output{Value: cty.StringVal("x")})
	d.SetOutput("secret", &state.Output{Value: cty.StringVal("y"), Sensitive: true})
	d.SetOutput("none", &state.Output{Value: cty.NullVal(cty.String)})
	want := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "secret": cty.StringVal("y").Mark(value.Hidden)})
	if got := outputs.Stored(d.Freeze()); !got.RawEquals(want) {
		t.Errorf("%#v", got)
	}
}

// A unit that was never applied has no outputs object, and one with objects has an empty one.
func TestNoOutputs(t *testing.T) {
	for _, s := range []*state.State{nil, state.New()} {
		if got := outputs.Stored(s); got != cty.NilVal {
			t.Errorf("%#v", got)
		}
	}
	i := addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: "a"}}.Instance(addr.Key{})
	d := state.New().Edit()
	d.Apply(state.Change{Object: addr.Object{Instance: i}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(`{}`)}})
	if got := outputs.Stored(d.Freeze()); !got.RawEquals(cty.EmptyObjectVal) {
		t.Errorf("%#v", got)
	}
}

// Planned outputs are those of the module: with their new values, unknown if the plan does not
// contain them, and without ephemeral ones. Outputs that the module no longer declares, and null
// ones, are omitted.
func TestPlanned(t *testing.T) {
	root := plantest.Tree(t, `
output "a" { value = 1 }
output "null" { value = null }
output "later" {
  value     = 1
  sensitive = true
}
`).Root.Config
	p := &plan.Plan{Outputs: []*plan.OutputChange{
		{Name: "a", Op: plan.Update, After: cty.NumberIntVal(2)},
		{Name: "null", Op: plan.NoOp, After: cty.NullVal(cty.DynamicPseudoType)},
		{Name: "gone", Op: plan.Delete, After: cty.NullVal(cty.DynamicPseudoType)},
	}}
	want := cty.ObjectVal(map[string]cty.Value{"a": cty.NumberIntVal(2), "later": cty.DynamicVal.Mark(value.Hidden)})
	if got := outputs.Planned(p, root); !got.RawEquals(want) {
		t.Errorf("%#v", got)
	}
	if got := outputs.Unknown(root); got.LengthInt() != 3 {
		t.Errorf("%#v", got)
	}
	if got := outputs.Unknown(nil); !got.RawEquals(cty.DynamicVal) {
		t.Errorf("%#v", got)
	}
}

// The outputs of a run may be set and read concurrently. Nil and the zero value are empty.
func TestComputed(t *testing.T) {
	if _, ok := (*outputs.Computed)(nil).Get("a"); ok {
		t.Error("nil has outputs")
	}
	var m outputs.Computed
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			id := fmt.Sprint(i)
			if _, ok := m.Get(id); ok {
				t.Errorf("%s has outputs", id)
			}
			m.Set(id, cty.NumberIntVal(int64(i)))
			if v, ok := m.Get(id); !ok || !v.RawEquals(cty.NumberIntVal(int64(i))) {
				t.Errorf("%s: %#v", id, v)
			}
		})
	}
	running.Wait()
}
