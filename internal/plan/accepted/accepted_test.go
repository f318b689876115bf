package accepted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
)

func object(tags map[string]cty.Value, cidrs ...string) cty.Value {
	var ingress []cty.Value
	for _, c := range cidrs {
		ingress = append(ingress, cty.ObjectVal(map[string]cty.Value{"cidr": cty.StringVal(c), "port": cty.NumberIntVal(1)}))
	}
	return cty.ObjectVal(map[string]cty.Value{"tags": cty.MapVal(tags), "ingress": cty.ListVal(ingress), "name": cty.StringVal("n")})
}

// TestAccept compares entries with the changed parts of an object.
func TestAccept(t *testing.T) {
	t.Parallel()
	before := object(map[string]cty.Value{"a": cty.StringVal("1")}, "x", "y")
	after := object(map[string]cty.Value{"a": cty.StringVal("2"), "b": cty.StringVal("1")}, "x", "z")
	for _, test := range []struct {
		attributes []string
		want       []string // nil if the drift is not accepted
	}{
		{[]string{""}, []string{"ingress[1].cidr", `tags["a"]`, `tags["b"]`}},
		{[]string{"tags", "ingress"}, []string{"ingress[1].cidr", `tags["a"]`, `tags["b"]`}},
		{[]string{"tags.a", `tags["b"]`, "ingress[1].cidr"}, []string{"ingress[1].cidr", `tags["a"]`, `tags["b"]`}},
		{[]string{"tags[*]", "ingress[*].cidr"}, []string{"ingress[1].cidr", `tags["a"]`, `tags["b"]`}},
		{[]string{"tags", "ingress[*].port"}, nil},
		{[]string{"tags", "ingress[0]"}, nil},
		{[]string{"tags.a", "ingress"}, nil},
		{[]string{"tags[\"a\"].b", "tags.b", "ingress"}, nil},
		{nil, nil},
	} {
		r, err := addr.ParseTarget(`module.m["k"].x_y.z[0]`)
		if err != nil {
			t.Fatal(err)
		}
		c := &plan.Change{Addr: r.Instance(), Op: plan.Update, Before: before, After: after}
		var list plan.Acceptances
		for _, a := range test.attributes {
			list.Entries = append(list.Entries, plan.Acceptance{Address: `module.m[*].x_y.z*`, Attribute: a, Reason: "r"})
		}
		p := &plan.Plan{Mode: plan.RefreshOnly, Drift: []*plan.Change{c}, Outputs: []*plan.OutputChange{{Name: "o", Op: plan.Update}}}
		Apply(p, list)
		var got []string
		for _, a := range p.Accepted {
			got = a.Attributes
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%q: %s", test.attributes, d)
		}
		if p.HasChanges() != (test.want == nil) {
			t.Errorf("%q: HasChanges is %t", test.attributes, p.HasChanges())
		}
	}
}
