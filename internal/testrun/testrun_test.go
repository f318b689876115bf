package testrun_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// folder is a config.FS of a directory.
type folder struct{ fs.FS }

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) }
func (f folder) ReadFile(name string) ([]byte, error)       { return fs.ReadFile(f.FS, name) }

// program is a testrun.Program that records one line for each call of Begin and Report.
type program struct {
	reports []string
	report  func(*testrun.Result)
}

func (p *program) Given(*testfile.File, map[string]*config.Variable) (map[string]engine.InputValue, diag.List) {
	return nil, nil
}
func (p *program) Select(context.Context, []*engine.Engine) diag.List { return nil }
func (p *program) Mocks(string) (*testfile.Mock, diag.List)           { return nil, nil }
func (p *program) Take(context.Context, *testfile.File, *testfile.Run, func(hcl.Expression) (cty.Value, diag.List)) (testrun.Held, diag.List) {
	return nil, nil
}
func (p *program) Begin() { p.reports = append(p.reports, "begin") }
func (p *program) Report(_ context.Context, r *testrun.Result) {
	text := r.File.Name + " " + string(r.Status) + ":"
	for _, run := range r.Runs {
		text += fmt.Sprintf(" %s %s", run.Run.Name, run.Status)
	}
	for _, c := range r.Cleanup {
		if c.Left != nil {
			text += fmt.Sprintf(" left %d", len(c.Left.Resources))
		}
	}
	p.reports = append(p.reports, text)
	if p.report != nil {
		p.report(r)
	}
}

// suite returns the tests of a module in txtar form.
func suite(t *testing.T, p *program, archive string) *testrun.Suite {
	t.Helper()
	dir, set := testkit.Files(t, archive), &source.Set{}
	files, ds := testrun.Load(folder{os.DirFS(dir)}, testrun.DefaultDirectory, set, nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return &testrun.Suite{Engine: engine.Options{Dir: dir, Now: time.Now}, Files: files, Program: p, Parallelism: 4}
}

const module = `
-- main.tf --
variable "x" {
  default = "a"
}
resource "terraform_data" "x" { input = var.x }
output "x" { value = terraform_data.x.output }
`

// Files are reported in the order of their names, whichever ends first. A run after an error is
// skipped, and a run after a failed assertion is executed. All objects are destroyed.
func TestReports(t *testing.T) {
	var p program
	s := suite(t, &p, module+`
-- b.tftest.hcl --
run "one" {
  assert {
    condition     = output.x == "b"
    error_message = "Not b."
  }
}
run "two" {}
-- a.tftest.hcl --
run "one" {
  variables { x = run.missing.x }
}
run "two" {}
-- tests/c.tftest.hcl --
run "kept" { skip_cleanup = true }
`)
	results, ds := s.Run(t.Context())
	want := []string{"begin", "a.tftest.hcl error: one error two skip", "b.tftest.hcl fail: one fail two pass", "tests/c.tftest.hcl pass: kept pass left 1"}
	if d := cmp.Diff(want, p.reports); d != "" || ds.HasErrors() || len(results) != 3 {
		t.Error(d, ds.Err())
	}
	if m := results[1].Runs[0].Diags; len(m) != 1 || m[0].At.Filename != "b.tftest.hcl" || m[0].At.Start.Line != 3 || !strings.Contains(m[0].Detail, "Not b.") {
		t.Error(m.Err())
	}
}

// An error that prevents all tests is returned, and the program reports nothing.
func TestModuleError(t *testing.T) {
	var p program
	s := suite(t, &p, "-- main.tf --\nresource {}\n-- a.tftest.hcl --\nrun \"one\" {}\n")
	if results, ds := s.Run(t.Context()); !ds.HasErrors() || results != nil || p.reports != nil {
		t.Error(results, ds.Err(), p.reports)
	}
}

// After Stop is closed, no run begins. A file whose runs are skipped passes, as in OpenTofu.
func TestStop(t *testing.T) {
	var p program
	stop := make(chan struct{})
	s := suite(t, &p, module+"-- a.tftest.hcl --\nrun \"one\" {}\n-- b.tftest.hcl --\nrun \"two\" {}\n")
	s.Stop, s.Parallelism, p.report = stop, 1, func(*testrun.Result) { close(stop); p.report = nil }
	s.Run(t.Context())
	if d := cmp.Diff([]string{"begin", "a.tftest.hcl pass: one pass", "b.tftest.hcl pass: two skip"}, p.reports); d != "" {
		t.Error(d)
	}
}

// A missing directory of tests is a warning, except for the default directory.
func TestLoadMissing(t *testing.T) {
	for directory, warnings := range map[string]int{testrun.DefaultDirectory: 0, "checks": 1} {
		files, ds := testrun.Load(folder{os.DirFS(t.TempDir())}, directory, &source.Set{}, nil)
		if len(files) != 0 || len(ds) != warnings || ds.HasErrors() {
			t.Errorf("%s: %v %v", directory, files, ds.Err())
		}
	}
}

// Worse orders the statuses: pending, skip, pass, fail, error.
func TestWorse(t *testing.T) {
	all := []testrun.Status{testrun.Pending, testrun.Skip, testrun.Pass, testrun.Fail, testrun.Error}
	for i, a := range all {
		for j, b := range all {
			if got := a.Worse(b); got != all[max(i, j)] {
				t.Errorf("of %s and %s, %s is worse", a, b, got)
			}
		}
	}
}
