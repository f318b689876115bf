package hclnative

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// sample is a typical configuration file.
var sample = func() []byte {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `resource "terraform_data" "r%[1]d" {
  # what it is for
  count = var.enabled ? 2 : 0
  input = {
    name  = "item-%[1]d-${var.name}"
    rank  = %[1]d + 1
    peers = [for p in var.peers : upper(p.name) if p.rank > 10]
    prior = terraform_data.r%[2]d[0].output.name
  }

  lifecycle {
    ignore_changes = [input]
  }
}

`, i, max(0, i-1))
	}
	return []byte(b.String())
}()

func BenchmarkScan(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		if _, ok := Scan(sample, "f"); !ok {
			b.Fatal("refused")
		}
	}
	live(b, func() any { f, _ := Scan(sample, "f"); return f })
}

func BenchmarkParseConfig(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		_, _ = ParseConfig(sample, "f")
	}
	live(b, func() any { f, _ := ParseConfig(sample, "f"); return f })
}

// BenchmarkCode scans a text and compiles every expression to steps, or builds its tree if there are
// no steps for it.
func BenchmarkCode(b *testing.B) {
	var all func(body *Body) []any
	all = func(body *Body) (out []any) {
		for i := range body.Attrs {
			x := body.late(&body.Attrs[i]).Expr.(*Late)
			if code, ok := x.Code(); ok {
				out = append(out, code)
			} else {
				out = append(out, x.Tree())
			}
		}
		for _, block := range body.Blocks {
			out = append(out, all(block.Body)...)
		}
		return out
	}
	read := func() any { f, _ := Scan(sample, "f"); return append(all(f.Body), f) }
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		read()
	}
	live(b, read)
}

func BenchmarkHCLSyntax(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		_, _ = hclsyntax.ParseConfig(sample, "f", hcl.InitialPos)
	}
	live(b, func() any { f, _ := hclsyntax.ParseConfig(sample, "f", hcl.InitialPos); return f })
}

// live reports the memory that a parsed file occupies, relative to the size of the text.
func live(b *testing.B, parse func() any) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := parse()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(len(sample)), "live/text")
	runtime.KeepAlive(kept)
}
