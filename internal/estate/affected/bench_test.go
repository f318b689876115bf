package affected_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/syntax"
)

const (
	benchRoot = `locals {
  env = "old"
}
remote_state {
  backend = "local"
  generate = {
    path      = "backend.tf"
    if_exists = "overwrite_terragrunt"
  }
  config = { path = "${get_parent_terragrunt_dir()}/state/${path_relative_to_include()}/terraform.tfstate" }
}
inputs = { env = local.env }
`
	benchModule = `variable "name" {}
variable "env" {}
variable "upstream" { default = {} }
resource "terraform_data" "app" {
  input = { name = var.name, env = var.env }
}
resource "terraform_data" "link" {
  for_each = var.upstream
  input    = { from = each.key, to = each.value }
}
output "name" { value = terraform_data.app.output.name }
output "links" { value = [for k, l in terraform_data.link : l.output.from] }
`
)

// benchEstate writes an estate of n units in layers of 32. Each unit reads an output of two units in the
// layer before. All include root.hcl and have the same module.
func benchEstate(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	write("root.hcl", benchRoot)
	write("modules/app/main.tf", benchModule)
	const wide = 32
	name := func(i int) string { return fmt.Sprintf("l%03d/u%03d", i/wide, i%wide) }
	for i := range n {
		var text, upstream strings.Builder
		fmt.Fprintf(&text, "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\nterraform {\n  source = \"%s//app\"\n}\nlocals {\n  own = \"x\"\n}\n", "../../modules")
		for k := range 2 {
			if i < wide {
				break
			}
			of := i/wide*wide - wide + (i+k)%wide
			fmt.Fprintf(&text, "dependency \"d%d\" {\n  config_path = \"../../%s\"\n}\n", k, name(of))
			fmt.Fprintf(&upstream, "    d%d = dependency.d%d.outputs.name\n", k, k)
		}
		fmt.Fprintf(&text, "inputs = {\n  name     = \"%s-${local.own}\"\n  upstream = {\n%s  }\n}\n", name(i), upstream.String())
		write(name(i)+"/terragrunt.hcl", text.String())
	}
	return dir
}

// BenchmarkEstates compares two revisions of an estate that differ in one line: of the root file, where a
// value or a comment changes, and of one unit. "check" is one check of the estate.
func BenchmarkEstates(b *testing.B) {
	for _, n := range []int{100, 1000} {
		dir := benchEstate(b, n)
		files := &readfile.Kept{}
		open := func(b *testing.B, parses *syntax.Parses, name, from, to string) *estate.Estate {
			b.Helper()
			o := estateOptions(dir, unit.Machine{Now: time.Now})
			o.Parses, o.Discovery.Overlay = parses, &stacks.Overlay{}
			p := readfile.NewPatch(dir)
			if name != "" {
				path := filepath.Join(dir, name)
				p.Put(path, 0o644, func() ([]byte, error) {
					text, err := os.ReadFile(path)
					return []byte(strings.Replace(string(text), from, to, 1)), err
				})
			}
			o.Host.Plugins = &workdir.Plugins{Directory: &workdir.Directory{Files: files.Patched(p)}}
			e, ds := estate.Open(b.Context(), o)
			if ds.HasErrors() {
				b.Fatal(ds.Errors()[0].Detail)
			}
			return e
		}
		done := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/unit")
		}
		b.Run(fmt.Sprintf("check/%d", n), func(b *testing.B) {
			for b.Loop() {
				e := open(b, nil, "", "", "")
				if ds := e.CheckLast(b.Context(), false); ds.HasErrors() {
					b.Fatal(ds.Errors()[0].Detail)
				}
				e.Close(b.Context())
			}
			done(b)
		})
		for _, c := range []struct {
			what, name, from, to string
			want                 int
		}{
			{"value", "root.hcl", `"old"`, `"new"`, n},
			{"comment", "root.hcl", "locals {", "# a comment\nlocals {", 0},
			{"unit", "l000/u000/terragrunt.hcl", `own = "x"`, `own = "y"`, -1},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.what, n), func(b *testing.B) {
				show := func(file string) string { return strings.TrimPrefix(file, dir+"/") }
				for b.Loop() {
					parses := &syntax.Parses{}
					base, head := open(b, parses, c.name, c.from, c.to), open(b, parses, "", "", "")
					o := estate.OutlineOptions{Show: show}
					all, ds := affected.Estates(b.Context(), affected.Revision{Estate: base, OutlineOptions: o}, affected.Revision{Estate: head, OutlineOptions: o})
					if ds.HasErrors() || c.want >= 0 && len(all) != c.want || len(all) == 0 && c.want != 0 {
						b.Fatalf("%d units differ: %v", len(all), ds.Err())
					}
					base.Close(context.WithoutCancel(b.Context()))
					head.Close(context.WithoutCancel(b.Context()))
				}
				done(b)
			})
		}
	}
}
