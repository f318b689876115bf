//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// killUnits is the number of units in the estate, which has several layers. Each unit has
// four objects, and the last one depends on the others.
const (
	killUnits = 50
	killLayer = 5
)

var estateKills = flag.Int("estatekills", 1, "how often an apply of an estate is killed")

const killUnit = `
terraform {
  source = "../modules//m"
}
remote_state {
  backend = "local"
  config  = { path = "${get_terragrunt_dir()}/terraform.tfstate" }
}
inputs = {
  unit   = "%s"
  before = %s
}
`

const killModule = `
terraform {
  backend "local" {}
  required_providers {
    test = { source = "terrace/test" }
  }
}
variable "unit" {}
variable "before" {}
provider "test" {
  record_path = "%s"
  delay_ms    = 3
}
resource "test_record" "r" {
  count = 3
  name  = "${var.unit}-${count.index}"
  value = var.before
}
resource "test_record" "last" {
  name       = "${var.unit}-3"
  depends_on = [test_record.r]
}
output "last" { value = test_record.last.id }
`

// TestEstateKill9 repeatedly kills an apply of many units. Every call that was begun must
// be in the state of its unit afterwards, or be reported. A response may have been pending
// at the moment of the kill. Which responses had certainly arrived is known from dependent
// calls: those of objects and units that need the response. In the end everything exists,
// and there are no changes.
func TestEstateKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes some seconds; run without -short")
	}
	t.Parallel()
	k := &estateKiller{killer: killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}}
	k.setUp()
	var kept, named, ended, n int
	for n < *estateKills || kept == 0 && n < *estateKills+20 { // more kills may be needed by chance
		killed := k.apply(time.Duration(rand.IntN(600)) * time.Millisecond)
		a, b := k.check(killed)
		kept, named = kept+a, named+b
		if killed {
			n++
			continue
		}
		ended++
		k.reset()
	}
	t.Logf("%d kills, %d applies ended; %d begun objects found in state, %d named instead", n, ended, kept, named)
	if kept == 0 {
		t.Error("the kills came at moments that show nothing")
	}
	k.converge()
}

type estateKiller struct{ killer }

func (k *estateKiller) setUp() {
	k.t.Helper()
	plugins := filepath.Join(k.dir, "plugins")
	k.must(os.MkdirAll(plugins, 0o755))
	k.must(os.Symlink(testkit.TestProvider(k.t, 6), filepath.Join(plugins, "terraform-provider-test")))
	k.record = filepath.Join(k.dir, "record")
	files := map[string]string{
		"rc":                fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", plugins),
		"record":            "",
		"modules/m/main.tf": fmt.Sprintf(killModule, k.record),
	}
	for i := range killUnits {
		before, dependency := `"first"`, ""
		if i >= killLayer {
			before = "dependency.before.outputs.last"
			dependency = fmt.Sprintf("dependency \"before\" {\n  config_path = \"../%s\"\n}\n", unitName(i-killLayer))
		}
		files[unitName(i)+"/terragrunt.hcl"] = dependency + fmt.Sprintf(killUnit, unitName(i), before)
	}
	for name, text := range files {
		path := filepath.Join(k.dir, name)
		k.must(os.MkdirAll(filepath.Dir(path), 0o755))
		k.must(os.WriteFile(path, []byte(text), 0o644))
	}
	k.env = environ("TF_CLI_CONFIG_FILE="+filepath.Join(k.dir, "rc"), "TMPDIR="+k.tmp())
}

func unitName(i int) string { return fmt.Sprintf("u%02d", i) }

func (k *estateKiller) all(args ...string) []string {
	return append([]string{"run", "--all", "--non-interactive", "--share-provider", "terrace/test"}, args...)
}

// apply runs an apply of all units and kills it.
func (k *estateKiller) apply(after time.Duration) (killed bool) {
	k.t.Helper()
	return k.kill(k.command(k.all("apply", "-no-color")...), after)
}

// check lets the next run merge the journals, and compares the states with the provider's
// record.
func (k *estateKiller) check(killed bool) (kept, named int) {
	k.t.Helper()
	out, err := k.command(k.all("plan", "-refresh=false", "-json")...).Output()
	if err != nil {
		k.t.Fatalf("plan: %v\n%s", err, out)
	}
	reported := k.reported(out)
	have := k.objects()
	raw, err := os.ReadFile(k.record)
	k.must(err)
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 3 || f[0] != "begin" || f[1] != "create" {
			continue
		}
		for _, before := range k.needs(f[2]) {
			if !have[before] {
				k.t.Fatalf("%s was begun, so %s had arrived, and it is not in state\n%s", f[2], before, out)
			}
		}
		switch {
		case have[f[2]]:
			kept++
		case killed && reported[f[2]]:
			named++
		default:
			k.t.Fatalf("%s was begun and is neither in state nor named (killed: %t)\n%s", f[2], killed, out)
		}
	}
	k.must(os.Truncate(k.record, 0))
	return kept, named
}

// needs returns the names of the objects that must exist before the call for another one.
func (k *estateKiller) needs(name string) []string {
	k.t.Helper()
	var unit, object int
	if _, err := fmt.Sscanf(name, "u%02d-%d", &unit, &object); err != nil {
		k.t.Fatalf("%q: %v", name, err)
	}
	var out []string
	if object == 3 {
		out = append(out, fmt.Sprintf("%s-0", unitName(unit)), fmt.Sprintf("%s-1", unitName(unit)), fmt.Sprintf("%s-2", unitName(unit)))
	}
	if unit >= killLayer {
		out = append(out, unitName(unit-killLayer)+"-3")
	}
	return out
}

// reported returns the names of the objects that a run reports as possibly created.
func (k *estateKiller) reported(stream []byte) map[string]bool {
	k.t.Helper()
	out := map[string]bool{}
	s := bufio.NewScanner(bytes.NewReader(stream))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var line struct {
			Unit       string
			Diagnostic struct{ Detail string }
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			k.t.Fatalf("%q: %v", s.Text(), err)
		}
		rest, ok := strings.CutPrefix(line.Diagnostic.Detail, "May have happened: test_record.")
		if !ok {
			continue
		}
		index := "3" // test_record.last
		if rest, ok = strings.CutPrefix(rest, "r["); ok {
			index, _, _ = strings.Cut(rest, "]")
		}
		out[line.Unit+"-"+index] = true
	}
	return out
}

// objects returns the names of the objects in the states of all units.
func (k *estateKiller) objects() map[string]bool {
	k.t.Helper()
	out := map[string]bool{}
	for i := range killUnits {
		raw, err := os.ReadFile(filepath.Join(k.dir, unitName(i), "terraform.tfstate"))
		if os.IsNotExist(err) || err == nil && len(raw) == 0 { // killed between locking and writing
			continue
		}
		k.must(err)
		var state struct {
			Resources []struct {
				Instances []struct{ Attributes struct{ Name string } }
			}
		}
		if err := json.Unmarshal(raw, &state); err != nil {
			k.t.Fatalf("%s: %v", unitName(i), err)
		}
		for _, r := range state.Resources {
			for _, in := range r.Instances {
				out[in.Attributes.Name] = true
			}
		}
	}
	return out
}

// converge completes the work of the killed runs.
func (k *estateKiller) converge() {
	k.t.Helper()
	if out, err := k.command(k.all("apply")...).CombinedOutput(); err != nil {
		k.t.Fatalf("apply: %v\n%s", err, out)
	}
	if n := len(k.objects()); n != killUnits*4 {
		k.t.Errorf("%d objects in the states, want %d", n, killUnits*4)
	}
	if out, err := k.command(k.all("plan", "-detailed-exitcode")...).CombinedOutput(); err != nil {
		k.t.Errorf("there is something left to do: %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(k.dir, "*", "*journal*")); len(left) > 0 {
		k.t.Errorf("journals are left: %v", left)
	}
}

// reset deletes everything.
func (k *estateKiller) reset() {
	k.t.Helper()
	if out, err := k.command(k.all("destroy", "-auto-approve")...).CombinedOutput(); err != nil {
		k.t.Fatalf("destroy: %v\n%s", err, out)
	}
	k.must(os.Truncate(k.record, 0))
}
