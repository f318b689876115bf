package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// read returns the content of all files below a directory.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each workload can be parsed, has the requested size, and is always the same.
func TestWorkloads(t *testing.T) {
	blocks := map[string]int{"flat": 120, "count": 2, "foreach": 2, "modules": 5, "nested": 4, "overrides": 240, "parse": 240}
	for _, name := range Workloads() {
		t.Run(name, func(t *testing.T) {
			var first map[string]string
			for range 2 {
				dir := t.TempDir()
				if err := Write(name, 120, dir); err != nil {
					t.Fatal(err)
				}
				files := read(t, dir)
				if first == nil {
					first = files
				} else if diff := cmp.Diff(first, files); diff != "" {
					t.Error(diff)
				}
			}
			resources := 0
			for path, text := range first {
				if strings.HasSuffix(path, ".json") {
					if _, diags := json.Parse([]byte(text), path); diags.HasErrors() {
						t.Error(diags)
					}
				} else if _, diags := hclsyntax.ParseConfig([]byte(text), path, hcl.InitialPos); diags.HasErrors() {
					t.Error(diags)
				}
				if strings.Contains(strings.NewReplacer("<<-", "").Replace(text), "<1>") {
					t.Errorf("%s: an argument was not filled in", path)
				}
				resources += strings.Count(text, "\nresource \"") + strings.Count(text[:min(len(text), 10)], "resource \"")
			}
			if resources != blocks[name] {
				t.Errorf("%d resource blocks, want %d", resources, blocks[name])
			}
		})
	}
	if len(blocks) != len(Workloads()) {
		t.Errorf("workloads without a test: %v", maps.Keys(blocks))
	}
}

func TestWriteRefuses(t *testing.T) {
	if err := Write("none", 1, t.TempDir()); err == nil || !strings.Contains(err.Error(), "flat") {
		t.Errorf("got %v", err)
	}
	if err := Write("flat", 0, t.TempDir()); err == nil {
		t.Error("accepted a size of 0")
	}
}

func TestMedian(t *testing.T) {
	runs := []Figures{{Wall: 5}, {Wall: 1}, {Wall: 3, Peak: 7}}
	if m := Median(runs); m.Wall != 3 || m.Peak != 7 || runs[0].Wall != 5*time.Nanosecond {
		t.Errorf("got %+v", m)
	}
}

// BenchmarkBinary times the program: go test -bench Binary/flat ./internal/dev/bench. The
// variable TERRACE_BENCH_BINARY is the path of another binary to time.
func BenchmarkBinary(b *testing.B) {
	binary := os.Getenv("TERRACE_BENCH_BINARY")
	if binary == "" {
		binary = testkit.Terrace(b)
	}
	for _, workload := range Workloads() {
		for _, n := range []int{100, 1_000, 10_000} {
			for _, op := range Operations() {
				b.Run(fmt.Sprintf("%s/%d/%s", workload, n, op), func(b *testing.B) {
					bench, err := New(b.Context(), binary, workload, n, b.TempDir())
					if err != nil {
						b.Fatal(err)
					}
					var wall time.Duration
					var peak int64
					for range b.N {
						f, err := bench.Measure(b.Context(), op)
						if err != nil {
							b.Fatal(err)
						}
						wall += f.Wall
						peak = max(peak, f.Peak)
					}
					b.ReportMetric(0, "ns/op") // it would include the preparation
					b.ReportMetric(wall.Seconds()*1000/float64(b.N), "ms")
					b.ReportMetric(wall.Seconds()*1e6/float64(b.N)/float64(n), "µs/item")
					b.ReportMetric(float64(peak)/(1<<20), "MB")
				})
			}
		}
	}
}
