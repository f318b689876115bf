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
	"github.com/terrace-iac/terrace/source"
)

// Of returns the instruction for an instance, in any order of blocks and for any keys. The
// block with the most specific address wins.
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
  from = module.gone.module.in
  lifecycle { destroy = false }
}
removed {
  for_each = { k = 1 }
  from     = x_thing.a[each.key]
  lifecycle { destroy = false }
}
removed {
  for_each = { k = 1 }
  from     = module.over[each.key]
  lifecycle { destroy = false }
}
removed {
  from = module.over.module.in
  lifecycle { destroy = true }
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
		"module.gone.x_thing.a", `module.gone["z"].module.in[1].x_thing.q[2]`, `module.gone["z"].module.out.x_thing.q[2]`, `module.some["k"].x_thing.a`, `module.some["l"].x_thing.a`, "module.some.x_thing.a",
		`module.deep["a"].module.er[0].x_thing.a[1]`, "module.deep.x_thing.a", `module.kept["x"].x_thing.inner`, "module.kept.x_thing.other", "x_thing.inner",
		`module.over["k"].x_thing.a`, `module.over["l"].module.in.x_thing.a`, `module.over["k"].module.in.x_thing.a`,
	} {
		i, err := addr.ParseInstance(a)
		if err != nil {
			t.Fatal(err)
		}
		forget, found, ds := all.Of(i)
		got[a] = map[[2]bool]string{{false, false}: "none", {false, true}: "destroy", {true, true}: "forget"}[[2]bool{forget, found}]
		if ds.HasErrors() {
			got[a] = "contradiction"
		}
	}
	want := map[string]string{
		"x_thing.a": "destroy", `x_thing.a["k"]`: "forget", "x_thing.a[3]": "destroy", "x_thing.b": "none", `x_thing.b["k"]`: "forget", `x_thing.b["m"]`: "none", "x_thing.c": "none",
		"module.gone.x_thing.a": "forget", `module.gone["z"].module.in[1].x_thing.q[2]`: "forget", `module.gone["z"].module.out.x_thing.q[2]`: "destroy", `module.some["k"].x_thing.a`: "forget", `module.some["l"].x_thing.a`: "none", "module.some.x_thing.a": "none",
		`module.deep["a"].module.er[0].x_thing.a[1]`: "forget", "module.deep.x_thing.a": "none", `module.kept["x"].x_thing.inner`: "forget", "module.kept.x_thing.other": "none", "x_thing.inner": "none",
		`module.over["k"].x_thing.a`: "forget", `module.over["l"].module.in.x_thing.a`: "destroy", `module.over["k"].module.in.x_thing.a`: "contradiction",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if ds := all.StillWanted(addr.Instance{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: "b"}, Key: addr.Str("k")}, source.Range{}); len(ds) != 1 {
		t.Error("a wanted instance of for_each: ", ds)
	}
}

// Blocks with different instructions for one address are an error, in any order.
func TestContradictoryRemovals(t *testing.T) {
	const destroy, keep = " lifecycle { destroy = true }\n", " lifecycle { destroy = false }\n"
	const run = " provisioner \"local-exec\" {\n when = destroy\n command = \"true\"\n }\n"
	block := func(from, text string) string { return "removed {\n from = " + from + "\n" + text + "}\n" }
	for _, c := range []struct {
		text string
		want int
	}{
		{block("x_thing.a", destroy) + block("x_thing.a", keep), 1},
		{block("x_thing.a", keep) + block("x_thing.a", destroy), 1},
		{block("x_thing.a", destroy) + block("x_thing.a", destroy), 0},
		{block("x_thing.a", destroy+run) + block("x_thing.a", destroy), 0},
		{block("x_thing.a", destroy+run) + block("x_thing.a", destroy+run), 1},
		{block("module.gone", destroy) + block("module.gone", keep), 1},
		{block("module.gone", destroy) + block("module.gone.x_thing.a", keep), 0},
		{"module \"m\" { source = \"./m\" }\n" + block("module.m.x_thing.a", destroy) + "-- m/main.tf --\n" + block("x_thing.a", keep), 1},
		{block("x_thing.a[each.key]", "for_each = { k = 1 }\n"+destroy) + block("x_thing.a[each.key]", "for_each = { k = 1, l = 2 }\n"+keep), 1},
		{block("x_thing.a[each.value]", "for_each = { k = 1, l = 1 }\n"+destroy), 0},
	} {
		_, ds := refactoring.ReadRemovals(plantest.Tree(t, c.text), eval.Options{Workspace: "default"}.Early())
		if len(ds) != c.want {
			t.Errorf("%s\n%d messages, want %d: %v", c.text, len(ds), c.want, ds)
		}
		for _, m := range ds {
			if m.Summary != "Contradictory removed blocks" || m.At == nil || len(m.Notes) != 1 || m.Notes[0].At == nil {
				t.Errorf("message %+v", m)
			}
		}
	}
}

// The time per instance is independent of the number of blocks.
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
				if _, found, _ := all.Of(i); !found {
					b.Fatal("not found")
				}
			}
		})
	}
}
