package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// sizes are the numbers of instances in benchmarks; ns/instance should be independent of them.
var sizes = []int{100, 1000, 10000}

// workloads are directories with n resource instances each.
var workloads = map[string]func(n int) map[string]string{
	"flat": func(n int) map[string]string {
		files := map[string]string{}
		var b strings.Builder
		for i := range n {
			prev := `"root"`
			if i%10 > 0 {
				prev = fmt.Sprintf("terraform_data.r%d.output.name", i-1)
			}
			fmt.Fprintf(&b, "resource \"terraform_data\" \"r%d\" {\n  input = {\n    name = \"r%d\"\n    prev = %s\n    team = local.teams[%d %% length(local.teams)]\n  }\n}\n", i, i, prev, i)
			if i%50 == 49 || i == n-1 {
				files[fmt.Sprintf("r%05d.tf", i/50)] = b.String()
				b.Reset()
			}
		}
		files["main.tf"] = "locals {\n  teams = [\"red\", \"green\", \"blue\"]\n}\n"
		return files
	},
	"count": func(n int) map[string]string {
		return map[string]string{"main.tf": fmt.Sprintf("resource \"terraform_data\" \"a\" {\n  count = %d\n  input = \"a-${count.index}\"\n}\nresource \"terraform_data\" \"b\" {\n  count = %d\n  input = terraform_data.a[count.index].output\n}\noutput \"ids\" {\n  value = terraform_data.a[*].id\n}\n", n/2, n/2)}
	},
	"modules": func(n int) map[string]string {
		return map[string]string{
			"main.tf":   fmt.Sprintf("module \"m\" {\n  source = \"./m\"\n  count  = %d\n  name   = \"m${count.index}\"\n}\noutput \"names\" {\n  value = module.m[*].name\n}\n", n/2),
			"m/main.tf": "variable \"name\" {}\nresource \"terraform_data\" \"one\" {\n  input = var.name\n}\nresource \"terraform_data\" \"two\" {\n  input = terraform_data.one.output\n}\noutput \"name\" {\n  value = terraform_data.two.output\n}\n",
		}
	},
}

func lay(b *testing.B, files map[string]string) string {
	b.Helper()
	dir := b.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func each(b *testing.B, run func(b *testing.B, dir string, n int)) {
	for _, name := range []string{"flat", "count", "modules"} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				dir := lay(b, workloads[name](n))
				run(b, dir, n)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instance")
			})
		}
	}
}

func open(b *testing.B, dir string) *engine.Engine {
	b.Helper()
	e, ds := engine.Open(context.Background(), engine.Options{Dir: dir})
	if err := ds.Err(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	return e
}

func BenchmarkOpen(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		for b.Loop() {
			open(b, dir)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		e := open(b, dir)
		for b.Loop() {
			if err := e.Validate(context.Background()).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	each(b, func(b *testing.B, dir string, n int) {
		e := open(b, dir)
		for b.Loop() {
			made(b, e, nil, plan.Normal)
		}
	})
}

func made(b *testing.B, e *engine.Engine, s *state.State, mode plan.Mode) *plan.Plan {
	b.Helper()
	p, ds := e.Plan(context.Background(), s, engine.PlanOptions{Options: plan.Options{Mode: mode}})
	if err := ds.Err(); err != nil {
		b.Fatal(err)
	}
	return p
}

func applied(b *testing.B, e *engine.Engine, p *plan.Plan) *state.State {
	b.Helper()
	r, ds := e.Apply(context.Background(), p, engine.ApplyOptions{})
	if err := ds.Err(); err != nil {
		b.Fatal(err)
	}
	return r.State
}

func BenchmarkApply(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		e := open(b, dir)
		p := made(b, e, nil, plan.Normal)
		for b.Loop() {
			applied(b, e, p)
		}
	})
}

func BenchmarkNoop(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		e := open(b, dir)
		s := applied(b, e, made(b, e, nil, plan.Normal))
		for b.Loop() {
			made(b, e, s, plan.Normal)
		}
	})
}

func BenchmarkDestroy(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		e := open(b, dir)
		s := applied(b, e, made(b, e, nil, plan.Normal))
		p := made(b, e, s, plan.Destroy)
		for b.Loop() {
			applied(b, e, p)
		}
	})
}

// BenchmarkParseFloor measures reading and parsing the files of a directory with hclsyntax
// alone, concurrently. Open and Validate cannot be faster.
func BenchmarkParseFloor(b *testing.B) {
	each(b, func(b *testing.B, dir string, _ int) {
		names, err := filepath.Glob(filepath.Join(dir, "*.tf"))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			parallel.Each(len(names), 0, func(i int) {
				src, err := os.ReadFile(names[i])
				if err != nil {
					b.Error(err)
				}
				if _, diags := hclsyntax.ParseConfig(src, names[i], hcl.InitialPos); diags.HasErrors() {
					b.Error(diags)
				}
			})
		}
	})
}
