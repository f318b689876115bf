package units_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
)

const files = `
-- unit/terragrunt.hcl --
-- env/live.hcl --
module "a" { source = "../m" }
module "b" { source = "../m" }
-- other/other.hcl --
locals {}
-- m/main.tf --
`

// in returns a call in a directory of files.
func in(t *testing.T, name string) *command.Call {
	t.Helper()
	c := command.New(t.Context(), sys.Test(filepath.Join(testkit.Files(t, files), name)).System, nil, &interrupt.Handler{})
	c.Backends = c.OpenBackends
	return c
}

// A directory with a unit file or an environment file is a unit. Other files in the language are
// none, and neither is the copy in which the hooks of a unit run.
func TestIsUnit(t *testing.T) {
	for name, want := range map[string]bool{"unit": true, "env": true, "other": false, "m": false} {
		if got := units.IsUnit(in(t, name), &unitflags.Selection{}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	c := in(t, "unit")
	if err := copytree.MarkWorking(c.Dir, "unit"); err != nil {
		t.Fatal(err)
	}
	if units.IsUnit(c, &unitflags.Selection{}) {
		t.Error("a working copy is a unit")
	}
	if c := in(t, "other"); !units.IsUnit(c, &unitflags.Selection{Config: "other.hcl"}) {
		t.Error("the file of --config is no unit")
	}
}

// The unit of several in an environment file must be named. The error lists their names.
func TestChosen(t *testing.T) {
	c := in(t, "env")
	if err := os.WriteFile(filepath.Join(c.Dir, "more.hcl"), []byte("module \"c\" { source = \"../m\" }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o, ds := units.LookOptions(c, &unitflags.Flags{}, "plan", nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if _, ds := units.Chosen(t.Context(), c, o, &unitflags.Flags{}); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "live/a, live/b, more/c.") {
		t.Error(ds.Err())
	}
	c = in(t, "unit")
	if path, ds := units.Chosen(t.Context(), c, o, &unitflags.Flags{}); ds.HasErrors() || path != c.Dir {
		t.Error(path, ds.Err())
	}
}

// Paths inside of the working directory are relative to it, and others are unchanged. The unit of
// the working directory is not named.
func TestTexts(t *testing.T) {
	c := in(t, "unit")
	outside := filepath.Join(filepath.Dir(c.Dir), "m")
	if in, out := units.PathShown(c, filepath.Join(c.Dir, "a", "b")), units.PathShown(c, outside); in != filepath.Join("a", "b") || out != outside {
		t.Error(in, out)
	}
	if got := sys.RelativeTo(c.Dir, outside); got != "../m" {
		t.Error(got)
	}
	if own, other := units.About(".", "the text"), units.About("a", "the text"); own != "The text" || other != "a: the text" {
		t.Error(own, other)
	}
}
