package refactoring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/plan/refactoring"
	"github.com/terrace-iac/terrace/state"
)

func instance(name string) addr.Instance {
	return addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: name}}.Instance(addr.Key{})
}

// If two blocks apply to an object, it is first moved inside its module, in any order of the
// blocks.
func TestApplyInModule(t *testing.T) {
	const text = `
module "z" { source = "./m" }
moved {
  from = module.a
  to   = module.z
}
moved {
  from = module.a.x_thing.b
  to   = module.a.x_thing.c
}
-- m/main.tf --
resource "x_thing" "c" {}
`
	at := func(module, name string) addr.Instance {
		i := instance(name)
		i.Module = addr.ModuleInstance("").Child(module, addr.Key{})
		return i
	}
	d := state.New().Edit()
	d.Apply(state.Change{Object: addr.Object{Instance: at("a", "b")}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(`{}`)}})
	out, ds := refactoring.Apply(plantest.Tree(t, text), eval.Options{Workspace: "default"}.Early(), d.Freeze())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if diff := cmp.Diff(map[addr.Instance]addr.Instance{at("z", "c"): at("a", "b")}, out.From); diff != "" {
		t.Error(diff)
	}
}

// holding returns a state with instances of the given names.
func holding(names ...string) *state.State {
	d := state.New().Edit()
	for _, name := range names {
		d.Apply(state.Change{Object: addr.Object{Instance: instance(name)}, Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("x")}, New: &state.Object{JSON: []byte(`{"id":"` + name + `"}`)}})
	}
	return d.Freeze()
}

func moved(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "moved {\n  from = x_thing.%s\n  to   = x_thing.%s\n}\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name    string
		text    string
		have    []string
		want    map[string]string // address to the original name of the object there
		blocked []string
	}{
		{"one", moved("a", "b"), []string{"a"}, map[string]string{"b": "a"}, nil},
		{"taken", moved("a", "b"), []string{"a", "b"}, map[string]string{"a": "a", "b": "b"}, []string{"a"}},
		{"a chain ends where it ends", moved("a", "b", "b", "c"), []string{"a"}, map[string]string{"c": "a"}, nil},
		{"what is in the way of a chain stays", moved("a", "b", "b", "c"), []string{"a", "c"}, map[string]string{"b": "a", "c": "c"}, []string{"b"}},
		{"who is nearer to the end of a chain gets there", moved("a", "b", "b", "c"), []string{"a", "b"}, map[string]string{"a": "a", "c": "b"}, []string{"a"}},
		{"in any order of the blocks", moved("b", "c", "a", "b"), []string{"a", "b"}, map[string]string{"a": "a", "c": "b"}, []string{"a"}},
		{"a step that is blocked ends the way", moved("a", "b", "b", "c", "c", "d"), []string{"a", "b", "c"}, map[string]string{"a": "a", "b": "b", "d": "c"}, []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ds := refactoring.Apply(plantest.Tree(t, c.text), eval.Options{Workspace: "default"}.Early(), holding(c.have...))
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			got := map[string]string{}
			for o, obj := range out.State.Objects() {
				got[o.Instance.Resource.Name] = strings.Trim(strings.TrimPrefix(string(obj.JSON), `{"id":`), `"}`)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			text := ""
			for _, m := range ds {
				text += m.Detail
			}
			for _, name := range c.blocked {
				if !strings.Contains(text, "x_thing."+name+" could not move") {
					t.Errorf("it is not said that %s could not move: %q", name, text)
				}
			}
			for to, from := range out.From {
				if got[to.Resource.Name] != from.Resource.Name {
					t.Errorf("it is said that %s was %s, which it was not", to, from)
				}
			}
		})
	}
}
