package affected_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

var (
	seeds     = flag.Int("seeds", 60, "number of random configurations that TestBruteForce changes and plans; a quarter of it for TestBruteForceEstates")
	firstSeed = flag.Int("first-seed", 0, "first seed of the random tests")
	verbose   = flag.Bool("files", false, "print the files of a failed seed of TestBruteForceEstates")
)

// providers returns the provider of package plantest for every address.
type providers struct{ plantest.Providers }

func (p providers) Factory(addr.Provider) (provider.Factory, diag.List) {
	return p.Script.Factory(), nil
}

// A spec is a random configuration. Changes are made to the spec, and not to its text.
type spec struct {
	vars    map[string]string // defaults
	locals  map[string]string // expressions
	things  map[string]*thing
	outputs map[string]string
	over    map[string]map[string]string // arguments in override.tf, by resource
	module  struct {
		repeat string // count or for_each with its value; ""
		input  string
		factor string
	}
	noise  int // changes comments, white space and the order of blocks
	rename string
}

type thing struct {
	repeat string
	args   map[string]string
}

// known returns a random expression without unknown parts, as text.
func (s *spec) known(r *rand.Rand, depth int) string {
	switch n := r.IntN(9); {
	case n < 3 || depth > 2:
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(5))))
	case n == 3:
		return "var." + pick(r, s.vars)
	case n == 4 && len(s.locals) > 0:
		return "local." + pick(r, s.locals)
	case n == 5:
		return fmt.Sprintf("\"${%s}-${%s}\"", s.known(r, depth+1), s.known(r, depth+1))
	case n == 6:
		return fmt.Sprintf("(%s == \"a\" ? %s : %s)", s.known(r, depth+1), s.known(r, depth+1), s.known(r, depth+1))
	case n == 7:
		return fmt.Sprintf("lookup(merge({ k = %s }, { %s = %s }), \"k\", \"none\")", s.known(r, depth+1), string(rune('j'+r.IntN(3))), s.known(r, depth+1))
	default:
		return fmt.Sprintf("upper(%s)", s.known(r, depth+1))
	}
}

// value returns a random expression that may refer to earlier resources.
func (s *spec) value(r *rand.Rand) string {
	refs := slices.DeleteFunc(slices.Sorted(maps.Keys(s.things)), func(n string) bool { return s.things[n].repeat != "" })
	if len(refs) == 0 || r.IntN(3) > 0 {
		return s.known(r, 0)
	}
	ref := "x_thing." + refs[r.IntN(len(refs))]
	return []string{ref + ".id", ref + ".name", "\"${" + ref + ".id}-x\"", "upper(" + ref + ".id)", "(" + s.known(r, 1) + " == \"a\" ? " + ref + ".id : " + s.known(r, 1) + ")"}[r.IntN(5)]
}

func pick[V any](r *rand.Rand, m map[string]V) string {
	names := slices.Sorted(maps.Keys(m))
	return names[r.IntN(len(names))]
}

func repeatOf(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("count = %d", r.IntN(3))
	case 1:
		return []string{`for_each = toset(["a", "b"])`, `for_each = toset(["b"])`, `for_each = { a = 1, c = 2 }`}[r.IntN(3)]
	}
	return ""
}

func random(r *rand.Rand) *spec {
	s := &spec{vars: map[string]string{"v1": `"a"`, "v2": `"b"`}, locals: map[string]string{}, things: map[string]*thing{}, outputs: map[string]string{}, over: map[string]map[string]string{}}
	for i := range 3 {
		s.locals[fmt.Sprintf("l%d", i)] = s.known(r, 0)
	}
	for i := range 2 + r.IntN(4) {
		t := &thing{repeat: repeatOf(r), args: map[string]string{"name": s.value(r)}}
		if r.IntN(2) == 0 {
			t.args["tags"] = fmt.Sprintf("{ one = %s, two = %s }", s.value(r), s.known(r, 0))
		}
		if t.repeat != "" && strings.HasPrefix(t.repeat, "for_each") && r.IntN(2) == 0 {
			t.args["new"] = `"${each.key}-n"`
		}
		s.things[fmt.Sprintf("t%d", i)] = t
	}
	if r.IntN(2) == 0 {
		s.over[pick(r, s.things)] = map[string]string{"name": s.known(r, 0)}
	}
	for i := range 2 {
		s.outputs[fmt.Sprintf("o%d", i)] = s.value(r)
	}
	s.module.repeat, s.module.input, s.module.factor = repeatOf(r), s.value(r), s.known(r, 0)
	return s
}

// change returns a changed copy. quiet means that the change cannot affect a value.
func (s *spec) change(r *rand.Rand) (out *spec, quiet bool) {
	n := *s
	n.vars, n.locals, n.outputs = maps.Clone(s.vars), maps.Clone(s.locals), maps.Clone(s.outputs)
	n.things, n.over = map[string]*thing{}, map[string]map[string]string{}
	for k, t := range s.things {
		n.things[k] = &thing{t.repeat, maps.Clone(t.args)}
	}
	for k, a := range s.over {
		n.over[k] = maps.Clone(a)
	}
	switch name := pick(r, n.things); r.IntN(11) {
	case 0:
		n.noise++
		return &n, true
	case 1:
		n.rename = "renamed_"
		return &n, true
	case 2:
		n.vars[pick(r, n.vars)] = fmt.Sprintf("%q", string(rune('a'+r.IntN(4))))
	case 3:
		n.locals["l2"] = fmt.Sprintf("%q", string(rune('a'+r.IntN(4))))
	case 4:
		n.things[name].args["name"] = n.known(r, 1)
	case 5:
		if !refersTo(s, name) {
			n.things[name].repeat = repeatOf(r)
			delete(n.things[name].args, "new")
		}
	case 6:
		n.things[name].args["tags"] = fmt.Sprintf("{ two = %s, three = \"x\" }", n.known(r, 1))
	case 7:
		n.over[name] = map[string]string{"name": n.known(r, 1)}
	case 8:
		n.module.repeat = repeatOf(r)
	case 9:
		n.module.factor = n.known(r, 1)
	default:
		n.outputs["o0"] = n.known(r, 1)
	}
	return &n, false
}

func refersTo(s *spec, name string) bool {
	text := s.files()["main.tf"].Data
	return strings.Contains(string(text), "x_thing."+name+".")
}

func (s *spec) files() fstest.MapFS {
	var b strings.Builder
	comment := func() {
		if s.noise%2 == 1 {
			b.WriteString("\n  # a comment\n\n")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.vars)) {
		comment()
		fmt.Fprintf(&b, "variable %q {\n  default = %s\n}\n", k, s.vars[k])
	}
	b.WriteString("locals {\n")
	for _, k := range slices.Sorted(maps.Keys(s.locals)) {
		comment()
		fmt.Fprintf(&b, "  %s = %s\n", k, s.locals[k])
	}
	b.WriteString("}\n")
	body := func(t *thing) {
		if t.repeat != "" {
			b.WriteString("  " + t.repeat + "\n")
		}
		for _, a := range slices.Sorted(maps.Keys(t.args)) {
			comment()
			fmt.Fprintf(&b, "  %s = %s\n", a, t.args[a])
		}
		b.WriteString("}\n")
	}
	names := slices.Sorted(maps.Keys(s.things))
	if s.noise%2 == 1 {
		slices.Reverse(names)
	}
	for _, k := range names {
		fmt.Fprintf(&b, "resource \"x_thing\" %q {\n", k)
		body(s.things[k])
	}
	fmt.Fprintf(&b, "module \"m\" {\n  source = \"./m\"\n  id = %s\n  factor = %s\n", s.module.input, s.module.factor)
	body(&thing{repeat: s.module.repeat})
	for _, k := range slices.Sorted(maps.Keys(s.outputs)) {
		fmt.Fprintf(&b, "output %q {\n  value = %s\n}\n", k, s.outputs[k])
	}
	main := b.String()
	b.Reset()
	for _, k := range slices.Sorted(maps.Keys(s.over)) {
		fmt.Fprintf(&b, "resource \"x_thing\" %q {\n", k)
		body(&thing{args: s.over[k]})
	}
	rename := func(text string) []byte {
		if s.rename != "" {
			text = strings.ReplaceAll(text, "local.l", "local."+s.rename+"l")
			for k := range s.locals {
				text = strings.ReplaceAll(text, "  "+k+" = ", "  "+s.rename+k+" = ")
			}
		}
		return []byte(text)
	}
	return fstest.MapFS{
		"main.tf": {Data: rename(main)}, "a_override.tf": {Data: rename(b.String())},
		"m/main.tf": {Data: []byte("variable \"id\" {}\nvariable \"factor\" { type = string }\nresource \"x_thing\" \"inner\" {\n  name = \"${var.id}/${var.factor}\"\n  tags = { id = var.id, factor = var.factor }\n}\noutput \"id\" { value = x_thing.inner.id }\n")},
	}
}

// open returns an engine for the configuration.
func open(t *testing.T, files fstest.MapFS) *engine.Engine {
	t.Helper()
	e, ds := tryOpen(t, files)
	if ds.HasErrors() {
		t.Fatalf("%s: %s\n%s", ds.Errors()[0].Summary, ds.Errors()[0].Detail, files["main.tf"].Data)
	}
	return e
}

// tryOpen is like open, but returns the errors of the configuration.
func tryOpen(t *testing.T, files fstest.MapFS) (*engine.Engine, diag.List) {
	t.Helper()
	e, ds := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Set: &source.Set{}, Sources: &engine.Sources{FS: files}, Providers: providers{plantest.New()}})
	if e != nil {
		t.Cleanup(e.Close)
	}
	return e, ds
}

// planned returns the planned values of the resources and outputs, from an empty state.
func planned(t *testing.T, e *engine.Engine) map[string]cty.Value {
	t.Helper()
	p, ds := e.Plan(t.Context(), nil, engine.PlanOptions{})
	if ds.HasErrors() {
		return nil
	}
	out := map[string]cty.Value{}
	for _, c := range p.Changes {
		if c.Op == plan.Create {
			out[c.Addr.String()], _ = c.After.UnmarkDeep()
		}
	}
	for _, o := range p.Outputs {
		out["output."+o.Name], _ = o.After.UnmarkDeep()
	}
	return out
}

// outlined returns the side of a comparison. With schemas, the schema of the provider is known.
func outlined(t *testing.T, e *engine.Engine, schemas bool) *affected.Side {
	t.Helper()
	o := engine.OutlineOptions{}
	if schemas {
		o.Schema = func(a addr.Provider) *schema.Provider {
			s, _ := e.Schema(context.WithoutCancel(t.Context()), a)
			return s
		}
	}
	x, ds := e.Outline(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Errors()[0].Detail)
	}
	return &affected.Side{Outlined: x, Show: func(file string) string { return file }}
}

// unknownAt reports whether the attribute at the beginning of a path has unknown parts.
func unknownAt(v cty.Value, path string) bool {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return v != cty.NilVal && !v.IsKnown()
	}
	name, _, _ := strings.Cut(path, ".")
	if !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return !v.IsWhollyKnown()
	}
	return !v.GetAttr(name).IsWhollyKnown()
}

// The differences between two random configurations are those between their plans from an empty
// state: none is missed, none is wrong, and only values with unknown parts may change. Without a
// schema, references to resources are unknown, so that more values may change.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	var counts struct{ pairs, different, objects, may, quiet, invalid int }
	for i := range *seeds {
		seed := *firstSeed + i
		for _, schemas := range []bool{true, false} {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			first := random(r)
			second, quiet := first, true
			for range 1 + r.IntN(2) {
				var q bool
				second, q = second.change(r)
				quiet = quiet && q
			}
			a, b := open(t, first.files()), open(t, second.files())
			before, after := planned(t, a), planned(t, b)
			if before == nil || after == nil {
				counts.invalid++
				continue
			}
			got := map[string]*affected.Object{}
			for _, o := range affected.Compare(t.Context(), outlined(t, a, schemas), outlined(t, b, schemas)) {
				got[o.Address] = o
			}
			fail := func(format string, args ...any) {
				t.Errorf("seed %d, schemas %t: %s\n%s%s----\n%s%s", seed, schemas, fmt.Sprintf(format, args...), first.files()["main.tf"].Data, first.files()["a_override.tf"].Data, second.files()["main.tf"].Data, second.files()["a_override.tf"].Data)
			}
			counts.pairs++
			if quiet {
				if counts.quiet++; len(got) > 0 {
					fail("differences %v", slices.Sorted(maps.Keys(got)))
				}
			}
			all := maps.Clone(before)
			maps.Copy(all, after)
			some := false
			for address := range all {
				x, okX := before[address]
				y, okY := after[address]
				differs := okX != okY || okX && !x.RawEquals(y)
				some = some || differs
				o := got[address]
				switch {
				case differs && o == nil:
					fail("%s is missed: %#v, %#v", address, x, y)
				case o == nil:
				case o.Action == affected.MayChange:
					counts.may++
					for _, c := range o.Changes {
						if schemas && !unknownAt(x, c.Path) && !unknownAt(y, c.Path) {
							fail("%s %s may change, but is known: %#v, %#v", address, c.Path, x, y)
						}
					}
				case !differs:
					fail("%s is not different: %v", address, o.Action)
				default:
					counts.objects++
				}
			}
			for address, o := range got {
				if (o.Kind == outline.Resource || o.Kind == outline.Output) && all[address] == cty.NilVal {
					fail("%s does not exist", address)
				}
			}
			if some {
				counts.different++
			}
		}
	}
	t.Logf("%+v", counts)
	if counts.pairs < *seeds/2 || counts.objects == 0 || counts.may == 0 || counts.quiet == 0 {
		t.Errorf("the seeds cover too little: %+v", counts)
	}
}
