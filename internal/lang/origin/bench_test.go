package origin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lang/eval"
)

// many returns the files of a directory: n files with variables, locals and resources.
func many(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, "variable \"v%d\" {\n  type = map(object({ name = string, size = optional(number, 3) }))\n  default = { one = { name = \"one\" }, two = { name = \"two\", size = 7 } }\n}\n", i)
		fmt.Fprintf(&b, "locals {\n  on%d = { for k, v in var.v%d : k => v if v.size < 100 }\n  all%d = merge(local.on%d, { three = { name = local.prev%d, size = 1 } })\n", i, i, i, i, i)
		if i == 0 {
			b.WriteString("  prev0 = \"first\"\n}\n")
		} else {
			fmt.Fprintf(&b, "  prev%d = local.all%d[\"three\"].name\n}\n", i, i-1)
		}
		fmt.Fprintf(&b, "resource \"terraform_data\" \"r%d\" {\n  for_each = local.on%d\n  input = { name = each.value.name, all = local.all%d[\"three\"].name }\n}\n", i, i, i)
		files[fmt.Sprintf("f%04d.tf", i)] = b.String()
	}
	return files
}

// BenchmarkExplain measures the first explanation after loading a directory of 1,000 files, including
// evaluation: of a value without dependencies, and of a value at the end of a chain through all files.
func BenchmarkExplain(b *testing.B) {
	files := many(1000)
	for name, address := range map[string]string{"near": "terraform_data.r0[\"one\"].input.name", "far": "local.all300"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				h := open(b, files, nil, nil, nil)
				b.StartTimer()
				h.Eval = eval.New(h.graph, h.options)
				if _, ds := h.ask(b, address); ds.HasErrors() {
					b.Fatal(ds.Err())
				}
			}
		})
	}
}
