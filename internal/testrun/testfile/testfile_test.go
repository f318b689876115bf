package testfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/source"
)

// messages returns one line for each message: its line in the file, and its summary.
func messages(t *testing.T, text string) (*testfile.File, string) {
	t.Helper()
	var set source.Set
	f, ds := testfile.Parse("a.tftest.hcl", []byte(text), &set)
	var b strings.Builder
	for _, m := range ds {
		fmt.Fprintf(&b, "%d %s\n", m.At.Start.Line, m.Summary)
	}
	return f, b.String()
}

// Runs are in the order of the file. An argument that a run does not set has the zero value, or
// nil if the file has a setting for it.
func TestRuns(t *testing.T) {
	f, got := messages(t, `
test { parallel = true }
run "second" {
  command  = plan
  parallel = false
  variables { x = 1 }
  assert {
    condition     = output.x == 1
    error_message = "No."
  }
  expect_failures = [var.x, check.c]
  plan_options {
    mode   = refresh-only
    target = [terraform_data.x]
  }
}
run "first" {}
`)
	if got != "" || strings.Join(f.Names(), " ") != "second first" || !f.Parallel {
		t.Fatalf("%s %v", got, f.Names())
	}
	r := f.Runs[0]
	if r.Command != testfile.Plan || r.Parallel == nil || *r.Parallel || r.Variables["x"] == nil || len(r.Asserts) != 1 || len(r.Expected) != 2 || !r.RefreshOnly || len(r.Targets) != 1 {
		t.Errorf("%+v", r)
	}
	if r := f.Runs[1]; r.Command != testfile.Apply || r.Parallel != nil || r.Module != nil || r.Mapped || r.NoRefresh {
		t.Errorf("%+v", r)
	}
}

// Each error has the position of its part, errors are in the order of the file, and the File
// contains the parts without errors.
func TestErrors(t *testing.T) {
	f, got := messages(t, `
variables { x = 1 }
variables { x = 2 }
run "a b" {}
run "good" { command = destroy }
run "c" {
  assert {
    condition     = 1 == 1
    error_message = "Constant."
  }
}
override_resource { target = data.x.y }
override_data { target = data.x.y }
mock_provider "p" {}
provider "p" {}
run "c" {}
`)
	want := `3 Multiple "variables" blocks
4 Invalid run block name
5 Invalid "command" keyword
8 Invalid assert expression
12 Unsupported target
15 Duplicate provider block
16 Duplicate "run" block names
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(f.Overrides) != 1 || f.Overrides[0].Kind != testfile.Data || f.Providers["p"].Mock == nil || strings.Join(f.Names(), ",") != "a b,good,c,c" {
		t.Errorf("%+v", f)
	}
}

// A file without runs has no names: nil, not an empty list. A file that cannot be parsed is an
// error with a position, not a panic.
func TestEmpty(t *testing.T) {
	if f, got := messages(t, ""); f.Names() != nil || got != "" {
		t.Errorf("%v %s", f.Names(), got)
	}
	for _, text := range []string{"run {", "run \"a\" \"b\" {}", "}", strings.Repeat("[", 100_000)} {
		if f, got := messages(t, text); f == nil || got == "" {
			t.Errorf("%.20s: %v %s", text, f, got)
		}
	}
}

// Add keeps the values of types that both mocks contain, and adds those of other types.
func TestAddMocks(t *testing.T) {
	parse := func(text string) *testfile.Mock {
		var set source.Set
		m, ds := testfile.ParseMocks("a.tfmock.hcl", []byte(text), &set)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		return m
	}
	m := parse("mock_resource \"a\" {\n  defaults = { x = 1 }\n}\n")
	own := m.Resources["a"]
	m.Add(parse("mock_resource \"a\" {}\nmock_resource \"b\" {}\nmock_data \"a\" {}\n"))
	if m.Resources["a"] != own || m.Resources["b"] == nil || m.Data["a"] == nil {
		t.Errorf("%+v", m)
	}
}
