package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// The order of actions for creating, updating, destroying and both kinds of replacing two
// objects. b depends on a.
func TestActionOrder(t *testing.T) {
	was := state.New().Edit()
	for _, o := range []struct {
		name, json string
		deps       []string
	}{{"a", `{"id":"i","name":"n","new":"1"}`, nil}, {"b", `{"id":"j","name":"i"}`, []string{"a"}}} {
		c := state.Change{
			Object:   addr.Object{Instance: addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: o.name}}.Instance(addr.Key{})},
			Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(o.json)},
		}
		for _, d := range o.deps {
			c.New.Dependencies = append(c.New.Dependencies, addr.ConfigResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: d}})
		}
		was.Apply(c)
	}
	both := was.Freeze()
	const b = "resource \"x_thing\" \"b\" {\n  name = x_thing.a.id\n}\n"
	for _, test := range []struct {
		name, text string
		state      *state.State
		mode       plan.Mode
		want       []string
	}{
		{"create", "resource \"x_thing\" \"a\" {}\n" + b, nil, plan.Normal, []string{"create a", "create b after create a"}},
		{"nothing", "resource \"x_thing\" \"a\" {\n  name = \"n\"\n  new = \"1\"\n}\n" + b, both, plan.Normal, nil},
		{"destroy", "resource \"x_thing\" \"a\" {}\n" + b, both, plan.Destroy, []string{"delete a after delete b", "delete b"}},
		{"orphans", "", both, plan.Normal, []string{"delete a after delete b", "delete b"}},
		{"replace", "resource \"x_thing\" \"a\" {\n  name = \"n\"\n  new = \"2\"\n}\n" + b, both, plan.Normal, []string{"create a after delete a", "delete a", "update b after create a"}},
		{"create before destroy", "resource \"x_thing\" \"a\" {\n  name = \"n\"\n  new = \"2\"\n  lifecycle {\n    create_before_destroy = true\n  }\n}\n" + b, both, plan.Normal, []string{"create a", "delete deposed a after create a, update b", "update b after create a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, ds := Make(context.Background(), Input{
				Eval:  eval.Options{Tree: plantest.Tree(t, test.text), Workspace: "default"},
				State: test.state, Options: plan.Options{Mode: test.mode}, Providers: resourceclient.Options{Providers: plantest.New()},
			})
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			if diff := cmp.Diff(test.want, orderOf(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// orderOf returns the actions of a plan with their direct predecessors.
func orderOf(p *plan.Plan) (out []string) {
	name := func(i int) string {
		a := p.Actions[i]
		return fmt.Sprintf("%s %s", map[plan.Kind]string{plan.StepCreate: "create", plan.StepUpdate: "update", plan.StepDelete: "delete", plan.StepDeleteDeposed: "delete deposed", plan.StepNoOp: "keep"}[a.Kind], p.Changes[a.Change].Addr.Resource.Name)
	}
	var before func(i int) []string
	before = func(i int) (out []string) {
		for _, n := range p.Actions[i].Needs {
			if p.Actions[n].Change < 0 {
				out = append(out, before(n)...)
			} else {
				out = append(out, name(n))
			}
		}
		return out
	}
	for i, a := range p.Actions {
		if a.Change < 0 {
			continue
		}
		text := name(i)
		if all := before(i); len(all) > 0 {
			slices.Sort(all)
			text += " after " + strings.Join(slices.Compact(all), ", ")
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}
