package estate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/kinds"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
	"golang.org/x/tools/txtar"
)

// tree writes the files of a txtar archive and returns their directory.
func tree(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// backends returns the backend types, without a network.
func backends() *backend.Set {
	return backend.NewSet(kinds.All(), kinds.Unknown, backend.Services{Who: "test@host", Now: time.Now, Shared: new(backend.Shared)})
}

func options(dir, command string) estate.Options {
	return estate.Options{Discovery: discovery.Settings{Root: dir}, Request: unit.Request{Command: command, Args: []string{command}}, Who: "test@host", Machine: unit.Machine{Now: time.Now}, Host: estate.Host{Backends: backends()}}
}

func open(t testing.TB, o estate.Options) *estate.Estate {
	t.Helper()
	e, ds := estate.Open(t.Context(), o)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

func statuses(results []*estate.Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%s %s +%d ~%d -%d %s\n", r.Unit.Name, r.Status, r.Counts.Add, r.Counts.Change, r.Counts.Destroy, r.Reason)
	}
	return b.String()
}

const chain = `
-- a/terragrunt.hcl --
terraform { source = "../m" }
-- b/terragrunt.hcl --
terraform { source = "../m" }
dependency "a" { config_path = "../a" }
inputs = { from = dependency.a.outputs.id }
-- c/terragrunt.hcl --
terraform { source = "../m" }
dependency "b" { config_path = "../b" }
inputs = { from = dependency.b.outputs.id }
-- m/main.tf --
variable "from" {
  type    = string
  default = ""
}
resource "terraform_data" "x" { input = var.from }
output "id" { value = terraform_data.x.id }
`

// TestRun plans, applies and destroys a chain of units with one Estate. Each run uses the results
// of the one before.
func TestRun(t *testing.T) {
	e := open(t, options(tree(t, chain), "apply"))
	steps := []struct {
		o    estate.RunOptions
		want string
	}{
		{estate.RunOptions{Op: estate.Plan}, "a succeeded +1 ~0 -0 \nb succeeded +1 ~0 -0 \nc succeeded +1 ~0 -0 \n"},
		{estate.RunOptions{Op: estate.Apply}, "a succeeded +1 ~0 -0 \nb succeeded +1 ~0 -0 \nc succeeded +1 ~0 -0 \n"},
		{estate.RunOptions{Op: estate.Plan}, "a succeeded +0 ~0 -0 \nb succeeded +0 ~0 -0 \nc succeeded +0 ~0 -0 \n"},
		{estate.RunOptions{Op: estate.Apply, Plan: plan.Options{Mode: plan.Destroy}}, "a succeeded +0 ~0 -1 \nb succeeded +0 ~0 -1 \nc succeeded +0 ~0 -1 \n"},
	}
	for i, s := range steps {
		if d := cmp.Diff(s.want, statuses(e.Run(t.Context(), s.o))); d != "" {
			t.Errorf("step %d: %s", i, d)
		}
	}
}

// TestApproved changes a unit after its plan was approved. The unit is not applied, and dependent
// units do not run.
func TestApproved(t *testing.T) {
	dir := tree(t, chain+"-- d/terragrunt.hcl --\n-- d/main.tf --\nresource \"terraform_data\" \"x\" {}\n")
	e := open(t, options(dir, "apply"))
	approved := saved.Approve(e.Run(t.Context(), estate.RunOptions{Op: estate.Plan}))
	more := "resource \"terraform_data\" \"x\" {}\nresource \"terraform_data\" \"new\" {}\n"
	if err := os.WriteFile(filepath.Join(dir, "d", "main.tf"), []byte(more), 0o644); err != nil {
		t.Fatal(err)
	}
	e2 := open(t, options(dir, "apply")) // an estate caches parsed files
	results := e2.Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: approved})
	last := results[len(results)-1]
	if last.Status != estate.Failed || !strings.Contains(last.Diags.Err().Error(), "terraform_data.new") {
		t.Errorf("d: %s %v", last.Status, last.Diags.Err())
	}
	if _, err := os.Stat(filepath.Join(dir, "d", ".terragrunt-cache")); err == nil {
		if found, _ := filepath.Glob(filepath.Join(dir, "d", ".terragrunt-cache", "*", "*", "terraform.tfstate")); len(found) > 0 {
			if b, _ := os.ReadFile(found[0]); strings.Contains(string(b), "terraform_data") {
				t.Error("d was applied")
			}
		}
	}
	if results[0].Status != estate.Succeeded {
		t.Errorf("a: %s", results[0].Status)
	}
}

// TestStop closes Stop when the first unit ends. No other unit starts.
func TestStop(t *testing.T) {
	e := open(t, options(tree(t, chain), "apply"))
	stop := make(chan struct{})
	results := e.Run(t.Context(), estate.RunOptions{Op: estate.Apply, Stop: stop, Observe: estate.Watch{OnEnded: func(r *estate.Result) {
		if r.Unit.Name == "a" {
			close(stop)
		}
	}}})
	want := "a succeeded +1 ~0 -0 \nb early exit +0 ~0 -0 run error\nc early exit +0 ~0 -0 ancestor error\n"
	if d := cmp.Diff(want, statuses(results)); d != "" {
		t.Error(d)
	}
}

// TestParallelism counts the units that run concurrently.
func TestParallelism(t *testing.T) {
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "-- u%02d/terragrunt.hcl --\nterraform { source = \"../m\" }\n", i)
	}
	text.WriteString("-- m/main.tf --\nresource \"terraform_data\" \"x\" {}\n")
	e := open(t, options(tree(t, text.String()), "plan"))
	const limit = 3
	var now, most atomic.Int32
	full := make(chan struct{}) // closed when the maximum number of units run; each unit waits for that
	fill := sync.OnceFunc(func() { close(full) })
	e.Run(t.Context(), estate.RunOptions{Op: estate.Plan, Limits: estate.Limits{Units: limit}, Observe: estate.Watch{
		OnStarted: func(*estate.Unit) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == limit {
				fill()
			}
			select {
			case <-full:
			case <-time.After(time.Minute):
			}
		},
		OnEnded: func(*estate.Result) { now.Add(-1) },
	}})
	if n := most.Load(); n != limit {
		t.Errorf("%d units at once, want %d", n, limit)
	}
}

// TestSharedState configures two units with the same state file.
func TestSharedState(t *testing.T) {
	const text = `
-- root.hcl --
remote_state {
  backend = "local"
  config  = { path = "${get_parent_terragrunt_dir()}/one.tfstate" }
}
-- a/terragrunt.hcl --
include "root" { path = "../root.hcl" }
-- a/main.tf --
terraform {
  backend "local" {}
}
resource "terraform_data" "x" {}
-- b/terragrunt.hcl --
include "root" { path = "../root.hcl" }
dependencies { paths = ["../a"] }
-- b/main.tf --
terraform {
  backend "local" {}
}
resource "terraform_data" "y" {}
`
	e := open(t, options(tree(t, text), "plan"))
	results := e.Run(t.Context(), estate.RunOptions{Op: estate.Plan})
	if r := results[1]; r.Status != estate.Failed || !strings.Contains(r.Diags.Err().Error(), "a and b") || r.Diags[0].At == nil || r.Diags[0].At.Start.Line != 1 {
		t.Errorf("b: %s %v", r.Status, r.Diags.Err())
	}
}

func TestFilters(t *testing.T) {
	dir := tree(t, strings.ReplaceAll(chain, "-- ", "-- live/"))
	tests := []struct {
		filters string // one per line
		want    string
	}{
		{"a", "live/a"},
		{"./live/*", "live/a live/b live/c"},
		{"./live/**", "live/a live/b live/c"},
		{"!b", "live/a live/c"},
		{"a\nc", "live/a live/c"},
		{"./live/*\n!a", "live/b live/c"},
		{"c...", "live/a live/b live/c"},
		{"c...1", "live/b live/c"},
		{"^c...", "live/a live/b"},
		{"...a", "live/a live/b live/c"},
		{"1...a", "live/a live/b"},
		{"...^b...", "live/a live/c"},
		{"./live/* | name=[ab]", "live/a live/b"},
		{"{live/b}", "live/b"},
		{"type=stack", ""},
		{"source=../m", "live/a live/b live/c"},
		{"{live/{a,c}}", "live/a live/c"},
	}
	for _, tt := range tests {
		o := options(dir, "plan")
		o.Discovery.Filters = strings.Split(tt.filters, "\n")
		var names []string
		for _, u := range open(t, o).Found.Units {
			names = append(names, u.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.filters, got, tt.want)
		}
	}
	for _, bad := range []string{"[HEAD~1]", "(x)", "color=red", "a |", "!"} {
		o := options(dir, "plan")
		o.Discovery.Filters = []string{bad}
		if _, ds := estate.Open(t.Context(), o); !ds.HasErrors() {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestShared counts how often a module that several units share is parsed.
func TestShared(t *testing.T) {
	e := open(t, options(tree(t, chain), "plan"))
	sets := map[any]bool{}
	for _, r := range e.Run(t.Context(), estate.RunOptions{Op: estate.Plan}) {
		sets[r.Set] = true
	}
	if len(sets) != 1 {
		t.Errorf("the module of three units was parsed %d times", len(sets))
	}
}

func ExampleEstate_Run() {
	dir, err := os.MkdirTemp("", "estate")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, f := range txtar.Parse([]byte(chain)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			panic(err)
		}
	}
	ctx := context.Background()
	e, ds := estate.Open(ctx, estate.Options{Discovery: discovery.Settings{Root: dir}, Request: unit.Request{Command: "plan", Args: []string{"plan"}}, Machine: unit.Machine{Now: time.Now}, Host: estate.Host{Backends: backends()}})
	if ds.HasErrors() {
		fmt.Println(ds.Err())
		return
	}
	for _, r := range e.Run(ctx, estate.RunOptions{Op: estate.Plan}) {
		fmt.Println(r.Unit.Name, r.Status, r.Counts.Add)
	}
	// Output:
	// a succeeded 1
	// b succeeded 1
	// c succeeded 1
}
