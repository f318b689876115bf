package discovery_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// find finds the units of an estate without a network, programs or git.
func find(t *testing.T, s discovery.Settings) (*discovery.Found, diag.List) {
	t.Helper()
	f := discovery.New(s)
	return f, f.Find(t.Context(), discovery.Tools{
		Modules: workcopy.NewMaker(workcopy.Settings{}),
		Loaders: func(root string) (loader, static *unit.Loader) {
			loader = unit.NewLoader(unit.Env{WorkingDir: root, Request: unit.Request{Command: s.Command}})
			return loader, loader.WithOutputs(func(*demand.Task, string, source.Range) (cty.Value, bool, diag.List) {
				return cty.DynamicVal, true, nil
			})
		},
	})
}

// live returns the root of an estate, whose parent directory contains another unit.
func live(t *testing.T) string { return filepath.Join(testkit.Files(t, chain), "live") }

func names(units []*discovery.Unit) string {
	var out []string
	for _, u := range units {
		out = append(out, u.Name)
	}
	return strings.Join(out, " ")
}

const chain = `
-- live/app/terragrunt.hcl --
dependencies { paths = ["../net", "../db"] }
-- live/db/terragrunt.hcl --
dependencies { paths = ["../net"] }
-- live/net/terragrunt.hcl --
-- live/odd/terragrunt.hcl --
dependencies { paths = ["../../elsewhere"] }
-- live/odd/.terragrunt-cache/copy/terragrunt.hcl --
-- elsewhere/terragrunt.hcl --
`

// Find sorts units by name, and Order by depth, then name. A private directory of a program
// contains no units.
func TestOrder(t *testing.T) {
	f, ds := find(t, discovery.Settings{Root: live(t)})
	got := []string{names(f.Units), names(f.Order(false)), names(f.Order(true))}
	if d := cmp.Diff([]string{"app db net odd", "net odd db app", "app odd db net"}, got); d != "" || ds.HasErrors() {
		t.Error(d, ds.Err())
	}
}

// A unit that filters remove becomes External for units that depend on it. A filter that matches
// nothing is no error.
func TestFilters(t *testing.T) {
	for _, tt := range []struct{ filter, units, external string }{
		{"db", "db", "net"},
		{"db...", "db net", ""},
		{"...^db", "app", "db net"},
		{"!{./{net,odd}}", "app db", "net net"},
		{"missing", "", ""},
	} {
		root := live(t)
		f, ds := find(t, discovery.Settings{Root: root, Filters: []string{tt.filter}, DependentsIn: root})
		var external []string
		for _, u := range f.Units {
			for _, id := range u.External {
				external = append(external, f.Name(id))
				if f.ByID(id) != nil {
					t.Errorf("%s: %s was removed and can be found", tt.filter, id)
				}
			}
		}
		if names(f.Units) != tt.units || strings.Join(external, " ") != tt.external || ds.HasErrors() {
			t.Errorf("%s: units %q, external %q: %v", tt.filter, names(f.Units), external, ds.Err())
		}
	}
}

// The error about a cycle names its units in order and refers to each dependency. Each unit of
// the cycle is invalid, and others are not.
func TestCycle(t *testing.T) {
	f, ds := find(t, discovery.Settings{Whole: true, Root: testkit.Files(t, `
-- a/terragrunt.hcl --
dependencies { paths = ["../b"] }
-- b/terragrunt.hcl --
dependencies { paths = ["../c"] }
-- c/terragrunt.hcl --
dependencies { paths = ["../a"] }
-- d/terragrunt.hcl --
dependencies { paths = ["../a"] }
`)})
	if len(ds.Errors()) != 1 || !strings.Contains(ds[0].Detail, "a → b → c → a") || len(ds[0].Notes) != 3 {
		t.Fatal(ds.Err())
	}
	for i, note := range ds[0].Notes {
		if dir := filepath.Base(filepath.Dir(note.At.Filename)); dir != string("abc"[i]) || note.At.Start.Line != 1 {
			t.Errorf("%s is at %s:%d", note.Text, note.At.Filename, note.At.Start.Line)
		}
	}
	for _, u := range f.Units {
		if u.Invalid.HasErrors() != (u.Name != "d") {
			t.Errorf("%s: %v", u.Name, u.Invalid.Err())
		}
	}
}

// An exclude block excludes its unit from the commands that it lists. prevent_destroy protects the
// unit and its dependencies from commands that destroy, and from no other command.
func TestExcluded(t *testing.T) {
	const files = `
-- app/terragrunt.hcl --
prevent_destroy = true
dependencies { paths = ["../net"] }
-- net/terragrunt.hcl --
-- old/terragrunt.hcl --
exclude {
  if      = true
  actions = ["plan"]
}
`
	for _, tt := range []struct {
		command  string
		destroy  bool
		excluded string
	}{
		{"plan", false, "old"},
		{"apply", false, ""},
		{"destroy", true, "app net"},
	} {
		f, ds := find(t, discovery.Settings{Root: testkit.Files(t, files), Command: tt.command, Destroy: tt.destroy})
		var excluded []*discovery.Unit
		for _, u := range f.Units {
			if u.Excluded != "" {
				excluded = append(excluded, u)
			}
		}
		if names(excluded) != tt.excluded || ds.HasErrors() {
			t.Errorf("%s excludes %q: %v", tt.command, names(excluded), ds.Err())
		}
	}
}

// An error in a unit file is an error, a warning with Lenient, which keeps the unit, and no concern
// of a command whose filters do not select the unit.
func TestInvalidUnit(t *testing.T) {
	root := testkit.Files(t, "-- bad/terragrunt.hcl --\ninputs = {\n-- good/terragrunt.hcl --\n")
	if _, ds := find(t, discovery.Settings{Root: root}); !ds.HasErrors() || ds[0].At == nil || filepath.Base(filepath.Dir(ds[0].At.Filename)) != "bad" {
		t.Error(ds.Err())
	}
	f, ds := find(t, discovery.Settings{Root: root, Lenient: true})
	if names(f.Units) != "bad good" || ds.HasErrors() || len(ds) == 0 || f.Units[0].Broken == nil {
		t.Errorf("%s %v", names(f.Units), ds.Err())
	}
	if f, ds := find(t, discovery.Settings{Root: root, Filters: []string{"good"}}); names(f.Units) != "good" || ds != nil {
		t.Errorf("%s %v", names(f.Units), ds.Err())
	}
}

// Join returns a message of several units once, with the names of the units, and not again in a
// later call.
func TestReported(t *testing.T) {
	f, _ := find(t, discovery.Settings{Root: live(t)})
	reported, one := discovery.Reported{}, func() diag.List { return diag.Errorf(diag.CodeEstateCycle, nil, "Summary", "Detail.") }
	all := []diag.List{one(), one(), nil, append(one(), one()...)}
	ds := reported.Join(f.Units, all)
	if len(ds) != 1 || ds[0].Detail != "Detail. This came up in the units app, db, odd." {
		t.Error(ds.Err())
	}
	if again := reported.Join(f.Units, all); len(again) != 0 {
		t.Error(again.Err())
	}
}
