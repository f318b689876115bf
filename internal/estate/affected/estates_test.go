package affected_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/syntax"
)

const units = `
-- root.hcl --
locals { region = "eu" }
inputs = { region = local.region }
-- a/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
inputs = { name = "a" }
-- net/terragrunt.hcl --
terraform { source = "../m" }
inputs = { name = "net", region = "eu" }
-- b/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
dependency "net" { config_path = "../net" }
inputs = {
  name = "b-${dependency.net.outputs.name}"
  id   = dependency.net.outputs.id
}
-- m/main.tf --
variable "name" { type = string }
variable "region" { type = string }
variable "id" { default = "" }
resource "terraform_data" "x" {
  input = { name = var.name, region = var.region, id = var.id }
}
output "name" { value = var.name }
output "id" { value = terraform_data.x.id }
`

// estateOptions returns the options of an estate in a directory.
func estateOptions(dir string, m unit.Machine) estate.Options {
	return estate.Options{
		Discovery: discovery.Settings{Root: dir, Command: "plan", Whole: true}, Checking: true,
		Request: unit.Request{Command: "plan", Args: []string{"plan"}}, Machine: m,
		Host: estate.Host{Backends: backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{Now: time.Now, Shared: new(backend.Shared)})},
	}
}

// lines returns one line for each difference between units and units with replaced texts.
func lines(t *testing.T, replace ...string) string {
	t.Helper()
	return linesOf(t, units, replace...)
}

// linesOf is like lines for other units.
func linesOf(t *testing.T, units string, replace ...string) string {
	t.Helper()
	before, after := testkit.Files(t, units), testkit.Files(t, strings.NewReplacer(replace...).Replace(units))
	m := unit.Machine{Now: time.Now}
	out := linesBetween(t, openRevision(t, before, after, m), openRevision(t, after, after, m))
	base, head, ok := replacing(t, before, after)
	if !ok {
		return out
	}
	if other := linesBetween(t, base, head); other != out {
		t.Errorf("with replaced texts: %s", cmp.Diff(out, other))
	}
	return out
}

// replacing returns the revisions of two directories as affected opens those of a commit that differs from
// the working tree in texts only: both read the second directory and share parsed files, and the texts
// of the first replace those on disk. ok is false if other files exist.
func replacing(t *testing.T, before, after string) (base, head affected.Revision, ok bool) {
	t.Helper()
	read := func(dir string) map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			out[strings.TrimPrefix(path, dir)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one, two := read(before), read(after)
	if !slices.Equal(slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(two))) {
		return base, head, false
	}
	parses, files := &syntax.Parses{}, &readfile.Kept{}
	patch := func(texts map[string]string) *readfile.Patch {
		p := readfile.NewPatch(after)
		for name, text := range texts {
			if text != two[name] {
				p.Put(filepath.Join(after, name), 0o644, func() ([]byte, error) { return []byte(text), nil })
			}
		}
		return p
	}
	patches := []*readfile.Patch{patch(one), patch(two)}
	open := func(i int) affected.Revision {
		o := estateOptions(after, unit.Machine{Now: time.Now})
		o.Parses, o.Discovery.Overlay = parses, &stacks.Overlay{}
		p, unitFilesOnly := patches[i], false
		if paths, resolve, ok := readfile.Modified(patches[0], p); ok && i == 1 {
			o.Changed, unitFilesOnly = affected.ChangesIn(paths, resolve, files.Patched(patches[0]))
		}
		o.Host.Plugins = &workdir.Plugins{Directory: &workdir.Directory{Files: files.Patched(p)}}
		e, ds := estate.Open(t.Context(), o)
		t.Cleanup(func() { e.Close(context.WithoutCancel(t.Context())) })
		if ds.HasErrors() {
			t.Error(ds.Errors()[0].Detail)
		}
		show := func(file string) string { return strings.TrimPrefix(file, after+"/") }
		return affected.Revision{Estate: e, OutlineOptions: estate.OutlineOptions{Show: show, UnitFilesOnly: unitFilesOnly}}
	}
	both := parallel.Map(2, 2, open) // at once, as affected does
	return both[0], both[1], true
}

// linesBetween returns one line for each difference between two revisions.
func linesBetween(t *testing.T, base, head affected.Revision) string {
	t.Helper()
	all, failed, ds := affected.Estates(t.Context(), base, head)
	if ds.HasErrors() || len(failed) > 0 {
		t.Fatal(ds, failed)
	}
	r := &affected.Report{Units: all}
	r.Finish()
	var out []string
	for _, u := range r.Units {
		if len(u.Objects) == 0 {
			out = append(out, strings.TrimSuffix(u.Name+" "+string(u.Action)+" "+u.Was, " "))
		}
		for _, o := range u.Objects {
			for _, c := range o.Changes {
				text := u.Name + " " + o.Address + " " + c.Path + " " + string(c.Action)
				if c.Cause != nil {
					at := r.Causes[*c.Cause]
					text += " " + at.File + ":" + string(rune('0'+at.Line))
				}
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "\n")
}

func TestEstates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		replace []string
		want    string
	}{
		{"equal", nil, ""},
		{"comment", []string{"locals {", "# a comment\nlocals {", "dependency \"net\" {", "\n\ndependency \"net\" {"}, ""},
		{"renamed local", []string{"locals { region", "locals { where", "local.region", "local.where"}, ""},
		{"root file", []string{`locals { region = "eu" }`, `locals { region = "us" }`},
			"a inputs region changed root.hcl:1\na output.id  may_change root.hcl:1\na terraform_data.x input.region changed root.hcl:1\n" +
				"b inputs region changed root.hcl:1\nb output.id  may_change root.hcl:1\nb terraform_data.x input.region changed root.hcl:1"},
		{"known output", []string{`name = "net"`, `name = "network"`},
			"b inputs id may_change net/terragrunt.hcl:2\nb inputs name changed net/terragrunt.hcl:2\nb output.id  may_change net/terragrunt.hcl:2\n" +
				"b output.name  changed net/terragrunt.hcl:2\nb terraform_data.x input.id may_change net/terragrunt.hcl:2\nb terraform_data.x input.name changed net/terragrunt.hcl:2\n" +
				"net inputs name changed net/terragrunt.hcl:2\nnet output.id  may_change net/terragrunt.hcl:2\nnet output.name  changed net/terragrunt.hcl:2\nnet terraform_data.x input.name changed net/terragrunt.hcl:2"},
		{"hook", []string{"terraform { source = \"../m\" }\ninputs = { name = \"a\" }", "terraform {\n  source = \"../m\"\n  before_hook \"h\" {\n    commands = [\"plan\"]\n    execute = [\"touch\", \"x\"]\n  }\n}\ninputs = { name = \"a\" }"},
			"a terraform before_hook[0] h added a/terragrunt.hcl:4"},
		{"added", []string{"-- m/main.tf --", "-- new/terragrunt.hcl --\nterraform { source = \"../m\" }\ninputs = { name = \"n\", region = \"eu\" }\n-- m/main.tf --"}, "new added"},
		{"moved", []string{"-- a/terragrunt.hcl --", "-- z/terragrunt.hcl --"}, "z moved a"},
		{"moved to an earlier name", []string{"-- a/terragrunt.hcl --", "-- Z/terragrunt.hcl --"}, "Z moved a"},
		{"moved, with another value", []string{"-- a/terragrunt.hcl --", "-- z/terragrunt.hcl --", `inputs = { region = local.region }`, "inputs = {\n  region = local.region\n  id = 1\n}"},
			"z inputs id added root.hcl:4\nz output.id  may_change root.hcl:4\nz terraform_data.x input.id changed root.hcl:4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, lines(t, test.replace...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// An output that is unknown before an apply may change its readers only if its definition differs.
func TestUnknownOutput(t *testing.T) {
	t.Parallel()
	got := lines(t, `output "id" { value = terraform_data.x.id }`, `output "id" { value = "${terraform_data.x.id}-x" }`)
	for _, want := range []string{"b inputs id may_change m/main.tf:8", "b terraform_data.x input.id may_change m/main.tf:8", "net output.id  may_change m/main.tf:8"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "net inputs") || strings.Contains(got, "name") {
		t.Error(got)
	}
}

// Equal differences of several units are explained once. Each unit has its own cause nevertheless.
func TestCausesOfUnits(t *testing.T) {
	t.Parallel()
	got := linesOf(t, `
-- root.hcl --
locals {
  mine = "eu"
  other = "eu"
}
inputs = {
  region = basename(get_original_terragrunt_dir()) == "b" ? local.other : local.mine
}
-- second.hcl --
locals { region = "eu" }
inputs = { region = local.region }
-- a/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
-- b/terragrunt.hcl --
include "root" { path = find_in_parent_folders("root.hcl") }
terraform { source = "../m" }
-- c/terragrunt.hcl --
include "root" { path = find_in_parent_folders("second.hcl") }
terraform { source = "../m" }
-- d/terragrunt.hcl --
include "root" { path = find_in_parent_folders("second.hcl") }
terraform { source = "../m" }
-- m/main.tf --
variable "region" { type = string }
output "region" { value = var.region }
`, `"eu"`, `"us"`)
	want := `a inputs region changed root.hcl:2
a output.region  changed root.hcl:2
b inputs region changed root.hcl:3
b output.region  changed root.hcl:3
c inputs region changed second.hcl:1
c output.region  changed second.hcl:1
d inputs region changed second.hcl:1
d output.region  changed second.hcl:1`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The cause of an added or removed key is the line that adds or removes it, not one that passes the map on.
func TestCausesOfKeys(t *testing.T) {
	t.Parallel()
	const files = `
-- env.hcl --
inputs = {
  tags = { env = "dev"KEY }
}
-- a/terragrunt.hcl --
include "env" { path = find_in_parent_folders("env.hcl") }
terraform { source = "../m" }
-- m/main.tf --
variable "tags" { type = map(string) }
resource "terraform_data" "x" {
  input = { tags = var.tags }
}
`
	for _, x := range []struct{ from, to, action string }{{"", ", cost = 7", "added"}, {", cost = 7", "", "removed"}} {
		text := strings.Replace(files, "KEY", x.from, 1)
		got := linesOf(t, text, `"dev"`+x.from, `"dev"`+x.to)
		want := "a inputs tags.cost " + x.action + " env.hcl:2\na terraform_data.x input.tags.cost " + x.action + " env.hcl:2"
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// The values in a module whose configuration is equal can differ because of a file that it reads.
func TestModuleReadsFile(t *testing.T) {
	t.Parallel()
	got := linesOf(t, `
-- a/terragrunt.hcl --
terraform { source = "../m" }
-- b/terragrunt.hcl --
terraform { source = "../m" }
dependency "a" { config_path = "../a" }
inputs = { text = dependency.a.outputs.text }
-- m/note.txt --
one
-- m/main.tf --
variable "text" { default = "" }
output "text" { value = trimspace(file("${path.module}/note.txt")) }
`, "one", "two")
	want := "a output.text  changed m/main.tf:2\nb inputs text changed m/main.tf:2\nb output.text  changed m/main.tf:2"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A comparison ends when its context does.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	const units, last = 400, 20
	text := "-- m/main.tf --\nvariable \"name\" {}\nvariable \"up\" { default = \"\" }\nresource \"terraform_data\" \"x\" {\n  input = [var.name, var.up]\n}\noutput \"id\" { value = terraform_data.x.id }\n"
	for i := range units {
		text += fmt.Sprintf("-- u%03d/terragrunt.hcl --\nterraform { source = \"../m\" }\n", i)
		if i%4 > 0 {
			text += fmt.Sprintf("dependency \"up\" { config_path = \"../u%03d\" }\ninputs = { name = \"NAME\", up = dependency.up.outputs.id }\n", i-1)
		} else {
			text += "inputs = { name = \"NAME\" }\n"
		}
	}
	before, after := testkit.Files(t, text), testkit.Files(t, strings.ReplaceAll(text, "NAME", "other"))
	for _, stop := range []int{0, 1, last} {
		a, b := openRevision(t, before, after, unit.Machine{Now: time.Now}), openRevision(t, after, after, unit.Machine{Now: time.Now})
		ctx, cancel := context.WithCancel(t.Context())
		var evaluated atomic.Int64
		b.Schemas = func(context.Context, string, map[addr.Provider][]config.Constraint) func(addr.Provider) *schema.Provider {
			if int(evaluated.Add(1)) == stop {
				cancel()
			}
			return nil
		}
		if stop == 0 {
			cancel()
		}
		all, _, ds := affected.Estates(ctx, a, b)
		cancel()
		if len(all) > last || !ds.HasErrors() || ds[0].Summary != "Interrupted" {
			t.Errorf("stopped after %d units: %d units, %v", stop, len(all), ds)
		}
		// Each worker may finish the unit that it evaluates, and units on which that depends.
		if n, most := int(evaluated.Load()), stop+4*runtime.GOMAXPROCS(0); n > most || n < stop {
			t.Errorf("stopped after %d units, but %d were evaluated; want at most %d", stop, n, most)
		}
	}
}
