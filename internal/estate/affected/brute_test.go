package affected_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/workdir"
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
	noise  int                 // changes comments, white space and the order of blocks
	after  bool                // things have depends_on with the resources to which their arguments refer
	waits  map[string][]string // elements of depends_on: names of things, by the address of the block; see waiting
	data   string              // an argument of the data source, which an output reads
	rename string
	disk   map[string]string // files that functions read, by path relative to the configuration
	inner  string            // an expression in the called module
	above  string            // prefix of the names of files above the configuration
	open   bool              // instances of some blocks are unknown, so that the configuration cannot be planned
}

type thing struct {
	repeat string
	args   map[string]string
}

// known returns a random expression without unknown parts, as text.
func (s *spec) known(r *rand.Rand, depth int) string {
	switch n := r.IntN(12); {
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
	case n == 8:
		return fmt.Sprintf("upper(%s)", s.known(r, depth+1))
	default:
		return s.reading(r, depth)
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
	switch r.IntN(5) {
	case 4:
		return []string{`for_each = fileset("${path.module}/set", "*.txt")`, `count = length(fileset(path.module, "**/*.txt")) % 3`}[r.IntN(2)]
	case 0:
		return fmt.Sprintf("count = %d", r.IntN(3))
	case 1:
		return []string{`for_each = toset(["a", "b"])`, `for_each = toset(["b"])`, `for_each = { a = 1, c = 2 }`}[r.IntN(3)]
	}
	return ""
}

func random(r *rand.Rand) *spec {
	s := &spec{above: string(rune('p' + r.IntN(8))), vars: map[string]string{"v1": `"a"`, "v2": `"b"`}, locals: map[string]string{}, things: map[string]*thing{}, outputs: map[string]string{}, over: map[string]map[string]string{}}
	s.disk = map[string]string{}
	for _, name := range s.names() {
		if r.IntN(3) > 0 {
			s.disk[name] = content(r, name)
		}
	}
	s.inner = s.reading(r, 2)
	for i := range 3 {
		s.locals[fmt.Sprintf("l%d", i)] = s.known(r, 0)
	}
	for i := range 2 + r.IntN(4) {
		t := &thing{repeat: repeatOf(r), args: map[string]string{"name": s.value(r)}}
		if r.IntN(2) == 0 {
			t.args["tags"] = hide(r, fmt.Sprintf("{ one = %s, two = %s }", s.value(r), s.known(r, 0)))
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
	s.open = r.IntN(12) == 0
	s.data, s.waits = s.known(r, 0), map[string][]string{}
	for range r.IntN(4) {
		s.changeWaits(r)
	}
	s.module.repeat, s.module.input, s.module.factor = repeatOf(r), s.value(r), s.known(r, 0)
	return s
}

// change returns a changed copy. quiet means that the change cannot affect a value.
func (s *spec) change(r *rand.Rand) (out *spec, quiet bool) {
	n := *s
	n.disk, n.waits = maps.Clone(s.disk), maps.Clone(s.waits)
	n.vars, n.locals, n.outputs = maps.Clone(s.vars), maps.Clone(s.locals), maps.Clone(s.outputs)
	n.things, n.over = map[string]*thing{}, map[string]map[string]string{}
	for k, t := range s.things {
		n.things[k] = &thing{t.repeat, maps.Clone(t.args)}
	}
	for k, a := range s.over {
		n.over[k] = maps.Clone(a)
	}
	switch name := pick(r, n.things); r.IntN(22) {
	case 0:
		if n.after = n.after != (r.IntN(2) == 0); n.after == s.after {
			n.noise++
		}
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
		n.things[name].args["tags"] = hide(r, fmt.Sprintf("{ two = %s, three = \"x\" }", n.known(r, 1)))
	case 7:
		n.over[name] = map[string]string{"name": n.known(r, 1)}
	case 8:
		n.module.repeat = repeatOf(r)
	case 9:
		n.module.factor = n.known(r, 1)
	case 10:
		n.outputs["o0"] = n.known(r, 1)
	case 11:
		n.inner = n.reading(r, 2)
	case 16:
		if tags := n.things[name].args["tags"]; tags != "" {
			n.things[name].args["tags"] = "sensitive(" + tags + ")"
			return &n, true
		}
	case 17:
		if tags := n.things[name].args["tags"]; tags != "" {
			n.things[name].args["tags"] = hide(r, "merge("+tags+", { two = "+n.known(r, 1)+" })")
		}
	case 12:
		n.data = n.known(r, 1)
	case 13, 14, 15:
		return &n, n.changeWaits(r)
	default:
		return &n, n.changeFile(r)
	}
	return &n, false
}

func refersTo(s *spec, name string) bool {
	text := s.files()["main.tf"].Data
	return strings.Contains(string(text), "x_thing."+name+".")
}

// hide returns an expression, or one with the same value that is sensitive.
func hide(r *rand.Rand, text string) string {
	if r.IntN(3) == 0 {
		return "sensitive(" + text + ")"
	}
	return text
}

// changeWaits adds an element to depends_on of a block, or removes it. quiet means that the block refers to the
// resource anyway.
func (s *spec) changeWaits(r *rand.Rand) (quiet bool) {
	blocks := slices.Concat([]string{"module.m", "data.x_thing.d", "output.o0", "output.o1"}, s.blocks())
	block := blocks[r.IntN(len(blocks))]
	to := s.blocks()
	if n := slices.Index(to, block); n >= 0 { // things refer to things before them
		to = to[:n]
	}
	if len(to) == 0 {
		return true
	}
	before, name := s.waiting(block), to[r.IntN(len(to))]
	if list := s.waits[block]; slices.Contains(list, name) && r.IntN(3) > 0 {
		s.waits[block] = slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == name })
	} else {
		s.waits[block] = slices.Insert(slices.Clone(list), r.IntN(len(list)+1), name)
	}
	return slices.Equal(before, s.waiting(block))
}

// blocks returns the addresses of the things, sorted.
func (s *spec) blocks() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.things)) {
		out = append(out, "x_thing."+name)
	}
	return out
}

// refers returns the things to which the arguments of a block refer. Arguments of a module or a data source
// let none of its objects wait.
func (s *spec) refers(block string) []string {
	kind, name, _ := strings.Cut(block, ".")
	switch kind {
	case "x_thing":
		return references.FindAllString(strings.Join(slices.Collect(maps.Values(s.things[name].args)), " "), -1)
	case "output":
		return references.FindAllString(s.outputs[name], -1)
	}
	return nil
}

// waiting returns the things for which a block waits because of depends_on only. References in a block that an
// override file changes do not count.
func (s *spec) waiting(block string) (out []string) {
	refs := s.refers(block)
	if s.over[strings.TrimPrefix(block, "x_thing.")] != nil {
		refs = nil
	}
	for _, name := range s.waits[block] {
		if !slices.Contains(refs, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkWaits compares the differences that were found in depends_on with those of two configurations. It considers
// the blocks of which both configurations have an instance, and returns the number of differences. It deletes the
// objects from got that differ in nothing else.
func checkWaits(first, second *spec, got map[string]*affected.Object, both func(address string) bool, fail func(string, ...any)) (n int) {
	found := map[string]bool{}
	for address, o := range got {
		block, _, _ := strings.Cut(address, "[")
		if len(o.Changes) > 0 {
			o.Changes = slices.DeleteFunc(o.Changes, func(c *affected.Change) bool {
				if c.Path == "depends_on" {
					found[block] = true
				}
				return c.Path == "depends_on"
			})
			if len(o.Changes) == 0 {
				delete(got, address)
			} else if !slices.ContainsFunc(o.Changes, func(c *affected.Change) bool { return c.Action != affected.MayChange }) {
				o.Action = affected.MayChange
			}
		}
	}
	for _, block := range slices.Concat([]string{"module.m", "data.x_thing.d", "output.o0", "output.o1"}, first.blocks()) {
		if second.things[strings.TrimPrefix(block, "x_thing.")] == nil && strings.HasPrefix(block, "x_thing.") {
			continue
		}
		a, b := first.waiting(block), second.waiting(block)
		differs := !slices.Equal(a, b)
		if differs {
			n++
		}
		if found[block] && !differs {
			fail("depends_on of %s adds %v in both", block, a)
		}
		if differs && !found[block] && (!strings.HasPrefix(block, "x_thing.") || both(block)) {
			fail("depends_on of %s is missed: %v, %v", block, a, b)
		}
	}
	return n
}

var references = regexp.MustCompile(`x_thing\.t[0-9]+`)

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
	waits := func(refs []string) {
		refs = slices.Clone(refs)
		if s.noise%2 == 1 {
			slices.Reverse(refs)
		}
		if len(refs) > 0 {
			fmt.Fprintf(&b, "  depends_on = [%s]\n", strings.Join(refs, ", "))
		}
	}
	for _, k := range names {
		fmt.Fprintf(&b, "resource \"x_thing\" %q {\n", k)
		refs := s.waits["x_thing."+k]
		if s.after && s.over[k] == nil {
			refs = slices.Concat(refs, s.refers("x_thing."+k))
		}
		waits(refs)
		body(s.things[k])
	}
	fmt.Fprintf(&b, "module \"m\" {\n  source = \"./m\"\n  id = %s\n  factor = %s\n", s.module.input, s.module.factor)
	waits(s.waits["module.m"])
	body(&thing{repeat: s.module.repeat})
	for _, k := range slices.Sorted(maps.Keys(s.outputs)) {
		fmt.Fprintf(&b, "output %q {\n  value = %s\n", k, s.outputs[k])
		waits(s.waits["output."+k])
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "output \"read\" {\n  value = data.x_thing.d.id\n}\ndata \"x_thing\" \"d\" {\n  name = %s\n", s.data)
	waits(s.waits["data.x_thing.d"])
	b.WriteString("}\n")
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
	out := fstest.MapFS{
		"main.tf": {Data: rename(main)}, "a_override.tf": {Data: rename(b.String())},
		"m/main.tf": {Data: []byte("variable \"id\" {}\nvariable \"factor\" { type = string }\ndata \"x_thing\" \"read\" {\n  name = var.factor\n}\nresource \"x_thing\" \"inner\" {\n  old = data.x_thing.read.id\n  name = \"${var.id}/${var.factor}\"\n  tags = { id = var.id, factor = var.factor, file = " + s.inner + " }\n}\noutput \"id\" { value = x_thing.inner.id }\n")},
	}
	if s.open {
		out["open.tf"] = &fstest.MapFile{Data: []byte(openBlocks)}
	}
	for name, text := range s.disk {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// written writes files in a directory and returns its path. Names may begin with "..".
func written(t *testing.T, files fstest.MapFS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "top", "dir")
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// patched returns the difference of files from those on disk below a directory, as git shows it.
func patched(dir, root string, disk, files fstest.MapFS) *readfile.Patch {
	p := readfile.NewPatch(root)
	left := map[string]bool{}
	for name := range files {
		for up := filepath.Join(dir, name); up != root; up = filepath.Dir(up) {
			left[up] = true
		}
	}
	for name := range disk {
		for up := filepath.Join(dir, name); up != root; up = filepath.Dir(up) {
			if !left[up] {
				p.Hide(up)
			}
		}
	}
	for name, f := range files {
		if was := disk[name]; was == nil || string(was.Data) != string(f.Data) {
			p.Put(filepath.Join(dir, name), 0o644, func() ([]byte, error) { return f.Data, nil })
		}
	}
	return p
}

// tryOpen returns an engine for the configuration in a directory, with the differences of a revision,
// or the errors of the configuration.
func tryOpen(t *testing.T, dir string, p *readfile.Patch) (*engine.Engine, diag.List) {
	t.Helper()
	o := engine.Options{Dir: dir, Set: &source.Set{}, Providers: providers{plantest.New()}}
	if p != nil {
		files := (*readfile.Kept)(nil).Patched(p)
		d := &workdir.Directory{Dir: dir, Files: files}
		o.Sources, o.ReadFile, o.Stat, o.ReadDir, o.Readlink = d.NewSources(), files.Whole, files.Stat, files.ReadDir, files.Readlink
	}
	e, ds := engine.Open(t.Context(), o)
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
			out[c.Addr.String()] = bare(c.After)
		}
	}
	for _, o := range p.Outputs {
		out["output."+o.Name] = bare(o.After)
	}
	return out
}

// bare returns a value without marks, and without what is known about unknown parts: a merge of a known value
// with an unknown one may be null, which the unknown one is not.
func bare(v cty.Value) cty.Value {
	v, _ = v.UnmarkDeep()
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.UnknownVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		panic(err)
	}
	return v
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

// reads reports whether a value is the result of a data source, which the plan reads.
func reads(address string, c *affected.Change) bool {
	return address == "output.read" || c.Path == "old"
}

// certain reports whether two maps at a path of one name differ in a known part.
func certain(x, y cty.Value, path string) bool {
	for _, pair := range [][2]*cty.Value{{&x, &y}, {&y, &x}} {
		a, b := *pair[0], *pair[1]
		if a == cty.NilVal || b == cty.NilVal || !a.IsKnown() || !b.IsKnown() || !a.Type().IsObjectType() || !a.Type().HasAttribute(path) || !b.Type().HasAttribute(path) {
			return false
		}
		if a, b = a.GetAttr(path), b.GetAttr(path); !a.IsKnown() || !b.IsKnown() || a.IsNull() || b.IsNull() || !a.Type().IsMapType() || !b.Type().IsMapType() {
			return false
		}
		for key, el := range a.AsValueMap() {
			other, ok := b.AsValueMap()[key]
			if !ok || el.IsKnown() && other.IsKnown() && !el.RawEquals(other) {
				return true
			}
		}
	}
	return false
}

// The differences between two random configurations are those between their plans from an empty
// state: none is missed, none is wrong, and only values with unknown parts may change. Without a
// schema, references to resources are unknown, so that more values may change.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	var counts struct{ pairs, different, objects, may, quiet, invalid, open, waits int }
	one := func(t *testing.T, seed int) {
		for _, schemas := range []bool{true, false} {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			first := random(r)
			second, quiet := first, true
			for range 1 + r.IntN(2) {
				var q bool
				second, q = second.change(r)
				quiet = quiet && q
			}
			// The first configuration is on disk, or is a difference of the second one.
			one, two := first.files(), second.files()
			dirOne, dirTwo := written(t, one), written(t, two)
			a, ds := tryOpen(t, dirOne, nil)
			b, more := tryOpen(t, dirTwo, nil)
			if ds = append(ds, more...); ds.HasErrors() {
				t.Fatalf("%s: %s\n%s", ds.Errors()[0].Summary, ds.Errors()[0].Detail, one["main.tf"].Data)
			}
			base := a
			if seed%2 == 0 {
				if base, ds = tryOpen(t, dirTwo, patched(dirTwo, filepath.Dir(dirTwo), two, one)); ds.HasErrors() {
					t.Fatalf("seed %d: %s", seed, ds.Err())
				}
			}
			before, after := planned(t, a), planned(t, b)
			if before == nil || after == nil {
				counts.invalid++
				if quiet && first.open {
					counts.open++
					if all := affected.Compare(t.Context(), outlined(t, base, schemas), outlined(t, b, schemas)); len(all) > 0 {
						t.Errorf("seed %d, schemas %t: a quiet change: %v", seed, schemas, describe([]*affected.Unit{{Objects: all}}))
					}
				}
				continue
			}
			got := map[string]*affected.Object{}
			for _, o := range affected.Compare(t.Context(), outlined(t, base, schemas), outlined(t, b, schemas)) {
				got[o.Address] = o
			}
			fail := func(format string, args ...any) {
				t.Errorf("seed %d, schemas %t: %s\n%s%s", seed, schemas, fmt.Sprintf(format, args...), textOf(one), textOf(two))
			}
			counts.pairs++
			if quiet {
				if counts.quiet++; len(got) > 0 {
					fail("differences %v", slices.Sorted(maps.Keys(got)))
				}
			}
			all := maps.Clone(before)
			maps.Copy(all, after)
			counts.waits += checkWaits(first, second, got, func(block string) bool {
				for address := range before {
					if name, _, _ := strings.Cut(address, "["); name == block && after[address] != cty.NilVal {
						return true
					}
				}
				return false
			}, fail)
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
						if schemas && certain(x, y, c.Path) {
							fail("%s %s may change, but known parts differ: %#v, %#v", address, c.Path, x, y)
						}
						if schemas && !reads(address, c) && !unknownAt(x, c.Path) && !unknownAt(y, c.Path) {
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
				if (o.Kind == outline.Resource && !strings.Contains(address, "data.") || o.Kind == outline.Output) && all[address] == cty.NilVal {
					fail("%s does not exist", address)
				}
			}
			if some {
				counts.different++
			}
		}
	}
	for i := range *seeds {
		t.Run(fmt.Sprint(*firstSeed+i), func(t *testing.T) { one(t, *firstSeed+i) }) // frees what the seed needs
	}
	t.Logf("%+v", counts)
	if counts.pairs < *seeds/2 || counts.objects == 0 || counts.may == 0 || counts.quiet == 0 || counts.waits == 0 {
		t.Errorf("the seeds cover too little: %+v", counts)
	}
}

// names returns the names of the files that functions may read.
func (s *spec) names() []string {
	return []string{"f0.txt", "f1.txt", "set/a.txt", "set/b.txt", "set/deep/c.txt", "conf.yaml", "t.tftpl", "m/in.txt", "m/t.tftpl", "../" + s.above + ".txt", "../" + s.above + "/beside.txt"}
}

// content returns a random content of a file.
func content(r *rand.Rand, name string) string {
	letter := string(rune('a' + r.IntN(4)))
	switch path.Ext(name) {
	case ".yaml":
		return "k: " + letter + "\nother: 1\n"
	case ".tftpl":
		return "<" + letter + "${v}>"
	}
	return letter + []string{"", "\n"}[r.IntN(2)]
}

// reading returns a random expression that reads files. It has a value if they do not exist.
func (s *spec) reading(r *rand.Rand, depth int) string {
	names := s.names()
	at := "${path.module}/" + names[r.IntN(len(names))]
	if r.IntN(4) == 0 {
		at = strings.TrimPrefix(at, "${path.module}/")
	}
	switch r.IntN(9) {
	case 0:
		return fmt.Sprintf("(fileexists(%q) ? file(%q) : \"none\")", at, at)
	case 1:
		return fmt.Sprintf("try(file(%q), \"none\")", at)
	case 2:
		return fmt.Sprintf("try(templatefile(\"${path.module}/t.tftpl\", { v = %s }), \"none\")", s.constant(r, depth))
	case 3:
		return `join(",", fileset("${path.module}", ` + []string{`"*.txt"`, `"set/**"`, `"**/*.txt"`, `"../` + s.above + `*"`}[r.IntN(4)] + `))`
	case 4:
		return `try(yamldecode(file("${path.module}/conf.yaml")).k, "none")`
	case 5:
		return fmt.Sprintf("try(%s(%q), \"none\")", []string{"filebase64sha256", "filemd5", "filebase64"}[r.IntN(3)], at)
	case 6:
		return fmt.Sprintf("tostring(fileexists(%q))", at)
	case 7:
		return `join(",", [for f in fileset(path.module, "set/*") : file("${path.module}/${f}")])`
	default:
		return fmt.Sprintf("join(\",\", fileset(\"${path.module}/../%s\", \"**\"))", s.above)
	}
}

// constant returns a random expression without unknown parts in the root module, and a text in others.
func (s *spec) constant(r *rand.Rand, depth int) string {
	if depth >= 2 {
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(4))))
	}
	return s.known(r, depth+1)
}

// changeFile changes, adds, removes or renames a file. quiet means that no function reads it.
func (s *spec) changeFile(r *rand.Rand) (quiet bool) {
	names := s.names()
	name := names[r.IntN(len(names))]
	_, exists := s.disk[name]
	switch n := r.IntN(6); {
	case n == 0:
		s.disk["unread.bin"] = content(r, "x")
		return true
	case n == 1:
		delete(s.disk, name)
	case n == 2 && exists && path.Ext(name) == ".txt":
		s.disk[path.Join(path.Dir(name), "new.txt")] = s.disk[name]
		delete(s.disk, name)
	case n == 3:
		s.disk["set/added.txt"] = content(r, "x")
	default:
		s.disk[name] = content(r, name)
	}
	return false
}

// textOf returns files as one text.
func textOf(files fstest.MapFS) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, strings.TrimSuffix(string(files[name].Data), "\n"))
	}
	return b.String()
}

// openBlocks are blocks whose instances are not known before an apply.
const openBlocks = `
resource "x_thing" "open" { name = "open" }
resource "x_thing" "counted" {
  count = length(x_thing.open.id)
  name  = "counted-${count.index}"
}
resource "x_thing" "keyed" {
  for_each = toset([x_thing.open.id])
  name     = each.key
}
module "counted" {
  source = "./m"
  count  = length(x_thing.open.id)
  id     = "i"
  factor = "f"
}
module "keyed" {
  source   = "./m"
  for_each = toset([x_thing.open.id])
  id       = each.key
  factor   = "f"
}
output "open" { value = [x_thing.counted[*].id, module.counted[*].id, module.keyed] }
`
