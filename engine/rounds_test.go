package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// roundsMaker generates random configurations of terraform_data in which the number of
// instances, the keys and whether blocks exist depend on outputs of other blocks. The outputs
// of terraform_data are unknown until it is applied, and equal to its input: the same text with
// input in place of output is known from the start.
type roundsMaker struct {
	r       *rand.Rand
	numbers []string // expressions of small numbers
	texts   []string // expressions of strings
	sets    []string // expressions of sets of strings
	blocks  []string // addresses for depends_on
	change  int      // added to some numbers and texts, for a second version of the configuration
	modules map[string]string
}

func (g *roundsMaker) chance(of int) bool { return g.r.IntN(of) == 0 }

func (g *roundsMaker) one(of []string) string { return of[g.r.IntN(len(of))] }

// config returns the text of the root module.
func (g *roundsMaker) config() string {
	g.numbers, g.texts, g.sets = []string{"1"}, []string{`"t"`}, []string{`toset(["k"])`}
	var b strings.Builder
	for i := range 2 {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"n%d\" {\n  input = %d\n}\n", i, (g.r.IntN(3)+g.change*g.r.IntN(3))%4)
		g.numbers = append(g.numbers, fmt.Sprintf("terraform_data.n%d.output", i))
		g.blocks = append(g.blocks, fmt.Sprintf("terraform_data.n%d", i))
	}
	for i := range 3 + g.r.IntN(6) {
		if g.chance(4) {
			g.module(&b, i)
		} else {
			g.resource(&b, i)
		}
	}
	fmt.Fprintf(&b, "output \"number\" {\n  value = %s\n}\noutput \"text\" {\n  value = %s\n}\n", g.one(g.numbers), g.one(g.texts))
	fmt.Fprintf(&b, "check \"c\" {\n  assert {\n    condition     = terraform_data.n0.output >= 0 && length(%s) >= 0\n    error_message = \"no\"\n  }\n}\n", g.one(g.sets))
	return b.String()
}

// repeat writes a random repetition and returns its form: "", "count", "for_each", "known key",
// which is for_each with the key "k" and an unknown one, or "enabled".
func (g *roundsMaker) repeat(b *strings.Builder, enabled bool) string {
	switch n := g.r.IntN(7); {
	case n < 3:
		fmt.Fprintf(b, "  count = %s\n", g.one(g.numbers))
		return "count"
	case n == 3:
		fmt.Fprintf(b, "  for_each = toset([\"k\", md5(%s)])\n", g.one(g.texts))
		return "known key"
	case n == 4:
		fmt.Fprintf(b, "  for_each = %s\n", g.one(g.sets))
		return "for_each"
	case n == 5 && enabled:
		fmt.Fprintf(b, "  lifecycle {\n    enabled = %s > 1\n  }\n", g.one(g.numbers))
		return "enabled"
	}
	return ""
}

func (g *roundsMaker) resource(b *strings.Builder, i int) {
	name := fmt.Sprintf("terraform_data.b%d", i)
	fmt.Fprintf(b, "resource \"terraform_data\" \"b%d\" {\n", i)
	form := g.repeat(b, true)
	key := map[string]string{"count": "-${count.index}", "for_each": "-${each.key}", "known key": "-${each.key}"}[form]
	fmt.Fprintf(b, "  input = \"b%d%s/${md5(%s)}\"\n", i, key, g.one(g.texts))
	if g.chance(3) {
		fmt.Fprintf(b, "  triggers_replace = %s\n", g.one(append(g.texts, strconv.Quote(fmt.Sprint(g.change)))))
	}
	if g.chance(4) {
		fmt.Fprintf(b, "  depends_on = [%s]\n", g.one(g.blocks))
	}
	if g.chance(4) && form != "enabled" {
		b.WriteString("  lifecycle {\n    create_before_destroy = true\n  }\n")
	}
	b.WriteString("}\n")
	g.blocks = append(g.blocks, name)
	switch form {
	case "":
		g.texts = append(g.texts, name+".output")
	case "enabled":
		g.texts = append(g.texts, fmt.Sprintf("try(%s.output, \"none\")", name))
	case "count":
		g.numbers = append(g.numbers, fmt.Sprintf("min(3, length(%s))", name))
		g.texts = append(g.texts, fmt.Sprintf("join(\",\", %s[*].output)", name))
		g.sets = append(g.sets, fmt.Sprintf("toset([for x in %s : md5(x.output)])", name))
	case "known key":
		g.texts = append(g.texts, name+"[\"k\"].output")
	case "for_each":
		g.numbers = append(g.numbers, fmt.Sprintf("min(3, length(%s))", name))
		g.sets = append(g.sets, fmt.Sprintf("toset(keys(%s))", name), fmt.Sprintf("toset([for x in values(%s) : md5(x.output)])", name))
	}
}

func (g *roundsMaker) module(b *strings.Builder, i int) {
	name := fmt.Sprintf("m%d", i)
	g.modules[name] = "variable \"t\" {}\nvariable \"n\" {}\nresource \"terraform_data\" \"x\" {\n  input = var.t\n}\n" +
		"resource \"terraform_data\" \"y\" {\n  count = var.n\n  input = \"${terraform_data.x.output}-${count.index}\"\n}\n" +
		"output \"o\" {\n  value = terraform_data.x.output\n}\noutput \"n\" {\n  value = length(terraform_data.y)\n}\n"
	fmt.Fprintf(b, "module %q {\n  source = \"./%s\"\n", name, name)
	form := g.repeat(b, false)
	fmt.Fprintf(b, "  t = %s\n  n = %s\n", g.one(g.texts), g.one(g.numbers))
	if g.chance(4) {
		fmt.Fprintf(b, "  depends_on = [%s]\n", g.one(g.blocks))
	}
	b.WriteString("}\n")
	g.blocks = append(g.blocks, "module."+name)
	switch form {
	case "":
		g.texts = append(g.texts, "module."+name+".o")
		g.numbers = append(g.numbers, "min(3, module."+name+".n)")
	case "count":
		g.numbers = append(g.numbers, fmt.Sprintf("min(3, length(module.%s))", name))
		g.sets = append(g.sets, fmt.Sprintf("toset([for x in module.%s[*].o : md5(x)])", name))
	case "known key":
		g.texts = append(g.texts, fmt.Sprintf("module.%s[\"k\"].o", name))
	case "for_each":
		g.sets = append(g.sets, fmt.Sprintf("toset(keys(module.%s))", name))
	}
}

// roundsVersions returns two versions of the configuration of a seed, by file.
func roundsVersions(seed uint64) [2]map[string]string {
	var out [2]map[string]string
	for i := range out {
		g := &roundsMaker{r: rand.New(rand.NewPCG(seed, 1)), change: i, modules: map[string]string{}}
		out[i] = map[string]string{"main.tf": g.config()}
		for name, text := range g.modules {
			out[i][filepath.Join(name, "main.tf")] = text
		}
	}
	return out
}

// roundsRun applies configurations in one directory.
type roundsRun struct {
	t      *testing.T
	state  *state.State
	defers bool
	rounds int // the largest number of rounds of an apply
}

// apply applies a configuration until nothing is deferred.
func (x *roundsRun) apply(files map[string]string, mode plan.Mode) {
	t := x.t
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if !x.defers {
			text = strings.ReplaceAll(text, ".output", ".input")
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), files["main.tf"])
	}
	e, ds := engine.Open(t.Context(), engine.Options{Dir: dir})
	if ds.HasErrors() {
		fail("open: %v", ds.Err())
	}
	defer e.Close()
	for round := 1; ; round++ {
		p, ds := e.Plan(t.Context(), x.state, engine.PlanOptions{Options: plan.Options{Mode: mode, Defer: x.defers}})
		if ds.HasErrors() {
			fail("plan of round %d: %v", round, ds.Err())
		}
		if len(p.Deferred) > 0 && !p.Changing() {
			fail("round %d applies nothing, and defers %v", round, p.Deferred)
		}
		res, ds := e.Apply(t.Context(), p, engine.ApplyOptions{})
		if ds.HasErrors() {
			fail("apply of round %d: %v\n%v\n%v", round, ds.Err(), changesOf(p), p.Deferred)
		}
		if surprise := unplanned(p, res.State); surprise != "" {
			fail("round %d: %s", round, surprise)
		}
		x.state = res.State
		if len(p.Deferred) == 0 {
			x.rounds = max(x.rounds, round)
			break
		}
	}
	if p, _ := e.Plan(t.Context(), x.state, engine.PlanOptions{Options: plan.Options{Mode: mode}}); p.HasChanges() {
		fail("a plan after the last round has changes: %v", changesOf(p))
	}
}

func changesOf(p *plan.Plan) (out []string) {
	for _, c := range p.Changes {
		if c.Op != plan.NoOp {
			out = append(out, fmt.Sprint(c.Addr, " ", c.Op))
		}
	}
	return out
}

// unplanned returns a sentence about an object in the new state that the plan did not contain,
// or "".
func unplanned(p *plan.Plan, now *state.State) string {
	ops := map[addr.Object]plan.Op{}
	for _, c := range p.Changes {
		ops[addr.Object{Instance: c.Addr, Deposed: c.Deposed}] = c.Op
	}
	for o, obj := range now.Objects() {
		old, _, ok := p.Prior.Object(o)
		op := ops[o]
		switch {
		case !ok && o.Deposed != "" && ops[addr.Object{Instance: o.Instance}] == plan.CreateThenDelete: // destroyed later
		case !ok && op != plan.Create:
			return fmt.Sprintf("%s was created, and the plan says %s", o, op)
		case ok && string(old.JSON) != string(obj.JSON) && op != plan.Update && !op.IsReplace():
			return fmt.Sprintf("%s was changed, and the plan says %s", o, op)
		}
	}
	for o := range p.Prior.Objects() {
		if _, _, ok := now.Object(o); !ok && ops[o] != plan.Delete {
			return fmt.Sprintf("%s was destroyed, and the plan says %s", o, ops[o])
		}
	}
	return ""
}

// described returns the objects and outputs of the state, without IDs.
func (x *roundsRun) described() string {
	var lines []string
	for a, i := range x.state.Instances() {
		lines = append(lines, fmt.Sprintf("%s deposed %d", a, len(i.Deposed)))
		if i.Current == nil {
			continue
		}
		var attrs map[string]any
		if err := json.Unmarshal(i.Current.JSON, &attrs); err != nil {
			x.t.Fatal(err)
		}
		delete(attrs, "id")
		text, _ := json.Marshal(attrs)
		lines = append(lines, fmt.Sprintf("%s %s needs %v, first %t, tainted %t", a, text, i.Current.Dependencies, i.Current.CreateBeforeDestroy, i.Current.Tainted))
	}
	for name, o := range x.state.Outputs {
		lines = append(lines, fmt.Sprintf("output %s %#v", name, o.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Configurations with unknown numbers of instances, applied in rounds, end in the same state as
// the same configurations with everything known from the start. No round does what its plan
// does not contain. TERRACE_TEST_ROUNDS is the number of configurations.
func TestRoundsEndAlike(t *testing.T) {
	count := 12
	if n, err := strconv.Atoi(os.Getenv("TERRACE_TEST_ROUNDS")); err == nil {
		count = n
	}
	most, ran := 0, 0
	for seed := range uint64(count) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rounds, known := &roundsRun{t: t, defers: true}, &roundsRun{t: t}
			for i, files := range roundsVersions(seed) {
				known.apply(files, plan.Normal)
				rounds.apply(files, plan.Normal)
				if d := cmp.Diff(known.described(), rounds.described()); d != "" {
					t.Fatalf("version %d, -known from the start +in rounds:\n%s\n%s", i, d, files["main.tf"])
				}
				if i == 1 {
					rounds.apply(files, plan.Destroy)
				}
			}
			most, ran = max(most, rounds.rounds), ran+1
		})
	}
	if most < 3 && ran == count {
		t.Errorf("no configuration needed more than %d rounds, which tests little", most)
	}
}
