package affected_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/inputs"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// An estateSpec is a random estate. Changes are made to the spec, and not to its text.
type estateSpec struct {
	modules []*spec
	extra   []string          // the number of instances of a resource that every module has
	root    map[string]string // locals of root.hcl
	inputs  map[string]string // inputs of root.hcl
	region  map[string]string // inputs of region.hcl
	common  map[string]string // values in common.yaml
	units   []*unitSpec
	noise   int
	rename  string
	dirs    []string          // directories of the modules, in the package
	whole   bool              // the package is the source of a unit, and not the module alone
	shared  map[string]string // files that several units read, by name
}

type unitSpec struct {
	name     string
	shared   int // how root.hcl is part of the unit; see sharing
	region   int // how region.hcl is part of the unit: not, with merge, or with deep_merge
	module   int
	deps     []int
	locals   map[string]string
	inputs   map[string]string
	generate string            // expression in the contents of a generate block; "" means no block
	note     string            // content of note.txt
	disk     map[string]string // more files that functions read, by name
	planted  bool              // a function whose result is not known before a run is part of it
}

// sharing contains the blocks that make root.hcl part of a unit. The last line of a block is the
// prefix of references to it.
var sharing = []string{
	"",
	"include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n  expose = true\n}\n",
	"include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n  expose = true\n  merge_strategy = \"deep\"\n}\n",
	"include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n  expose = true\n  merge_strategy = \"no_merge\"\n}\n",
	"import \"root\" {\n  config_path = \"../root.hcl\"\n  merge = true\n}\n",
	"import \"root\" {\n  config_path = \"../root.hcl\"\n  deep_merge = true\n}\n",
	"import \"root\" {\n  config_path = \"../root.hcl\"\n}\n",
}

func (u *unitSpec) prefix() string {
	switch {
	case u.shared == 0:
		return ""
	case u.shared < 4:
		return "include.root."
	}
	return "import.root."
}

// known returns a random expression of a unit file without unknown parts.
func (u *unitSpec) known(r *rand.Rand, depth int) string {
	switch n := r.IntN(19); {
	case n < 3 || depth > 2:
		return fmt.Sprintf("%q", string(rune('a'+r.IntN(5))))
	case n == 3 && len(u.locals) > 0:
		return "local." + pick(r, u.locals)
	case n == 4 && u.shared > 0:
		return u.prefix() + "locals." + []string{"region", "env", "common.size", "common.owner"}[r.IntN(4)]
	case n == 5:
		return fmt.Sprintf("\"${%s}-${%s}\"", u.known(r, depth+1), u.known(r, depth+1))
	case n == 6:
		return fmt.Sprintf("(%s == \"a\" ? %s : %s)", u.known(r, depth+1), u.known(r, depth+1), u.known(r, depth+1))
	case n == 7:
		return fmt.Sprintf("lookup(merge({ k = %s }, { %s = %s }), \"k\", \"none\")", u.known(r, depth+1), string(rune('j'+r.IntN(3))), u.known(r, depth+1))
	case n == 8:
		return fmt.Sprintf("upper(%s)", u.known(r, depth+1))
	case n == 9:
		return `trimspace(file("${get_terragrunt_dir()}/note.txt"))`
	case n == 10:
		return `get_env("TEAM", "t")`
	case n == 11:
		return "basename(get_terragrunt_dir())"
	case n == 12:
		return `yamldecode(file(find_in_parent_folders("common.yaml"))).owner`
	case n == 13:
		return `try(read_terragrunt_config("../shared.hcl").locals.k, "none")`
	case n == 14:
		return `read_terragrunt_config("../shared.hcl", { locals = { k = "none" } }).locals.k`
	case n == 15:
		return `try(jsondecode(read_tfvars_file("../values.tfvars")).k, "none")`
	case n == 16:
		return `join(",", fileset("${get_terragrunt_dir()}", ` + []string{`"*.txt"`, `"set/**"`, `"../*.yaml"`}[r.IntN(3)] + "))"
	case n == 17:
		at := []string{"extra.txt", "set/a.txt", "../conf.yaml"}[r.IntN(3)]
		return []string{
			`try(file("` + at + `"), "none")`, `(fileexists("${get_terragrunt_dir()}/` + at + `") ? "yes" : "no")`,
			`try(filebase64sha256("${get_terragrunt_dir()}/` + at + `"), "none")`,
		}[r.IntN(3)]
	default:
		return []string{`try(templatefile("t.tftpl", { v = "x" }), "none")`, `try(yamldecode(file("../conf.yaml")).k, "none")`}[r.IntN(2)]
	}
}

// unitFiles and sharedFiles are the names of the files that functions of units may read.
var (
	unitFiles   = []string{"extra.txt", "set/a.txt", "set/b.txt", "t.tftpl"}
	sharedFiles = []string{"shared.hcl", "values.tfvars", "conf.yaml"}
)

// unitContent returns a random content of a file that functions of units may read.
func unitContent(r *rand.Rand, name string) string {
	letter := string(rune('a' + r.IntN(4)))
	switch name {
	case "shared.hcl":
		return "locals {\n  k = \"" + letter + "\"\n}\n"
	case "values.tfvars":
		return "k = \"" + letter + "\"\n"
	}
	return content(r, name)
}

// randomFiles returns some of the files with random contents.
func randomFiles(r *rand.Rand, names []string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if r.IntN(3) > 0 {
			out[name] = unitContent(r, name)
		}
	}
	return out
}

// changeFile changes, adds or removes a file.
func changeFile(r *rand.Rand, files map[string]string, names []string) {
	if name := names[r.IntN(len(names))]; r.IntN(3) == 0 {
		delete(files, name)
	} else {
		files[name] = unitContent(r, name)
	}
}

// value returns a random expression that may refer to outputs of other units.
func (u *unitSpec) value(r *rand.Rand) string {
	if len(u.deps) == 0 || r.IntN(2) == 0 {
		return u.known(r, 0)
	}
	ref := fmt.Sprintf("dependency.d%d.outputs.", u.deps[r.IntN(len(u.deps))]) + []string{"o0", "o1", "owner", "fixed", "id"}[r.IntN(5)]
	switch r.IntN(4) {
	case 0:
		return `"${` + ref + `}-x"`
	case 1:
		return "upper(" + ref + ")"
	case 2:
		return "(" + u.known(r, 1) + " == \"a\" ? " + ref + " : " + u.known(r, 1) + ")"
	}
	return ref
}

func (u *unitSpec) tags(r *rand.Rand) string {
	text := "{ own = " + u.value(r)
	if r.IntN(2) == 0 {
		text += ", k = " + u.known(r, 1)
	}
	return text + " }"
}

func randomEstate(r *rand.Rand) *estateSpec {
	letter := func() string { return fmt.Sprintf("%q", string(rune('a'+r.IntN(4)))) }
	s := &estateSpec{
		dirs: []string{"m0", "m1"}, whole: r.IntN(2) == 0, shared: randomFiles(r, sharedFiles),
		root:   map[string]string{"region": letter(), "env": letter()},
		inputs: map[string]string{"v1": "local.region"},
		region: map[string]string{"v2": letter()},
		common: map[string]string{"owner": "ops", "size": "1"},
	}
	if r.IntN(2) == 0 {
		s.inputs["tags"] = "{ k = local.env, root = local.common.owner }"
	}
	if r.IntN(3) == 0 {
		s.freshLocal()
	}
	if r.IntN(2) == 0 {
		s.region["tags"] = "{ region = " + letter() + " }"
	}
	for range 2 {
		s.modules = append(s.modules, random(r))
		s.extra = append(s.extra, []string{"var.size", "1", "2"}[r.IntN(3)])
	}
	for range 3 + r.IntN(3) {
		s.addUnit(r)
	}
	return s
}

// addUnit adds a random unit.
func (s *estateSpec) addUnit(r *rand.Rand) {
	i := len(s.units)
	u := &unitSpec{name: fmt.Sprintf("u%d", i), shared: r.IntN(len(sharing)), module: r.IntN(2), locals: map[string]string{}, inputs: map[string]string{}, note: "n", disk: randomFiles(r, unitFiles)}
	if r.IntN(3) == 0 {
		u.region = 1 + r.IntN(2)
	}
	for j := range i {
		if r.IntN(2) == 0 {
			u.deps = append(u.deps, j)
		}
	}
	for j := range 2 {
		u.locals[fmt.Sprintf("l%d", j)] = u.known(r, 0)
	}
	for _, name := range []string{"v1", "v2", "other"} {
		if r.IntN(2) == 0 {
			u.inputs[name] = u.value(r)
		}
	}
	if r.IntN(2) == 0 {
		u.inputs["tags"] = u.tags(r)
	}
	if r.IntN(3) == 0 {
		u.inputs["size"] = fmt.Sprint(r.IntN(3))
	}
	if r.IntN(3) == 0 {
		u.generate = u.known(r, 1)
	}
	if r.IntN(8) == 0 {
		u.plant(r)
	}
	s.units = append(s.units, u)
}

// plant adds a value that is not known before a run.
func (u *unitSpec) plant(r *rand.Rand) {
	u.planted = true
	text := []string{`run_cmd("--terragrunt-quiet", "echo", "x")`, `run_cmd("echo", "y")`, `sops_decrypt_file("note.txt")`, "timestamp()"}[r.IntN(4)]
	switch r.IntN(3) {
	case 0:
		u.inputs["v1"] = text
	case 1:
		u.locals["l0"] = text
	default:
		u.inputs["tags"] = "{ k = " + text + " }"
	}
}

// freshLocal adds a local value to the root file that an input reads, or removes it.
func (s *estateSpec) freshLocal() {
	if _, ok := s.root["fresh"]; ok {
		delete(s.root, "fresh")
		delete(s.inputs, "other")
		return
	}
	s.root["fresh"], s.inputs["other"] = `"fresh"`, "local.fresh"
}

// change returns a changed copy. quiet means that the change cannot affect a value.
func (s *estateSpec) change(r *rand.Rand) (out *estateSpec, quiet bool) {
	n := *s
	n.root, n.inputs, n.region, n.common = maps.Clone(s.root), maps.Clone(s.inputs), maps.Clone(s.region), maps.Clone(s.common)
	n.modules, n.extra, n.units = slices.Clone(s.modules), slices.Clone(s.extra), nil
	n.dirs, n.shared = slices.Clone(s.dirs), maps.Clone(s.shared)
	for _, u := range s.units {
		c := *u
		c.locals, c.inputs, c.disk = maps.Clone(u.locals), maps.Clone(u.inputs), maps.Clone(u.disk)
		n.units = append(n.units, &c)
	}
	u := n.units[r.IntN(len(n.units))]
	letter := func() string { return fmt.Sprintf("%q", string(rune('a'+r.IntN(4)))) }
	if r.IntN(8) == 0 {
		n.noise++
		return &n, true
	}
	switch r.IntN(27) {
	case 23:
		n.freshLocal()
	case 0:
		n.noise++
		return &n, true
	case 1:
		n.rename = "renamed_"
		return &n, true
	case 2:
		n.root[pick(r, n.root)] = letter()
	case 3:
		n.inputs[pick(r, n.inputs)] = map[string]string{"v1": letter(), "tags": "{ k = \"z\", more = local.env }"}["v1"]
		if _, ok := n.inputs["tags"]; ok {
			n.inputs["tags"] = "{ k = \"z\", more = local.env }"
		}
	case 4:
		n.region["v2"] = letter()
	case 5:
		n.common[pick(r, n.common)] = []string{"dev", "2"}[r.IntN(2)]
	case 6:
		if !strings.Contains(u.locals["l1"], "run_cmd") {
			u.locals["l1"] = letter()
		}
	case 7:
		u.inputs[[]string{"v1", "v2", "other"}[r.IntN(3)]] = u.value(r)
	case 8:
		u.inputs["tags"] = u.tags(r)
	case 9:
		delete(u.inputs, pick2(r, u.inputs))
	case 10:
		u.module = 1 - u.module
	case 11:
		if !strings.Contains(string(n.unitFile(u)), u.prefix()+"locals") {
			u.shared = r.IntN(len(sharing))
		}
	case 12:
		u.region = r.IntN(3)
	case 13:
		u.generate = u.known(r, 1)
	case 14:
		u.note = "changed"
	case 15:
		u.plant(r)
	case 16:
		n.extra[r.IntN(2)] = []string{"var.size", "1", "2"}[r.IntN(3)]
	case 17:
		changeFile(r, u.disk, unitFiles)
	case 18:
		changeFile(r, n.shared, sharedFiles)
	case 19:
		n.addUnit(r)
	case 20:
		if len(n.units) > 2 {
			n.units = n.units[:len(n.units)-1]
		}
	case 21:
		if !strings.HasPrefix(u.name, "r") {
			u.name = "r" + u.name
		}
	case 22:
		n.dirs[r.IntN(2)] += "x"
	default:
		i := r.IntN(2)
		m, q := n.modules[i].change(r)
		n.modules[i] = m
		return &n, q
	}
	return &n, false
}

// pick2 returns a key of a map that may be empty.
func pick2(r *rand.Rand, m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	return pick(r, m)
}

// assignments writes arguments in order.
func (s *estateSpec) assignments(b *strings.Builder, all map[string]string) {
	names := slices.Sorted(maps.Keys(all))
	if s.noise%2 == 1 {
		slices.Reverse(names)
	}
	for _, k := range names {
		if s.noise%2 == 1 {
			b.WriteString("\n  # a comment\n")
		}
		fmt.Fprintf(b, "  %s = %s\n", k, all[k])
	}
}

func (s *estateSpec) unitFile(u *unitSpec) []byte {
	var b strings.Builder
	b.WriteString(sharing[u.shared])
	switch {
	case u.region > 0 && u.shared > 0 && u.shared < 4: // a file has includes or imports, not both
		fmt.Fprintf(&b, "include \"region\" {\n  path = find_in_parent_folders(\"region.hcl\")\n  merge_strategy = %q\n}\n", []string{"shallow", "deep"}[u.region-1])
	case u.region > 0:
		fmt.Fprintf(&b, "import \"region\" {\n  config_path = \"../region.hcl\"\n  %s = true\n}\n", []string{"merge", "deep_merge"}[u.region-1])
	}
	slash := "/"
	if s.whole {
		slash = "//"
	}
	fmt.Fprintf(&b, "terraform {\n  source = \"../../pkg%s%s\"\n}\n", slash, s.dirs[u.module])
	for _, d := range u.deps {
		fmt.Fprintf(&b, "dependency \"d%d\" {\n  config_path = \"../%s\"\n}\n", d, s.units[d].name)
	}
	b.WriteString("locals {\n")
	s.assignments(&b, u.locals)
	b.WriteString("}\ninputs = {\n")
	s.assignments(&b, u.inputs)
	b.WriteString("}\n")
	if u.generate != "" {
		fmt.Fprintf(&b, "generate \"g\" {\n  path = \"generated.tf\"\n  if_exists = \"overwrite\"\n  contents = <<-EOF\n    output \"generated\" {\n      value = \"${%s}\"\n    }\n  EOF\n}\n", u.generate)
	}
	text := b.String()
	if s.rename != "" {
		text = strings.ReplaceAll(text, "local.l", "local."+s.rename+"l")
		for k := range u.locals {
			text = strings.ReplaceAll(text, "  "+k+" = ", "  "+s.rename+k+" = ")
		}
	}
	return []byte(text)
}

const extraModule = `
variable "tags" {
  type    = map(string)
  default = {}
}
variable "size" { default = 1 }
variable "other" { default = "" }
resource "x_thing" "extra" {
  count = SIZE
  name  = lookup(var.tags, "k", "none")
  tags  = var.tags
}
resource "terraform_data" "keyed" {
  for_each = var.tags
  input    = { value = each.value, other = var.other }
}
output "owner" { value = lookup(var.tags, "root", "nobody") }
output "fixed" { value = "fixed" }
output "id" { value = terraform_data.keyed2.id }
resource "terraform_data" "keyed2" { input = [var.v1, var.v2] }
`

func (s *estateSpec) files() fstest.MapFS {
	out := fstest.MapFS{}
	put := func(name, text string) { out[name] = &fstest.MapFile{Data: []byte(text)} }
	for i, m := range s.modules {
		for name, f := range m.files() {
			out[path.Join("pkg", s.dirs[i], name)] = f
		}
		put(path.Join("pkg", s.dirs[i], "extra.tf"), strings.ReplaceAll(extraModule, "SIZE", s.extra[i]))
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.common)) {
		fmt.Fprintf(&b, "%s: %s\n", k, s.common[k])
	}
	put("common.yaml", b.String())
	b.Reset()
	b.WriteString("locals {\n  common = yamldecode(file(find_in_parent_folders(\"common.yaml\")))\n")
	s.assignments(&b, s.root)
	b.WriteString("}\ninputs = {\n")
	s.assignments(&b, s.inputs)
	b.WriteString("}\n")
	put("live/root.hcl", b.String())
	b.Reset()
	b.WriteString("inputs = {\n")
	s.assignments(&b, s.region)
	b.WriteString("}\n")
	put("live/region.hcl", b.String())
	for _, u := range s.units {
		put("live/"+u.name+"/terragrunt.hcl", string(s.unitFile(u)))
		put("live/"+u.name+"/note.txt", u.note+"\n")
		for name, text := range u.disk {
			put("live/"+u.name+"/"+name, text)
		}
	}
	for name, text := range s.shared {
		put("live/"+name, text)
	}
	return out
}

// estateDir writes the files of an estate.
func estateDir(t *testing.T, files fs.FS) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plannedUnit contains the values of one unit.
type plannedUnit struct {
	inputs   map[string]cty.Value
	objects  map[string]cty.Value
	generate map[string]string
	outputs  cty.Value
}

var now = func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

// plannedEstate plans every unit from an empty state, each with the planned outputs of the units
// before it. It returns nil if the plan of a unit fails.
func plannedEstate(t *testing.T, s *estateSpec, dir string) map[string]*plannedUnit {
	t.Helper()
	out := map[string]*plannedUnit{}
	l := unit.NewLoader(unit.Env{
		WorkingDir: dir, Request: unit.Request{Command: "plan", Args: []string{"plan"}},
		Machine: unit.Machine{Now: now, Environ: sys.Env{"TEAM=x"}, Run: func(_ context.Context, c unit.Command) error {
			_, err := fmt.Fprintln(c.Stdout, filepath.Base(c.Args[len(c.Args)-1]))
			return err
		}},
		Outputs: func(_ *demand.Task, target string, _ source.Range) (cty.Value, bool, diag.List) {
			u := out[filepath.Base(target)]
			if u == nil {
				u = out[filepath.Base(filepath.Dir(target))]
			}
			return u.outputs, true, nil
		},
	})
	files := s.files()
	for _, us := range s.units {
		task := l.Task(t.Context())
		u, ds := l.Unit(task, filepath.Join(dir, "live", us.name, "terragrunt.hcl"), "")
		if ds.HasErrors() {
			t.Log(ds.Err())
			return nil
		}
		p := &plannedUnit{inputs: map[string]cty.Value{}, objects: map[string]cty.Value{}, generate: map[string]string{}}
		settings, ds := u.Inputs(task, nil)
		if ds.HasErrors() {
			return nil
		}
		for _, x := range settings {
			p.inputs[x.Name] = bare(x.Value)
		}
		// The working directory of the unit: a copy of the package, with the files of the unit over the
		// module.
		prefix, sub := "pkg/"+s.dirs[us.module]+"/", ""
		if s.whole {
			prefix, sub = "pkg/", s.dirs[us.module]
		}
		fsys := fstest.MapFS{}
		for name, f := range files {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				fsys[rest] = f
			}
		}
		for name, f := range files {
			if rest, ok := strings.CutPrefix(name, "live/"+us.name+"/"); ok {
				fsys[path.Join(sub, rest)] = f
			}
		}
		all, ds := u.Generate(task)
		if ds.HasErrors() {
			return nil
		}
		for _, g := range all {
			v, _ := g.Contents.UnmarkDeep()
			fsys[path.Join(sub, g.Path)] = &fstest.MapFile{Data: []byte(v.AsString())}
			p.generate[g.Name] = v.AsString()
		}
		e, ds := tryOpen(t, filepath.Join(written(t, fsys), sub), nil)
		if ds.HasErrors() { // a generated file contains a line break of a decrypted file
			return nil
		}
		values, _, ds := inputs.Of(task, u, e.Tree().Root.Config.Variables)
		if ds.HasErrors() {
			return nil
		}
		planned, ds := e.Plan(t.Context(), nil, engine.PlanOptions{Variables: values})
		if ds.HasErrors() {
			return nil
		}
		for _, c := range planned.Changes {
			if c.Op == plan.Create {
				p.objects[c.Addr.String()] = bare(c.After)
			}
		}
		outs := map[string]cty.Value{}
		for _, o := range planned.Outputs {
			v, _ := o.After.UnmarkDeep()
			p.objects["output."+o.Name] = bare(v)
			if !v.IsKnown() || !v.IsNull() {
				outs[o.Name] = v
			}
		}
		p.outputs = cty.ObjectVal(outs)
		out[us.name] = p
	}
	return out
}

// bruteRevision opens an estate for a comparison, with the schema of the provider if schemas is set. p
// contains the differences of the revision from the files on disk, and since those of the base if the
// revision is the head.
func bruteRevision(t *testing.T, dir, shown string, schemas bool, p, since *readfile.Patch) affected.Revision {
	t.Helper()
	x := openPatched(t, dir, shown, p, since, unit.Machine{Now: now, Environ: sys.Env{"TEAM=x"}, Run: sys.SkipPrograms})
	if schemas {
		p := plantest.New()
		s, _ := p.Schema(t.Context(), addr.Provider{})
		x.Schemas = func(context.Context, string, map[addr.Provider][]config.Constraint) func(addr.Provider) *schema.Provider {
			return func(addr.Provider) *schema.Provider { return s }
		}
	}
	return x
}

// uncertain returns the units whose values may not be known before a run: those with a planted
// function, and those that depend on them.
func uncertain(all ...*estateSpec) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		for _, u := range s.units {
			if u.planted || slices.ContainsFunc(u.deps, func(i int) bool { return out[s.units[i].name] }) {
				out[u.name] = true
			}
		}
	}
	return out
}

// The differences between two random estates are those between the plans of their units from an
// empty state: none is missed, none is wrong, and only values with unknown parts may change.
func TestBruteForceEstates(t *testing.T) {
	t.Parallel()
	var counts struct{ pairs, different, units, objects, inputs, may, quiet, planted, invalid, moved, replaced, contents, waits int }
	one := func(t *testing.T, seed int) {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		schemas := seed%3 > 0
		first := randomEstate(r)
		second, quiet := first, true
		for range 1 + r.IntN(2) {
			var q bool
			second, q = second.change(r)
			quiet = quiet && q
		}
		a, b := estateDir(t, first.files()), estateDir(t, second.files())
		before, after := plannedEstate(t, first, a), plannedEstate(t, second, b)
		if before == nil || after == nil {
			counts.invalid++
			return
		}
		counts.pairs++
		// The first estate is in a directory of its own, or is a difference of the second one.
		base, head := affected.Revision{}, affected.Revision{}
		if seed%2 == 0 {
			p := patched(b, b, second.files(), first.files())
			base, head = bruteRevision(t, b, b, schemas, p, nil), bruteRevision(t, b, b, schemas, nil, p)
			if _, _, ok := readfile.Modified(p, nil); ok {
				counts.contents++
			}
		} else {
			base, head = bruteRevision(t, a, b, schemas, nil, nil), bruteRevision(t, b, b, schemas, nil, nil)
		}
		all, failed, ds := affected.Estates(t.Context(), base, head)
		fail := func(format string, args ...any) {
			var text strings.Builder
			one, two := first.files(), second.files()
			for _, name := range slices.Sorted(maps.Keys(merged(one, two))) {
				if strings.HasSuffix(name, "/extra.tf") {
					continue
				}
				if f := one[name]; f != nil {
					fmt.Fprintf(&text, "-- %s --\n%s", name, f.Data)
				}
				if x, y := one[name], two[name]; x != nil && y == nil {
					fmt.Fprintf(&text, "-- %s, REMOVED --\n", name)
				} else if x == nil || string(x.Data) != string(y.Data) {
					fmt.Fprintf(&text, "-- %s, CHANGED --\n%s", name, y.Data)
				}
			}
			t.Errorf("seed %d, schemas %t: %s", seed, schemas, fmt.Sprintf(format, args...))
			if *verbose {
				t.Log(text.String())
			}
		}
		if ds.HasErrors() {
			fail("%v", ds.Err())
			return
		}
		for _, f := range failed {
			fail("%s was not compared: %v%v", f.Name, f.Base.Messages.Err(), f.Head.Messages.Err())
		}
		if len(failed) > 0 {
			return
		}
		got := map[string]map[string]*affected.Object{}
		found := map[string]*affected.Unit{}
		for _, u := range all {
			found[strings.TrimPrefix(u.Name, "live/")] = u
			got[u.Name] = map[string]*affected.Object{}
			for _, o := range u.Objects {
				got[u.Name][o.Address] = o
				if o.Was != "" { // count was added to a block or removed from it
					got[u.Name][o.Was] = o
				}
			}
		}
		if quiet {
			if counts.quiet++; len(uncertain(first)) == 0 && len(all) > 0 {
				fail("a quiet change: %v", describe(all))
			}
		}
		open := uncertain(first, second)
		some := false
		names := map[string]bool{}
		for i, u := range first.units {
			names[u.name] = true
			if i >= len(second.units) {
				if x := found[u.name]; x == nil || x.Action != affected.Removed {
					fail("%s is not removed: %v", u.name, x)
				}
				continue
			}
			name := second.units[i].name
			names[name] = true
			if name != u.name {
				x, old := found[name], found[u.name]
				if moved := x != nil && x.Action == affected.Moved && x.Was == "live/"+u.name && old == nil; !moved {
					if x == nil || old == nil || x.Action != affected.Added || old.Action != affected.Removed {
						fail("%s is not moved to %s: %v, %v", u.name, name, old, x)
					}
					counts.replaced++
					continue
				}
				counts.moved++
			}
			x, y := before[u.name], after[name]
			objects := got["live/"+name]
			may := open[name] || open[u.name]
			if may {
				counts.planted++
			}
			counts.waits += checkWaits(first.modules[u.module], second.modules[second.units[i].module], objects, func(string) bool { return false }, func(format string, args ...any) { fail(name+": "+format, args...) })
			differ := false
			keys := maps.Clone(x.objects)
			maps.Copy(keys, y.objects)
			for address := range keys {
				p, okP := x.objects[address]
				q, okQ := y.objects[address]
				differs := okP != okQ || okP && !p.RawEquals(q)
				differ = differ || differs
				o := objects[address]
				switch {
				case differs && o == nil:
					if !may || !hidden(objects, address) {
						fail("%s %s is missed: %#v, %#v", name, address, p, q)
					}
				case o == nil:
				case o.Action == affected.MayChange:
					counts.may++
					if o.Was != "" {
						p, q = x.objects[o.Was], y.objects[o.Address]
					}
					for _, c := range o.Changes {
						if schemas && !may && certain(p, q, c.Path) {
							fail("%s %s %s may change, but known parts differ: %#v, %#v", name, address, c.Path, p, q)
						}
						if schemas && !may && !reads(address, c) && !unknownAt(p, c.Path) && !unknownAt(q, c.Path) {
							fail("%s %s %s may change, but is known: %#v, %#v", name, address, c.Path, p, q)
						}
					}
				case !differs:
					fail("%s %s is not different: %v", name, address, describe([]*affected.Unit{{Name: name, Objects: []*affected.Object{o}}}))
				default:
					counts.objects++
				}
			}
			for address, o := range objects {
				if (o.Kind == outline.Resource && !strings.Contains(address, "data.") || o.Kind == outline.Output) && keys[address] == cty.NilVal && !may {
					fail("%s %s does not exist", name, address)
				}
			}
			counts.inputs += checkInputs(objects["inputs"], x.inputs, y.inputs, may, schemas, func(format string, args ...any) { fail(name+": "+format, args...) })
			for g := range merged(x.generate, y.generate) {
				if o := objects["generate."+g]; (x.generate[g] != y.generate[g]) != (o != nil) && !may {
					fail("%s generate.%s: %q, %q, %v", name, g, x.generate[g], y.generate[g], o)
				}
			}
			if some = some || differ; differ {
				counts.units++
			}
		}
		for i, u := range second.units {
			if x := found[u.name]; i >= len(first.units) && (x == nil || x.Action != affected.Added) {
				fail("%s is not added: %v", u.name, x)
			}
			names[u.name] = true
		}
		for name := range found {
			if !names[name] {
				fail("there is no unit %s", name)
			}
		}
		if some {
			counts.different++
		}
	}
	for i := range max(*seeds/4, 1) {
		t.Run(fmt.Sprint(*firstSeed+i), func(t *testing.T) { one(t, *firstSeed+i) }) // frees what the seed needs
	}
	t.Logf("%+v", counts)
	if n := *seeds / 4; counts.pairs < n/2 || counts.objects == 0 || counts.may == 0 || counts.quiet == 0 {
		t.Errorf("the seeds cover too little: %+v", counts)
	}
}

func merged[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// hidden reports whether an instance is reported as part of an object that may change, such as its
// block without a known count.
func hidden(objects map[string]*affected.Object, address string) bool {
	for a, o := range objects {
		if o.Action == affected.MayChange && (strings.HasPrefix(address, a+"[") || o.Kind == outline.Unit) {
			return true
		}
	}
	return false
}

// checkInputs compares the inputs of a unit with the differences that were found. Without schemas, outputs
// that refer to resources are unknown, so that more inputs may change.
func checkInputs(o *affected.Object, before, after map[string]cty.Value, may, schemas bool, fail func(string, ...any)) (n int) {
	changes := map[string]*affected.Change{}
	whole := false
	if o != nil {
		for _, c := range o.Changes {
			name, _, _ := strings.Cut(c.Path, ".")
			changes[name] = c
			whole = whole || name == "content" || name == "names"
		}
	}
	for name := range merged(before, after) {
		x, okX := before[name]
		y, okY := after[name]
		differs := okX != okY || !x.RawEquals(y)
		c := changes[name]
		switch {
		case differs && c == nil && !(may && whole):
			fail("the input %s is missed: %#v, %#v", name, x, y)
		case c == nil:
		case c.Action == affected.MayChange:
			if schemas && !may && okX && okY && x.IsWhollyKnown() && y.IsWhollyKnown() {
				fail("the input %s may change, but is known: %#v, %#v", name, x, y)
			}
		case !differs && x.IsWhollyKnown():
			fail("the input %s is not different: %#v", name, x)
		default:
			n++
		}
	}
	return n
}

// describe returns one line for each difference.
func describe(all []*affected.Unit) string {
	var out []string
	for _, u := range all {
		if len(u.Objects) == 0 {
			out = append(out, u.Name+" "+string(u.Action))
		}
		for _, o := range u.Objects {
			out = append(out, fmt.Sprintf("%s %s %s", u.Name, o.Address, o.Action))
			for _, c := range o.Changes {
				out = append(out, fmt.Sprintf("   %s %s %s -> %s %v", c.Path, c.Action, c.Before, c.After, c.Reasons))
			}
		}
	}
	return strings.Join(out, "\n")
}

// openRevision opens an estate whose files are in dir.
func openRevision(t *testing.T, dir, shown string, m unit.Machine) affected.Revision {
	t.Helper()
	return openPatched(t, dir, shown, nil, nil, m)
}

// openPatched is like openRevision for files that differ from those on disk. since contains the differences
// of the base if the revision is the head.
func openPatched(t *testing.T, dir, shown string, p, since *readfile.Patch, m unit.Machine) affected.Revision {
	t.Helper()
	o := estateOptions(dir, m)
	unitFilesOnly := false
	if paths, resolve, ok := readfile.Modified(since, p); ok && since != nil {
		o.Changed, unitFilesOnly = affected.ChangesIn(paths, resolve, (*readfile.Kept)(nil).Patched(since))
	}
	if p != nil {
		o.Host.Plugins = &workdir.Plugins{Directory: &workdir.Directory{Dir: dir, Env: m.Environ, Files: (*readfile.Kept)(nil).Patched(p)}}
	}
	e, ds := estate.Open(t.Context(), o)
	t.Cleanup(func() { e.Close(context.WithoutCancel(t.Context())) })
	if ds.HasErrors() {
		t.Error(ds.Errors()[0].Detail)
	}
	rename := func(text string) string { return strings.ReplaceAll(text, dir, shown) }
	return affected.Revision{Estate: e, OutlineOptions: estate.OutlineOptions{Rename: rename, UnitFilesOnly: unitFilesOnly, Show: func(file string) string { return strings.TrimPrefix(rename(file), shown+"/") }}}
}
