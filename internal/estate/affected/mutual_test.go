package affected_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/affected"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/unit"
	"golang.org/x/tools/txtar"
)

// within fails the test if f does not end in time: units that wait for each other never end.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("the units wait for each other")
	}
}

// mutual contains units that read each other's outputs for inputs that their module does not declare.
const mutual = `
-- m/main.tf --
variable "name" { default = "" }
output "x" { value = "v-${var.name}" }
-- env.hcl --
dependency "a" { config_path = "a" }
dependency "b" { config_path = "b" }
-- a/terragrunt.hcl --
import "env" { config_path = "../env.hcl" }
terraform { source = "../m" }
inputs = {
  name = "1"
  from = import.env.dependency.b.outputs.x
}
-- b/terragrunt.hcl --
import "env" { config_path = "../env.hcl" }
terraform { source = "../m" }
inputs = {
  from = import.env.dependency.a.outputs.x
}
`

// outside contains a unit of the estate in live, and one outside of it, that depend on each other.
const outside = `
-- m/main.tf --
variable "from" { default = "" }
output "x" { value = "v-${var.from}" }
-- live/a/terragrunt.hcl --
terraform { source = "../../m" }
dependency "o" { config_path = "../../o" }
inputs = { from = dependency.o.outputs.x }
-- o/terragrunt.hcl --
terraform { source = "../m" }
dependency "a" { config_path = "../live/a" }
inputs = { from = dependency.a.outputs.x }
`

// The order in which units are compared does not matter for units that read each other's outputs.
func TestMutualOutputs(t *testing.T) {
	t.Parallel()
	for range 5 {
		within(t, func() {
			got := linesBelow(t, mutual, "", `name = "1"`, `name = "2"`)
			want := "a inputs name changed a/terragrunt.hcl:4\na output.x  changed a/terragrunt.hcl:4\nb inputs from changed b/terragrunt.hcl:4"
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMutualOutside compares units in a cycle with a unit outside of the estate. Discovery sees only a part of
// such a cycle.
func TestMutualOutside(t *testing.T) {
	t.Parallel()
	within(t, func() {
		got := linesBelow(t, outside, "live", "v-", "w-")
		if !strings.Contains(got, "a output.x  may_change") {
			t.Error(got)
		}
	})
}

// linesBelow returns the differences between the units in a directory and the units with replaced texts.
func linesBelow(t *testing.T, units, dir string, replace ...string) string {
	before, after := testkit.Files(t, units), testkit.Files(t, strings.NewReplacer(replace...).Replace(units))
	m := unit.Machine{Now: time.Now}
	return linesBetween(t, openRevision(t, filepath.Join(before, dir), filepath.Join(after, dir), m), openRevision(t, filepath.Join(after, dir), filepath.Join(after, dir), m))
}

// The subjects of units, with all inputs, end also for units that read each other's outputs.
func TestMutualSubjects(t *testing.T) {
	t.Parallel()
	all := func(subject.Kind, string) bool { return true }
	within(t, func() {
		dir := testkit.Files(t, mutual)
		e := openRevision(t, dir, dir, unit.Machine{Now: time.Now}).Estate
		x := e.Subjects(all, func(path string) string { return path }, "", nil)
		got := ""
		for _, u := range e.Found.Units {
			found, ds := x.Of(t.Context(), u)
			if ds.HasErrors() {
				t.Fatal(ds.Errors()[0].Detail)
			}
			for _, s := range found.All {
				if s.Kind == subject.Unit && s.Lacks == "" {
					got += s.Name + " " + s.Attrs.GetAttr("from").AsString() + "\n"
				}
			}
		}
		if want := "a v-\nb v-1\n"; got != want {
			t.Errorf("inputs %q, want %q", got, want)
		}
	})
	within(t, func() {
		dir := filepath.Join(testkit.Files(t, outside), "live")
		e := openRevision(t, dir, dir, unit.Machine{Now: time.Now}).Estate
		found, ds := e.Subjects(all, func(path string) string { return path }, "", nil).Of(t.Context(), e.Found.Units[0])
		if ds.HasErrors() || found.All[0].Attrs.GetAttr("from").IsKnown() {
			t.Errorf("errors %v, input %#v", ds.Err(), found.All[0].Attrs)
		}
	})
}

// The subjects and the differences of all scenarios of the language of units end.
func TestScenariosEnd(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../unit/testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write := func(edit string) string {
				text := ""
				for _, f := range a.Files {
					if ext := filepath.Ext(f.Name); !strings.HasPrefix(f.Name, "want/") && (ext == ".hcl" || ext == ".tf") {
						text += "-- " + f.Name + " --\n" + edit + string(f.Data)
					}
				}
				return testkit.Files(t, text)
			}
			old, now := write(""), write("# edited\n")
			open := func(dir string) *estate.Estate {
				e, _ := estate.Open(t.Context(), estateOptions(dir, unit.Machine{Now: time.Now})) // some scenarios have errors
				t.Cleanup(func() { e.Close(context.WithoutCancel(t.Context())) })
				return e
			}
			show := func(path string) string { return path }
			within(t, func() {
				base, head := open(old), open(now)
				affected.Estates(t.Context(), affected.Revision{Estate: base, OutlineOptions: estate.OutlineOptions{Show: show}}, affected.Revision{Estate: head, OutlineOptions: estate.OutlineOptions{Show: show}})
				e := open(now)
				x := e.Subjects(func(subject.Kind, string) bool { return true }, show, "", nil)
				for _, u := range e.Found.Units {
					x.Of(t.Context(), u)
				}
			})
		})
	}
}
