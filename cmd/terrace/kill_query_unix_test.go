//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// queryEstate has two units with objects, and a third that lists all objects.
const queryEstate = `
-- root.hcl --
generate "provider" {
  path      = "provider.tf"
  if_exists = "overwrite"
  contents  = <<-EOT
    terraform {
      required_providers {
        test = { source = "terrace/test" }
      }
    }
    provider "test" {
      world = "${get_parent_terragrunt_dir()}/world"
    }
  EOT
}
-- world/note --
-- web/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- web/main.tf --
resource "test_object" "front" {
  name = "front"
  map  = { team = "web" }
}
-- db/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- db/main.tf --
resource "test_object" "orders" {
  name = "orders-primary"
  map  = { team = "data" }
}
-- inventory/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- inventory/main.tf --
output "x" {
  value = 1
}
-- inventory/all.tfquery.hcl --
list "test_object" "all" {
  provider = test
  limit    = 1000
}
-- unmanaged/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
-- unmanaged/main.tf --
resource "test_object" "web" {
  count = 20
  name  = "login-${count.index}"
  map   = { team = "web" }
}
resource "test_object" "data" {
  count = 20
  name  = "orders-replica-${count.index}"
  map   = { team = "data" }
}
`

// TestQueryKill9 kills "run --all query -generate" at random moments. Each file is then as it was
// before the run, or as a complete run writes it, and so are the states. A second run writes what the
// killed one did not, so that the files are those of one complete run.
func TestQueryKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes minutes; run without -short")
	}
	t.Parallel()
	k := &killer{t: t, terrace: testkit.Terrace(t), dir: testkit.Files(t, queryEstate)}
	settings := filepath.Join(t.TempDir(), "rc")
	k.must(os.WriteFile(settings, fmt.Appendf(nil, "provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", filepath.Dir(testkit.TestProvider(t, 6))), 0o644))
	k.env = environ("TF_CLI_CONFIG_FILE="+settings, "TMPDIR="+k.tmp())
	run := func(args ...string) string {
		t.Helper()
		out, err := k.command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("run", "--all", "--non-interactive", "apply")
	k.must(os.RemoveAll(filepath.Join(k.dir, "unmanaged"))) // with its state
	query := []string{"run", "--all", "query", "-generate"}
	before := k.files()
	start := time.Now()
	run(query...)
	window := time.Since(start)
	after := k.files()
	if len(after) != len(before)+2 {
		t.Fatalf("a complete run left %d files besides the %d before", len(after)-len(before), len(before))
	}
	killed, parts := 0, 0
	for n := 0; killed < *kills && n < *kills+100; n++ {
		for name := range after {
			if _, ok := before[name]; !ok {
				k.must(os.Remove(filepath.Join(k.dir, name)))
			}
		}
		c := k.command(query...)
		k.must(c.Start())
		time.Sleep(time.Duration(rand.Int64N(int64(window))))
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		if c.Wait() == nil {
			continue
		}
		killed++
		left := k.files()
		for name, text := range before {
			if !bytes.Equal(left[name], text) {
				t.Fatalf("%s was changed:\n%s", name, left[name])
			}
		}
		written := 0
		for name, text := range left {
			if _, ok := before[name]; ok {
				continue
			}
			if written++; !bytes.Equal(text, after[name]) {
				t.Fatalf("%s is not what a complete run writes:\n%s", name, text)
			}
		}
		if written == 1 {
			parts++
		}
		run(query...)
		end := k.files()
		for name, text := range after {
			if !bytes.Equal(end[name], text) {
				t.Fatalf("%s is not what one complete run writes:\n%s", name, end[name])
			}
		}
		if len(end) != len(after) {
			t.Fatalf("%d files after the second run, want %d", len(end), len(after))
		}
	}
	if out := run("run", "--all", "plan"); strings.Count(out, "20 to import, 0 to add, 0 to change, 0 to destroy") != 2 {
		t.Errorf("the plan does not import all objects:\n%s", out)
	}
	t.Logf("%d kills, %d between the two files", killed, parts)
}

// files returns the contents of the files of the estate, without caches and hidden temporary files.
func (k *killer) files() map[string][]byte {
	k.t.Helper()
	out := map[string][]byte{}
	k.must(filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".terragrunt-cache":
			return filepath.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), ".imported.tf-"):
			return nil
		}
		name, err := filepath.Rel(k.dir, path)
		if err == nil {
			out[name], err = os.ReadFile(path)
		}
		return err
	}))
	return out
}
