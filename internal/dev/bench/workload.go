// Package bench generates configurations of any size and times a binary on them.
//
// Main functions: Write and Measure; the program in internal/dev/bench/cmd and the
// benchmarks of this package use them. The one rule: a workload uses only the built-in
// provider, and the same name and size always give the same bytes.
package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// workloads generate the files of a configuration of size n.
var workloads = map[string]func(f *files, n int){
	"flat":      flat,
	"count":     count,
	"foreach":   forEach,
	"modules":   modules,
	"nested":    nested,
	"overrides": overrides,
	"parse":     parse,
}

// Workloads returns the names for Write.
func Workloads() []string { return slices.Sorted(maps.Keys(workloads)) }

// Write writes the configuration of a workload to a directory, which it creates.
func Write(name string, n int, dir string) error {
	make, ok := workloads[name]
	if !ok {
		return fmt.Errorf("there is no workload %q; those that there are: %s", name, strings.Join(Workloads(), ", "))
	}
	if n < 1 {
		return fmt.Errorf("a workload of size %d has nothing in it", n)
	}
	f := files{}
	make(&f, n)
	return f.write(dir)
}

// write writes the files below a directory, which it creates.
func (f files) write(dir string) error {
	for _, path := range slices.Sorted(maps.Keys(f)) {
		target := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(f[path].String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files contains the text of each file by path.
type files map[string]*strings.Builder

// add appends to a file. The arguments replace <1>, <2>, … in the text.
func (f files) add(path, text string, args ...any) {
	b := f[path]
	if b == nil {
		b = new(strings.Builder)
		f[path] = b
	}
	var pairs []string
	for i, a := range args {
		pairs = append(pairs, fmt.Sprintf("<%d>", i+1), fmt.Sprint(a))
	}
	b.WriteString(strings.NewReplacer(pairs...).Replace(text))
}

func (f files) json(path string, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // the data comes from this package
	}
	f[path] = new(strings.Builder)
	f[path].Write(append(b, '\n'))
}

const perFile = 50

const revision = `terraform {
  required_version = ">= 1.6.0"
}

variable "rev" {
  description = "Another number changes every resource."
  type        = number
  default     = 1
}
`

const names = `
locals {
  site  = "bench"
  crews = ["north", "east", "south", "west"]
}
`

// before returns the reference of item i in a chain of ten.
func before(i int, reference string) string {
	if i%10 == 0 {
		return `"start"`
	}
	return fmt.Sprintf(reference, i-1)
}

// flat writes n resources in chains of ten, fifty per file.
func flat(f *files, n int) {
	f.add("main.tf", revision+names)
	for from := 0; from < n; from += perFile {
		flatPart(*f, n, from)
	}
}

// flatPart writes the file of flat that begins with an item.
func flatPart(f files, n, from int) {
	file := fmt.Sprintf("part%04d.tf", from/perFile)
	last := min(from+perFile, n) - 1
	for i := from; i <= last; i++ {
		link(f, file, i)
	}
	f.add(file, "output \"last<1>\" {\n  value = terraform_data.item<2>.output\n}\n", from/perFile, last)
}

func link(f files, file string, i int) {
	f.add(file, `resource "terraform_data" "item<1>" {
  input = {
    title = "item<1>"
    place = <1>
    rev   = var.rev
    crew  = local.crews[<1> % length(local.crews)]
    after = <2>
    tag   = "${local.site}/item<1>/${var.rev}"
  }
}

`, i, before(i, "terraform_data.item%d.output.title"))
}

// count writes two resources of n instances, one of which reads the other by index.
func count(f *files, n int) {
	f.add("main.tf", revision+names+`
variable "many" {
  type    = number
  default = <1>
}

resource "terraform_data" "first" {
  count = var.many
  input = {
    title = "first-${count.index}"
    rev   = var.rev
    crew  = local.crews[count.index % length(local.crews)]
    tag   = "${local.site}/${count.index}"
  }
}

resource "terraform_data" "second" {
  count = var.many
  input = {
    title = "second-${count.index}"
    from  = terraform_data.first[count.index].output.title
    id    = terraform_data.first[count.index].id
  }
}

output "all" {
  value = terraform_data.first[*].id
}

output "pairs" {
  value = { for s in terraform_data.second : s.input.title => s.output.from }
}
`, n)
}

// items writes a map of n objects for for_each.
func items(f *files, n int) {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprintf("k%05d", i)] = map[string]any{"title": fmt.Sprint("thing-", i), "crew": fmt.Sprint("c", i%7)}
	}
	f.json("items.auto.tfvars.json", map[string]any{"items": all})
}

const itemsVariable = `
variable "items" {
  type = map(object({
    title = string
    crew  = string
  }))
}
`

// forEach writes the same as count, by key.
func forEach(f *files, n int) {
	items(f, n)
	f.add("main.tf", revision+names+itemsVariable+`
resource "terraform_data" "first" {
  for_each = var.items
  input = {
    key   = each.key
    title = each.value.title
    rev   = var.rev
    tag   = "${local.site}/${each.value.crew}/${each.key}"
  }
}

resource "terraform_data" "second" {
  for_each = var.items
  input = {
    key  = each.key
    from = terraform_data.first[each.key].output.title
    id   = terraform_data.first[each.key].id
  }
}

output "all" {
  value = { for k, r in terraform_data.first : k => r.id }
}

output "pairs" {
  value = { for k, r in terraform_data.second : k => r.output.from }
}
`)
}
