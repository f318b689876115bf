package cli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// lookCommands are the commands that only read, in or above the directory of a unit.
var lookCommands = []string{
	"render", "render --json", "render --with-metadata", "render --all --json", "explain var.x", "explain inputs", "dag graph", "dag graph --svg",
	"hcl validate", "hcl validate --inputs", "hcl validate --json", "find", "find --dag", "find --json --dependencies --reading", "list", "list -l", "list -T",
	"config files", "config show", "info print", "info strict list", "estate check", "estate check -json", "console", "show", "show -json", "state list", "output", "providers", "modules", "graph", "output -json", "state show terraform_data.r", "validate", "validate -json", "run --all validate", "version", "help",
}

// planting is an estate in which every expression or block that can run a program would create
// a file.
const planting = `-- c/u/terragrunt.hcl --
inputs = { x = "of a stack" }
-- s/terragrunt.stack.hcl --
locals { planted = run_cmd("--terragrunt-quiet", "sh", "-c", "touch ROOT/ran-stack; echo x") }
unit "u" {
  source = "../c/u"
  path   = local.planted
}
-- m/main.tf --
variable "x" {}
data "external" "e" {
  program = ["sh", "-c", "touch ROOT/ran-data"]
}
resource "terraform_data" "r" {
  input = var.x
  provisioner "local-exec" {
    command = "touch ROOT/ran-provisioner"
  }
}
-- d/terragrunt.hcl --
-- d/main.tf --
output "o" { value = 1 }
-- u/terragrunt.hcl --
dependency "d" {
  config_path  = "../d"
  mock_outputs = { o = 1 }
}
terraform {
  source = "../m"
  before_hook "b" {
    commands = ["init-from-module", "plan", "show", "console", "output", "state", "graph", "providers", "validate", "render"]
    execute  = ["sh", "-c", "touch ROOT/ran-before"]
  }
  after_hook "a" {
    commands = ["terragrunt-read-config"]
    execute  = ["sh", "-c", "touch ROOT/ran-after"]
  }
}
generate "made" {
  path      = "made.tf"
  if_exists = "overwrite"
  contents  = "# ${get_env("PLANTED")}"
}
generate "beside" {
  path      = "${get_terragrunt_dir()}/../beside.tf"
  if_exists = "overwrite"
  contents  = ""
}
inputs = {
  x = run_cmd("sh", "-c", "touch ROOT/ran-function; echo x")
  y = [get_env("PLANTED"), dependency.d.outputs.o]
}
`

// TestLooking checks that commands that only read run no program with --no-exec, in a unit and
// above it. They also write no files, except the working directory of a unit, if they need it
// and programs are allowed.
func TestLooking(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIP: there is no sh")
	}
	for i, line := range lookCommands {
		if !sampled(i) {
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			var want []string
			for _, f := range txtar.Parse([]byte(strings.ReplaceAll(planting, "ROOT", filepath.ToSlash(root)))).Files {
				path := filepath.Join(root, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o666); err != nil {
					t.Fatal(err)
				}
				want = append(want, filepath.ToSlash(f.Name))
			}
			home := t.TempDir()
			for _, dir := range []string{".", "u", "s"} {
				for _, flag := range []string{"--no-exec", ""} {
					env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "PLANTED=planted"}
					out := combined(t, filepath.Join(root, dir), env, strings.Fields(line+" "+flag)...) // the exit status does not matter
					for _, name := range filesBelow(t, root) {
						ran := strings.HasPrefix(name, "ran-")
						if ran && flag == "" && mayRun(line, name) {
							if err := os.Remove(filepath.Join(root, name)); err != nil {
								t.Fatal(err)
							}
							continue
						}
						if !ran && flag == "" && inWorkdir(line) && !slices.Contains(want, name) {
							if err := os.Remove(filepath.Join(root, name)); err != nil {
								t.Fatal(err)
							}
							continue
						}
						if !slices.Contains(want, name) {
							t.Errorf("terrace %s %s in %s leaves %s:\n%s", line, flag, dir, name, out)
							return
						}
					}
				}
			}
		})
	}
}

// mayRun reports whether a command may create the file of a name. Commands that do not run a
// unit only evaluate functions.
func mayRun(line, name string) bool {
	switch name {
	case "ran-function", "ran-stack":
		return true
	}
	return inWorkdir(line)
}

// inWorkdir reports whether a command creates and uses the working directory of a unit.
func inWorkdir(line string) bool {
	return slices.Contains([]string{"console", "show", "output", "state", "providers", "graph", "modules", "validate", "run"}, strings.Fields(line)[0])
}

func filesBelow(t *testing.T, root string) []string {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, err := filepath.Rel(root, path)
			out = append(out, filepath.ToSlash(rel))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
