package estate

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/local"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/unit"
)

const sharedModule = `variable "from" {
  type    = string
  default = ""
}
module "child" { source = "./child" }
resource "terraform_data" "x" { input = var.from }
output "id" { value = terraform_data.x.id }
`

// sharedUnits writes an estate: one unit, units that depend on it, and as many units whose
// modules differ by a generated file.
func sharedUnits(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("root.hcl", "locals { env = \"test\" }\n")
	put("m/main.tf", sharedModule)
	put("m/child/main.tf", "resource \"terraform_data\" \"y\" {}\n")
	unit := "include \"root\" { path = find_in_parent_folders(\"root.hcl\") }\nterraform { source = \"${get_terragrunt_dir()}/../../m\" }\n"
	put("live/first/terragrunt.hcl", unit)
	needs := unit + "dependency \"first\" { config_path = \"../first\" }\ninputs = { from = dependency.first.outputs.id }\n"
	for i := range n {
		put(fmt.Sprintf("live/u%02d/terragrunt.hcl", i), needs)
		put(fmt.Sprintf("live/own%02d/terragrunt.hcl", i), needs+fmt.Sprintf(
			"generate \"extra\" {\n  path = \"extra.tf\"\n  if_exists = \"overwrite\"\n  contents = \"locals { own = %d }\"\n}\n", i))
	}
	return filepath.Join(dir, "live")
}

// In any sequence of runs, each unit file and each module file is parsed once, units with the
// same files share one tree, no state is read for outputs that the run has computed, and the
// state of a unit outside of the run is read once.
func TestEachThingOnce(t *testing.T) {
	const n = 6
	root := sharedUnits(t, n)
	e := openShared(t, Options{Discovery: discovery.Settings{Root: root}, Request: unit.Request{Command: "apply"}})
	if ds := e.Check(t.Context(), false); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	var mu sync.Mutex
	trees := map[*module.Tree]int{}
	observe := Watch{OnPlanned: func(_ *Unit, g *engine.Engine, _ *plan.Plan) {
		mu.Lock()
		defer mu.Unlock()
		trees[g.Tree()]++
	}}
	for i, op := range []Op{Plan, Apply, Plan} {
		runShared(t, e, RunOptions{Op: op, Observe: observe})
		if got, want := e.states.Reads(), int64((i+1)*(2*n+1)); got != want {
			t.Errorf("%d states were read after %d runs over %d units, want %d", got, i+1, 2*n+1, want)
		}
	}
	if got := e.loader.Parsed(); got != 2*n+2 {
		t.Errorf("%d unit files were parsed, want %d units and the root", got, 2*n+1)
	}
	if got := e.dirs.FilesParsed(); got != 2 {
		t.Errorf("%d files of modules were parsed, want 2", got)
	}
	if len(trees) != n+1 {
		t.Errorf("%d trees for the units with the same files and %d with files of their own", len(trees), n)
	}
	for tree, times := range trees {
		if times != 3 && times != 3*(n+1) {
			t.Errorf("the tree %p was planned with %d times", tree, times)
		}
	}

	e = openShared(t, Options{Discovery: discovery.Settings{Root: root, Filters: []string{"!./first"}}, Request: unit.Request{Command: "plan"}})
	runShared(t, e, RunOptions{Op: Plan})
	if got := e.states.Reads(); got != 2*n+1 {
		t.Errorf("%d states were read for %d units that need one outside", got, 2*n)
	}
}

func openShared(t *testing.T, o Options) *Estate {
	o.Host.Backends = backend.NewSet([]backend.Kind{local.Kind()}, nil, backend.Services{Who: "test@host", Now: time.Now, Shared: new(backend.Shared)})
	t.Helper()
	o.Request.Args, o.Who, o.Machine.Now = []string{o.Request.Command}, "test@host", time.Now
	e, ds := Open(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return e
}

func runShared(t *testing.T, e *Estate, o RunOptions) {
	t.Helper()
	for _, res := range e.Run(t.Context(), o) {
		if res.Status != Succeeded && res.Status != Excluded {
			t.Fatalf("%s: %s %v", res.Unit.Name, res.Status, res.Diags.Err())
		}
	}
}
