package view

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		p, schemas := manyChanges(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				_ = Plan(io.Discard, Style{}, p, schemas, false)
			}
		})
	}
}

// TestManyChanges checks that changes written by several workers are in the order of the plan.
func TestManyChanges(t *testing.T) {
	p, schemas := manyChanges(page*pages + 2*page + 1)
	var got, want bytes.Buffer
	if err := Plan(&got, Style{Color: true}, p, schemas, false); err != nil {
		t.Fatal(err)
	}
	v := &planView{printer: newPrinter(&want, Style{Color: true}), plan: p, schemas: schemas}
	for _, c := range v.changes() {
		v.change(c)
	}
	_ = v.Flush()
	if !bytes.Contains(got.Bytes(), want.Bytes()) {
		t.Error("the changes are not those of the plan in its order")
	}
}

// manyChanges returns a plan that alternates creates and updates.
func manyChanges(n int) (*plan.Plan, Schemas) {
	dyn := cty.DynamicPseudoType
	schemas := fixedSchemas{"managed.terraform_data": {Block: &schema.Block{Attributes: map[string]*schema.Attribute{
		"id": {Type: cty.String, Computed: true}, "input": {Type: dyn, Optional: true}, "output": {Type: dyn, Computed: true}, "triggers_replace": {Type: dyn, Optional: true},
	}}}}
	obj := func(input cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal("0123"), "input": input, "output": cty.DynamicVal, "triggers_replace": cty.NullVal(dyn),
		})
	}
	big := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "b": cty.TupleVal([]cty.Value{cty.StringVal("y"), cty.NumberIntVal(1)})})
	p := &plan.Plan{}
	for i := range n {
		a := addr.Instance{Module: addr.ModuleInstance("").Child("m", addr.Int(i/10)), Resource: addr.Resource{Type: "terraform_data", Name: "x"}, Key: addr.Int(i)}
		c := &plan.Change{Addr: a, Prev: a, Op: plan.Create, Before: cty.NullVal(cty.EmptyObject), After: obj(cty.StringVal("some value"))}
		if i%2 == 1 {
			c.Op, c.Before, c.After = plan.Update, obj(cty.StringVal("other")), obj(big)
		}
		p.Changes = append(p.Changes, c)
	}
	return p, schemas
}
