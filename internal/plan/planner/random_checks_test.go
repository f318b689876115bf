package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// graphMaker generates random configurations in which modules, module outputs, depends_on and
// checks with data sources refer to one another.
type graphMaker struct {
	r     *rand.Rand
	files strings.Builder
	n     int // number of modules so far
}

func (g *graphMaker) chance(of int) bool { return g.r.IntN(of) == 0 }

func (g *graphMaker) one(of ...string) string { return of[g.r.IntN(len(of))] }

// module returns the text of a module with an output o and a variable a.
func (g *graphMaker) module(depth int, from string) string {
	var b strings.Builder
	values, names := []string{"var.a", `"x"`}, []string(nil)
	value := func() string { return g.one(values...) }
	after := func() {
		if len(names) > 0 && g.chance(3) {
			fmt.Fprintf(&b, "  depends_on = [%s]\n", g.one(names...))
		}
	}
	if g.chance(5) { // a name that is declared later, or never: a cycle or an error
		values = append(values, g.one("local.l1", "module.m1", "output.o", "local.l2"))
	}
	b.WriteString("variable \"a\" { default = null }\n")
	for i := range 2 + g.r.IntN(4) {
		switch kind := g.r.IntN(6); {
		case kind == 0:
			fmt.Fprintf(&b, "locals {\n  l%d = [%s, %s]\n}\n", i, value(), value())
			values = append(values, fmt.Sprint("local.l", i))
		case kind < 3 && depth > 0:
			g.n++
			dir := fmt.Sprint("d", g.n)
			fmt.Fprintf(&g.files, "-- %s/main.tf --\n%s", dir, g.module(depth-1, ".."))
			repeat := g.one("", "", "  count = 2\n", "  for_each = toset([\"k\"])\n")
			fmt.Fprintf(&b, "module \"m%d\" {\n  source = \"%s/%s\"\n  a = %s\n%s", i, from, dir, value(), repeat)
			after()
			b.WriteString("}\n")
			names = append(names, fmt.Sprint("module.m", i))
			values = append(values, fmt.Sprint("module.m", i))
			if repeat == "" {
				values = append(values, fmt.Sprintf("module.m%d.o", i))
			}
		case kind == 3:
			fmt.Fprintf(&b, "data \"x_thing\" \"d%d\" {\n  name = (%s) == null ? \"n\" : \"v\"\n", i, value())
			after()
			b.WriteString("}\n")
			names = append(names, fmt.Sprint("data.x_thing.d", i))
			values = append(values, fmt.Sprintf("data.x_thing.d%d.id", i))
		default:
			fmt.Fprintf(&b, "resource \"x_thing\" \"r%d\" {\n  name = (%s) == null ? \"n\" : \"v\"\n", i, value())
			after()
			b.WriteString("}\n")
			names = append(names, fmt.Sprint("x_thing.r", i))
			values = append(values, fmt.Sprintf("x_thing.r%d.name", i), fmt.Sprintf("x_thing.r%d.id", i))
		}
	}
	for i := range g.r.IntN(3) {
		fmt.Fprintf(&b, "check \"c%d\" {\n  data \"x_thing\" \"c%d\" {\n    name = %s\n", i, i, g.one(`"c"`, "("+value()+") == null ? \"n\" : \"v\""))
		if len(names) > 0 && g.chance(4) {
			fmt.Fprintf(&b, "    depends_on = [%s]\n", g.one(names...))
		}
		fmt.Fprintf(&b, "  }\n  assert {\n    condition     = data.x_thing.c%d.id != ((%s) == null ? \"n\" : \"v\")\n    error_message = \"no\"\n  }\n}\n", i, value())
	}
	fmt.Fprintf(&b, "output \"o\" {\n  value = %s\n", value())
	after()
	b.WriteString("}\n")
	return b.String()
}

// Planning always ends, and its result does not depend on which tasks run concurrently.
func TestRandomChecksEnd(t *testing.T) {
	count := 150
	if testing.Short() {
		count = 20
	}
	for seed := range uint64(count) {
		g := &graphMaker{r: rand.New(rand.NewPCG(seed, 5))}
		root := g.module(2, ".")
		text := root + g.files.String()
		var first string
		for _, parallelism := range []int{1, 10, 2} {
			got := planWithin(t, seed, text, parallelism, nil)
			if first == "" {
				first = got
			} else if diff := cmp.Diff(first, got); diff != "" {
				t.Fatalf("seed %d, %d at a time, -one at a time:\n%s\n%s", seed, parallelism, diff, text)
			}
		}
	}
}

// planWithin plans a configuration. The test fails if planning does not end.
func planWithin(t *testing.T, seed uint64, text string, parallelism int, prior *state.State) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	providers := plantest.New()
	read := func(v cty.Value) (cty.Value, diag.List) {
		runtime.Gosched()
		m := v.AsValueMap()
		m["id"] = cty.StringVal("read")
		return cty.ObjectVal(m), nil
	}
	providers.Data["x_thing"].Read = read
	done := make(chan string, 1)
	go func() {
		p, ds := Make(ctx, Input{
			Eval: eval.Options{Tree: plantest.Tree(t, text), Workspace: "default"}, State: prior,
			Providers: resourceclient.Options{Providers: providers, Parallelism: parallelism},
		})
		done <- described(p, ds)
	}()
	select {
	case got := <-done:
		return got
	case <-time.After(2 * time.Minute):
		buf := make([]byte, 1<<16)
		t.Fatalf("seed %d: planning does not end:\n%s\n%s", seed, text, buf[:runtime.Stack(buf, true)])
		return ""
	}
}

// described returns a text with all visible parts of a plan.
func described(p *plan.Plan, ds diag.List) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintln(&b, c.Addr, c.Op, c.Reason)
	}
	for _, c := range p.Checks {
		fmt.Fprintln(&b, c.Addr, c.Status)
	}
	for _, a := range p.Actions {
		fmt.Fprintln(&b, a.Kind, a.Change, a.Needs)
	}
	for _, m := range ds {
		fmt.Fprintln(&b, m.Severity, m.Summary, m.Detail, m.At)
	}
	return b.String()
}
