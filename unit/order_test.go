package unit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
)

// estate returns a tree of shared files and of units that import, include and read them.
func estate(seed uint64, units int) map[string]string {
	r := rand.New(rand.NewPCG(seed, 1))
	files := map[string]string{
		"root.hcl":    "remote_state {\n backend = \"local\"\n config = { path = \"${path_relative_to_import()}/s\" }\n}\nlocals {\n up = path_relative_from_import()\n}\ninputs = { up = local.up, who = get_original_terragrunt_dir() }",
		"parent.hcl":  "locals {\n p = get_terragrunt_dir()\n}\ninputs = { p = local.p, key = path_relative_to_include() }",
		"account.hcl": "locals {\n id = \"1234\"\n}\ninputs = { account = local.id, dir = get_terragrunt_dir() }",
		"region.hcl":  "import \"account\" {\n config_path = \"account.hcl\"\n}\nimport \"root\" {\n config_path = \"root.hcl\"\n merge = true\n}\ninputs = merge(import.account.inputs, { region = \"eu\" })",
	}
	for i := range units {
		var b strings.Builder
		switch r.IntN(4) {
		case 0:
			b.WriteString("include \"p\" {\n path = find_in_parent_folders(\"parent.hcl\")\n expose = true\n}\ninputs = { x = include.p.inputs.p }\n")
		case 1:
			b.WriteString("import \"region\" {\n config_path = \"../region.hcl\"\n merge = true\n}\ninputs = { x = import.region.inputs.region }\n")
		case 2:
			b.WriteString("import \"region\" {\n config_path = \"../region.hcl\"\n deep_merge = true\n}\ninputs = { me = path_relative_to_import() }\n")
		default:
			b.WriteString("locals {\n r = read_terragrunt_config(\"../region.hcl\")\n}\ninputs = merge(local.r.inputs, { x = local.r.remote_state.config.path })\n")
		}
		if i > 0 {
			fmt.Fprintf(&b, "dependency \"d\" {\n config_path = \"../u%d\"\n mock_outputs = { a = 1 }\n}\n", r.IntN(i))
		}
		files[fmt.Sprintf("u%d/terragrunt.hcl", i)] = b.String()
	}
	return files
}

// FuzzOrder evaluates the units of an estate in two orders, one of them in parallel. Each
// unit must have the same result.
func FuzzOrder(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint8(12))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		units := int(n%40) + 1
		files := estate(seed, units)
		run := func(order []int, workers int) []string {
			l := unit.NewLoader(memory(files))
			out := make([]string, units)
			parallel.Each(units, workers, func(i int) {
				task := l.Task(context.Background())
				u, ds := l.Unit(task, fmt.Sprintf("u%d", order[i]), "")
				if ds.HasErrors() {
					t.Error(ds.Err())
					return
				}
				text, more := everything(task, u)
				edges, _ := u.Dependencies(task, nil)
				for _, m := range append(ds, more...).Errors() {
					if m.Code != "unit/explain-path" {
						t.Errorf("u%d: %s: %s", order[i], m.Summary, m.Detail)
					}
				}
				if i%3 == 0 {
					u.ForgetFile()
				} else {
					u.Forget()
				}
				if i%2 == 0 {
					if again, _ := everything(task, u); again != text {
						t.Errorf("u%d comes out otherwise when it is computed again", order[i])
					}
				}
				out[order[i]] = fmt.Sprint(text, edges)
			})
			return out
		}
		forward := make([]int, units)
		for i := range forward {
			forward[i] = i
		}
		shuffled := rand.New(rand.NewPCG(seed, 2)).Perm(units)
		if d := cmp.Diff(run(forward, 1), run(shuffled, 4)); d != "" {
			t.Errorf("the order of evaluation shows:\n%s", d)
		}
	})
}

// FuzzImporters imports one file from many directories. Its values must be equal, except
// for functions that depend on the leaf unit.
func FuzzImporters(f *testing.F) {
	f.Add(uint8(5), `"${get_terragrunt_dir()}/${basename(find_in_parent_folders("root.hcl"))}"`)
	f.Add(uint8(3), `merge({ a = values.n }, import.below.inputs)`)
	f.Add(uint8(9), `[for p in ["x", "y"] : relpath(get_terragrunt_dir(), "${get_terragrunt_dir()}/../${p}")]`)
	f.Add(uint8(2), `path_relative_to_import()`)
	f.Fuzz(func(t *testing.T, n uint8, x string) {
		files := map[string]string{
			"root.hcl":                       "inputs = { root = get_terragrunt_dir() }",
			"s/terragrunt.values.hcl":        "n = 7",
			"s/shared.hcl":                   "import \"below\" {\n config_path = \"../root.hcl\"\n}\nlocals {\n x = " + x + "\n}\ninputs = { x = local.x, up = import.below.inputs.root }",
			"other/terragrunt.values.hcl":    "n = 8",
			"other/elsewhere/terragrunt.hcl": "",
		}
		units := int(n%10) + 2
		for i := range units {
			files[strings.Repeat("d/", i)+"u/terragrunt.hcl"] = "import \"s\" {\n config_path = \"/w/s/shared.hcl\"\n}\nlocals {\n all = import.s.inputs\n dir = import.s.terragrunt_dir\n}"
		}
		l := unit.NewLoader(memory(files))
		task := l.Task(context.Background())
		var first string
		for i := range units {
			u, ds := l.Unit(task, strings.Repeat("d/", i)+"u", "")
			if ds.HasErrors() {
				return // the text is not an expression
			}
			out, ds := u.RenderJSON(task)
			if ds.HasErrors() || leafFunctions.MatchString(x) {
				return
			}
			if i == 0 {
				first = string(out)
			} else if d := cmp.Diff(first, string(out)); d != "" {
				t.Fatalf("importer %d sees another value:\n%s", i, d)
			}
		}
	})
}

// leafFunctions matches the functions whose results may differ between units (rule 17).
var leafFunctions = regexp.MustCompile(`_import|_importing_config|original|working_dir|terraform_c|aws|uuid|bcrypt|timestamp|include`)

// TestEvaluatedOnce counts parsed and evaluated files. A file that all units import is
// parsed and evaluated once, and its commands run once, whatever the number of units.
func TestEvaluatedOnce(t *testing.T) {
	const units = 300
	files := map[string]string{
		"account.hcl": "locals {\n id = run_cmd(\"--terragrunt-no-cache\", \"id\")\n}\ninputs = { id = local.id }",
		"region.hcl":  "import \"account\" {\n config_path = \"account.hcl\"\n}\ninputs = merge(import.account.inputs, { r = 1 })",
		"vars.hcl":    "locals {\n v = run_cmd(\"--terragrunt-no-cache\", \"v\")\n}",
	}
	for i := range units {
		files[fmt.Sprintf("u%d/terragrunt.hcl", i)] = "import \"region\" {\n config_path = \"../region.hcl\"\n merge = true\n}\nlocals {\n vars = read_terragrunt_config(find_in_parent_folders(\"vars.hcl\"))\n}\ninputs = { v = local.vars.locals.v }"
	}
	env := memory(files)
	runs := make(chan string, 10*units)
	env.Machine.Run = func(_ context.Context, c sys.Command) error {
		runs <- c.Path
		_, err := c.Stdout.Write([]byte("out\n"))
		return err
	}
	l := unit.NewLoader(env)
	parallel.Each(units, 4, func(i int) {
		task := l.Task(context.Background())
		u, ds := l.Unit(task, fmt.Sprintf("u%d", i), "")
		if ds.HasErrors() {
			t.Error(ds.Err())
			return
		}
		in, ds := u.Inputs(task, nil)
		if ds.HasErrors() || len(in) != 3 {
			t.Errorf("%d inputs, %v", len(in), ds.Err())
		}
		if _, ds := u.Dependencies(task, nil); ds.HasErrors() {
			t.Error(ds.Err())
		}
	})
	close(runs)
	count := map[string]int{}
	for r := range runs {
		count[r]++
	}
	if d := cmp.Diff(map[string]int{"id": 1, "v": 1}, count); d != "" {
		t.Errorf("commands ran more than once:\n%s", d)
	}
	if got := l.Parsed(); got != units+3 {
		t.Errorf("%d files parsed, want %d", got, units+3)
	}
	if got := l.Evaluated(); got != units+3 {
		t.Errorf("%d files evaluated, want %d", got, units+3)
	}
}

// TestLongChains follows 20,000 local values and 1,000 imports in a row.
func TestLongChains(t *testing.T) {
	const locals, imports = 20000, 1000
	var b strings.Builder
	b.WriteString("locals {\n l0 = \"end\"\n")
	for i := 1; i < locals; i++ {
		fmt.Fprintf(&b, " l%d = \"${local.l%d}\"\n", i, i-1)
	}
	fmt.Fprintf(&b, "}\nimport \"i\" {\n config_path = \"../i%d.hcl\"\n merge = true\n}\ninputs = { l = local.l%d }\n", imports-1, locals-1)
	files := map[string]string{"u/terragrunt.hcl": b.String(), "i0.hcl": "inputs = { deep = \"bottom\" }"}
	for i := 1; i < imports; i++ {
		files[fmt.Sprintf("i%d.hcl", i)] = fmt.Sprintf("import \"i\" {\n config_path = \"i%d.hcl\"\n}\ninputs = { deep = import.i.inputs.deep }", i-1)
	}
	l := unit.NewLoader(memory(files))
	task := l.Task(context.Background())
	u, ds := l.Unit(task, "u", "")
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	in, ds := u.Inputs(task, nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if len(in) != 2 || in[0].Value.AsString() != "bottom" || in[1].Value.AsString() != "end" {
		t.Errorf("got %v", in)
	}
}
