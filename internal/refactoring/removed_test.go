package refactoring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/eval"
	"github.com/terrace-iac/terrace/internal/plantest"
	"github.com/terrace-iac/terrace/internal/refactoring"
	"github.com/terrace-iac/terrace/source"
)

// Of finds what is said of an instance, wherever the block stands and whatever
// keys it gives; of several blocks the first counts.
func TestRemovalsOf(t *testing.T) {
	const text = `
module "kept" { source = "./m" }
removed {
  from = x_thing.a
  lifecycle { destroy = true }
}
removed {
  for_each = { k = 1, l = 2 }
  from     = x_thing.b[each.key]
  lifecycle { destroy = false }
}
removed {
  from = module.gone
  lifecycle { destroy = true }
}
removed {
  from = module.gone.x_thing.a
  lifecycle { destroy = false }
}
removed {
  for_each = { k = 1 }
  from     = module.some[each.key]
  lifecycle { destroy = false }
}
removed {
  from = module.deep.module.er.x_thing.a
  lifecycle { destroy = false }
}
-- m/main.tf --
removed {
  from = x_thing.inner
  lifecycle { destroy = false }
}
`
	tree := plantest.Tree(t, text)
	all, ds := refactoring.ReadRemovals(tree, eval.Options{Workspace: "default"}.Early())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	got := map[string]string{}
	for _, a := range []string{
		"x_thing.a", `x_thing.a["k"]`, "x_thing.a[3]", "x_thing.b", `x_thing.b["k"]`, `x_thing.b["m"]`, "x_thing.c",
		"module.gone.x_thing.a", `module.gone["z"].module.in[1].x_thing.q[2]`, `module.some["k"].x_thing.a`, `module.some["l"].x_thing.a`, "module.some.x_thing.a",
		`module.deep["a"].module.er[0].x_thing.a[1]`, "module.deep.x_thing.a", `module.kept["x"].x_thing.inner`, "module.kept.x_thing.other", "x_thing.inner",
	} {
		i, err := addr.ParseInstance(a)
		if err != nil {
			t.Fatal(err)
		}
		forget, found := all.Of(i)
		got[a] = map[[2]bool]string{{false, false}: "none", {false, true}: "destroy", {true, true}: "forget"}[[2]bool{forget, found}]
	}
	want := map[string]string{
		"x_thing.a": "destroy", `x_thing.a["k"]`: "destroy", "x_thing.a[3]": "destroy", "x_thing.b": "none", `x_thing.b["k"]`: "forget", `x_thing.b["m"]`: "none", "x_thing.c": "none",
		"module.gone.x_thing.a": "destroy", `module.gone["z"].module.in[1].x_thing.q[2]`: "destroy", `module.some["k"].x_thing.a`: "forget", `module.some["l"].x_thing.a`: "none", "module.some.x_thing.a": "none",
		`module.deep["a"].module.er[0].x_thing.a[1]`: "forget", "module.deep.x_thing.a": "none", `module.kept["x"].x_thing.inner`: "forget", "module.kept.x_thing.other": "none", "x_thing.inner": "none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if ds := all.StillWanted(addr.Instance{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: "b"}, Key: addr.Str("k")}, source.Range{}); len(ds) != 1 {
		t.Error("a wanted instance of for_each: ", ds)
	}
}

// The time that an instance takes is the same however many blocks there are.
func BenchmarkRemovals(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "removed {\n  from = x_thing.r%d\n}\n", i)
			}
			all, ds := refactoring.ReadRemovals(plantest.Tree(b, text.String()), eval.Options{Workspace: "default"}.Early())
			if ds.HasErrors() {
				b.Fatal(ds.Err())
			}
			i := instance(fmt.Sprint("r", n-1))
			b.ResetTimer()
			for range b.N {
				if _, found := all.Of(i); !found {
					b.Fatal("not found")
				}
			}
		})
	}
}
