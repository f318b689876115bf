package module_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/source"
)

// The time per call is the same for a hundred and for ten thousand calls.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 2_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			writeCalls(b, dir, n)
			for b.Loop() {
				tree, ds := module.Build(b.Context(), dir, module.Options{Config: config.Options{Set: &source.Set{}}})
				if ds.HasErrors() || len(tree.Root.Calls) != n {
					b.Fatal(len(tree.Root.Calls), ds.Err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
		})
	}
}

// writeCalls writes n calls of a module that calls another one, with fifty calls in each file.
func writeCalls(b *testing.B, dir string, n int) {
	files := map[string]string{
		"mod/main.tf":       "variable \"name\" {}\nmodule \"inner\" {\n  source = \"./inner\"\n}\noutput \"name\" {\n  value = var.name\n}\n",
		"mod/inner/main.tf": "output \"x\" {\n  value = 1\n}\n",
	}
	for i := 0; i < n; i += 50 {
		var text strings.Builder
		for k := i; k < min(i+50, n); k++ {
			fmt.Fprintf(&text, "module \"m%d\" {\n  source = \"./mod\"\n  name   = \"m-%d\"\n}\n\n", k, k)
		}
		files[fmt.Sprintf("calls_%05d.tf", i)] = text.String()
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}
