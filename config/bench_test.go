package config

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/internal/base/parallel"
)

// parseFolder returns n files with variables, large locals, resources and outputs.
func parseFolder(n int) map[string][]byte {
	files := map[string][]byte{}
	for i := range n {
		files[fmt.Sprintf("p_%05d.tf", i)] = []byte(strings.ReplaceAll(parsePart, "@", fmt.Sprint(i)))
	}
	return files
}

const parsePart = `variable "v@_cfg" {
  description = "Configuration of part @."
  type = map(object({
    name   = string
    size   = optional(number, 3)
    labels = optional(map(string), {})
  }))
  default = {
    one = { name = "one", labels = { a = "1", b = "2" } }
    two = { name = "two", size = 7 }
  }
  validation {
    condition     = alltrue([for k, v in var.v@_cfg : length(v.name) > 0 && v.size < 100])
    error_message = "Part @: every entry needs a name and a size below 100."
  }
}

locals {
  l@_on      = { for k, v in var.v@_cfg : k => v if v.enabled }
  l@_flat    = flatten([for k, v in local.l@_on : [for lk, lv in v.labels : { key = "${k}/${lk}", val = lv }]])
  l@_subnets = [for s in range(8) : cidrsubnet(var.v@_cidr, 4, s)]
  l@_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for k, v in local.l@_on : {
      Sid      = replace(title(k), "/[^A-Za-z]/", "")
      Effect   = v.enabled ? "Allow" : "Deny"
      Action   = ["get:${k}", "put:${k}", format("list:%s:%03d", k, v.size)]
      Resource = concat(["arn:x:${v.name}"], [for s in local.l@_subnets : "arn:x:${s}"])
    }]
  })
  l@_script = <<-EOT
    #!/bin/sh
    # part @
    %{for k, v in local.l@_on~}
    export ${upper(k)}="${v.name}"  # size ${v.size}
    %{endfor~}
  EOT
}

resource "terraform_data" "p@" {
  for_each = local.l@_on
  input = {
    name   = each.value.name
    subnet = element(local.l@_subnets, each.value.size)
  }
  lifecycle {
    precondition {
      condition     = can(regex("^10\\.", var.v@_cidr))
      error_message = "Part @ needs a 10/8 range, got ${var.v@_cidr}."
    }
  }
}

output "o@" {
  value = { for k, r in terraform_data.p@ : k => r.output if can(r.output) }
}
`

// overrideFolder returns n resources, 50 in each file, each overridden in native syntax and in
// JSON.
func overrideFolder(n int) map[string][]byte {
	files := map[string][]byte{}
	for c := 0; c*50 < n; c++ {
		var base, over, js strings.Builder
		js.WriteString(`{"resource": {"terraform_data": {`)
		for i := c * 50; i < min(n, c*50+50); i++ {
			fmt.Fprintf(&base, "resource \"terraform_data\" \"r%d\" {\n  input = {\n    name  = \"r%d\"\n    rev   = var.rev\n    team  = local.teams[%d %% length(local.teams)]\n    label = \"${local.prefix}-r%d-${var.rev}\"\n  }\n}\n\n", i, i, i, i)
			fmt.Fprintf(&over, "resource \"terraform_data\" \"r%d\" {\n  input = {\n    name = \"r%d-ov\"\n    rev  = var.rev\n  }\n}\n\n", i, i)
			if i > c*50 {
				js.WriteString(",")
			}
			fmt.Fprintf(&js, `"r%d": {"triggers_replace": ["${local.prefix}-%d"]}`, i, i)
		}
		js.WriteString("}}}\n")
		files[fmt.Sprintf("base_%04d.tf", c)] = []byte(base.String())
		files[fmt.Sprintf("o_%04d_override.tf", c)] = []byte(over.String())
		files[fmt.Sprintf("o_%04d_override.tf.json", c)] = []byte(js.String())
	}
	return files
}

// bareParse only runs the parsers of the HCL library concurrently. Loading cannot be faster.
func bareParse(files map[string][]byte, workers int) []*hcl.File {
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	return parallel.Map(len(names), workers, func(i int) *hcl.File {
		var f *hcl.File
		if strings.HasSuffix(names[i], ".json") {
			f, _ = json.Parse(files[names[i]], names[i])
		} else {
			f, _ = hclsyntax.ParseConfig(files[names[i]], names[i], hcl.InitialPos)
		}
		return f
	})
}

func benchSizes(b *testing.B, folder func(int) map[string][]byte, run func(map[string][]byte)) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			files := folder(n)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				run(files)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}

func loadOrFail(b *testing.B, workers int) func(map[string][]byte) {
	return func(files map[string][]byte) {
		if _, ds := LoadFiles(".", files, Options{Workers: workers}); ds.HasErrors() {
			b.Fatal(ds.Err())
		}
	}
}

func BenchmarkBareParse(b *testing.B) {
	benchSizes(b, parseFolder, func(f map[string][]byte) { bareParse(f, 0) })
}

func BenchmarkLoadParse(b *testing.B) { benchSizes(b, parseFolder, loadOrFail(b, 0)) }

func BenchmarkLoadParseOneWorker(b *testing.B) { benchSizes(b, parseFolder, loadOrFail(b, 1)) }

func BenchmarkBareParseOverrides(b *testing.B) {
	benchSizes(b, overrideFolder, func(f map[string][]byte) { bareParse(f, 0) })
}

func BenchmarkLoadOverrides(b *testing.B) { benchSizes(b, overrideFolder, loadOrFail(b, 0)) }

// BenchmarkMerge measures the merging part of loading: splitting blocks into arguments and
// applying overrides. Compare it with BenchmarkLoadParse and BenchmarkLoadOverrides.
func BenchmarkMerge(b *testing.B) {
	for name, folder := range map[string]func(int) map[string][]byte{"parse": parseFolder, "overrides": overrideFolder} {
		b.Run(name, func(b *testing.B) {
			files := folder(1000)
			var names []string
			for n := range files {
				names = append(names, n)
			}
			c := collect(".", names, func(n string) ([]byte, error) { return files[n], nil }, Options{}.withDefaults())
			b.ReportAllocs()
			for b.Loop() {
				for _, o := range c.objects {
					kindOf(o.key.kind).merge(o.parts)
				}
			}
		})
	}
}

// BenchmarkMemory reports the memory of a loaded module besides the parse trees, per byte of
// text.
func BenchmarkMemory(b *testing.B) {
	for _, folder := range []func(int) map[string][]byte{parseFolder, overrideFolder} {
		files := folder(1000)
		text := 0
		for _, f := range files {
			text += len(f)
		}
		measure := func(f func() any) float64 {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			keep := f()
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(keep)
			return float64(after.HeapAlloc-before.HeapAlloc) / float64(text)
		}
		b.Run(fmt.Sprint(len(files)), func(b *testing.B) {
			for b.Loop() {
				trees := measure(func() any { return bareParse(files, 0) })
				whole := measure(func() any { m, _ := LoadFiles(".", files, Options{}); return m })
				b.ReportMetric(trees, "trees/text")
				b.ReportMetric(whole, "module/text")
			}
		})
	}
}
