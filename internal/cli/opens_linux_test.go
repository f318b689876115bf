package cli_test

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// opened returns how often each file in the directories was opened while run ran, as inotify
// reports it.
func opened(t *testing.T, dirs []string, run func()) map[string]int {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK)
	if err != nil {
		t.Skipf("the system does not report what is opened: %v", err)
	}
	defer syscall.Close(fd)
	names := map[int32]string{}
	for _, dir := range dirs {
		// close events separate open events, since the system joins equal adjacent events
		wd, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_OPEN|syscall.IN_CLOSE)
		if err != nil {
			t.Fatal(err)
		}
		names[int32(wd)] = filepath.Base(dir)
	}
	run()
	out := map[string]int{}
	buf := make([]byte, 1<<20)
	n, err := syscall.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	for buf = buf[:n]; len(buf) > 0; {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask, size := binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint32(buf[12:])
		name := string(bytes.TrimRight(buf[16:16+size], "\x00"))
		if mask&syscall.IN_OPEN != 0 && mask&syscall.IN_ISDIR == 0 && name != "" {
			out[names[wd]+"/"+name]++
		}
		buf = buf[16+size:]
	}
	return out
}

// TestEachFileOpenedOnce checks that a command in a unit's directory opens each file of the
// unit and of its module once, as does a run over all units.
func TestEachFileOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own/terragrunt.hcl": "inputs = { v = \"a\" }\n",
		"own/main.tf":        "variable \"v\" {}\nresource \"terraform_data\" \"x\" {\n  input = var.v\n}\n",
		"own/outputs.tf":     "output \"v\" {\n  value = var.v\n}\n",
		"far/terragrunt.hcl": "terraform {\n  source = \"../module\"\n  before_hook \"b\" {\n    commands = [\"plan\"]\n    execute  = [\"true\"]\n  }\n}\ninputs = { v = \"b\" }\n",
		"module/main.tf":     "variable \"v\" {}\noutput \"v\" {\n  value = var.v\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	terrace := func(in string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "terrace", args...)
		cmd.Dir, cmd.Env = filepath.Join(dir, in), append(os.Environ(), "HOME="+dir, "TF_IN_AUTOMATION=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("terrace %s in %q: %v\n%s", strings.Join(args, " "), in, err, out)
		}
	}
	once := func(files ...string) func(what string, got map[string]int) {
		return func(what string, got map[string]int) {
			t.Helper()
			for _, f := range files {
				if got[f] != 1 {
					t.Errorf("%s opened %s %d times", what, f, got[f])
				}
			}
		}
	}
	for _, in := range []string{"own", "far"} {
		terrace(in, "init") // creates the working directory, which is a copy
	}
	dirs := []string{filepath.Join(dir, "own"), filepath.Join(dir, "far"), filepath.Join(dir, "module")}
	own, far := once("own/terragrunt.hcl", "own/main.tf", "own/outputs.tf"), once("far/terragrunt.hcl", "module/main.tf")
	for _, command := range [][]string{
		{"plan"}, {"plan", "-out=p"}, {"apply", "-auto-approve"}, {"validate"}, {"refresh"}, {"output"}, {"show"}, {"graph"}, {"providers"}, {"state", "list"}, {"config", "show"},
		{"explain", "output.v"}, {"init"}, {"destroy", "-auto-approve"},
	} {
		own(strings.Join(command, " "), opened(t, dirs, func() { terrace("own", command...) }))
		far(strings.Join(command, " "), opened(t, dirs, func() { terrace("far", command...) }))
	}
	for _, command := range []string{"plan", "refresh", "state list", "providers", "show", "graph", "config show", "apply", "output", "validate", "init", "plan -out=p", "destroy"} {
		words := append([]string{"run", "--all", "--non-interactive"}, strings.Fields(command)...)
		all := opened(t, dirs, func() { terrace("", words...) })
		own("run --all "+command, all)
		if command == "plan" || command == "apply" || command == "graph" || command == "validate" {
			far("run --all "+command, all)
		}
	}
}

// TestStoreOpenedOnce checks that a command in a directory whose state is in a store opens each
// file of the configuration once, and sends each request once. A write asks a second time for
// the state, since this store cannot compare versions.
func TestStoreOpenedOnce(t *testing.T) {
	store := servers.HTTP(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf":       "terraform {\n  backend \"http\" {}\n}\nmodule \"child\" {\n  source = \"./child\"\n}\nresource \"terraform_data\" \"a\" {}\noutput \"v\" {\n  value = module.child.v\n}\n",
		"child/main.tf": "output \"v\" {\n  value = 1\n}\n",
	} {
		path := filepath.Join(dir, "plain", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plain := filepath.Join(dir, "plain")
	terrace := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "terrace", args...)
		cmd.Dir, cmd.Env = plain, append(os.Environ(), "HOME="+dir, "TF_IN_AUTOMATION=1",
			"TF_HTTP_ADDRESS="+store.URL+"/state", "TF_HTTP_LOCK_ADDRESS="+store.URL+"/lock", "TF_HTTP_UNLOCK_ADDRESS="+store.URL+"/lock")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("terrace %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	terrace("init")
	terrace("apply", "-auto-approve")
	const written = "LOCK GET GET POST UNLOCK"
	for _, c := range []struct{ line, requests string }{
		{"state mv terraform_data.a terraform_data.b", written},
		{"state mv -dry-run terraform_data.b terraform_data.c", "LOCK GET UNLOCK"},
		{"taint terraform_data.b", written},
		{"untaint terraform_data.b", written},
		{"state list", "GET"},
		{"state show terraform_data.b", "GET"},
		{"state pull", "GET"},
		{"state rm terraform_data.b", written},
		{"plan", "LOCK GET UNLOCK"},
		{"output", "GET"},
		{"show", "GET"},
		{"providers", "GET"},
		{"graph", ""},
		{"import terraform_data.a x", written},
		{"plan -replace=terraform_data.a", "LOCK GET UNLOCK"},
	} {
		before := len(store.Log())
		got := opened(t, []string{plain, filepath.Join(plain, "child")}, func() { terrace(strings.Fields(c.line)...) })
		for _, f := range []string{"plain/main.tf", "child/main.tf"} {
			if got[f] != 1 {
				t.Errorf("%s opened %s %d times", c.line, f, got[f])
			}
		}
		var requests []string
		for _, line := range store.Log()[before:] {
			method, _, _ := strings.Cut(line, " ")
			requests = append(requests, method)
		}
		if got := strings.Join(requests, " "); got != c.requests {
			t.Errorf("%s sent %s, not %s", c.line, got, c.requests)
		}
	}
}

// TestOtherFilesOpenedOnce checks that other files are opened once too, even if several steps
// of a command or several units need them: variable files of extra_arguments, included or read
// files, data and values files, the lock file, the manifest of installed modules and the CLI
// configuration.
func TestOtherFilesOpenedOnce(t *testing.T) {
	provider := testkit.TimeProvider(t)
	dir := t.TempDir()
	const unit = `include "root" { path = find_in_parent_folders("root.hcl") }
locals { common = read_terragrunt_config("../shared/common.hcl") }
terraform { source = "../module" }
`
	const values = "name = \"n\"\n"
	for name, text := range map[string]string{
		"root.hcl": `locals { data = jsondecode(file("${get_parent_terragrunt_dir()}/shared/data.json")) }
terraform {
  extra_arguments "vars" {
    commands           = get_terraform_commands_that_need_vars()
    required_var_files = ["${get_parent_terragrunt_dir()}/shared/required.tfvars"]
    optional_var_files = ["${get_parent_terragrunt_dir()}/shared/optional.tfvars"]
  }
}
inputs = { region = local.data.region }
`,
		"shared/common.hcl":       "locals { data = yamldecode(file(\"data.yaml\")) }\n",
		"shared/data.json":        `{"region": "r"}`,
		"shared/data.yaml":        "key: v\n",
		"shared/required.tfvars":  "required = \"1\"\n",
		"shared/optional.tfvars":  "optional = \"1\"\n",
		"a/terragrunt.hcl":        unit + "inputs = { v = \"${local.common.locals.data.key}${values.name}\" }\n",
		"a/terragrunt.values.hcl": values,
		"b/terragrunt.hcl":        unit + "dependency \"a\" {\n  config_path  = \"../a\"\n  mock_outputs = { v = \"m\" }\n}\ninputs = { v = \"${dependency.a.outputs.v}${values.name}\" }\n",
		"b/terragrunt.values.hcl": values,
		"module/child/main.tf":    "output \"w\" {\n  value = 1\n}\n",
		"module/data.txt":         "text",
		"module/main.tf": `variable "v" {}
variable "region" {}
variable "required" {}
variable "optional" {}
terraform {
  required_providers { time = { source = "hashicorp/time" } }
}
resource "time_static" "t" {}
resource "terraform_data" "x" {
  input = "${var.v}${var.region}${var.required}${var.optional}${file("${path.module}/data.txt")}"
}
module "child" {
  source = "./child"
}
output "v" { value = "x${var.v}" }
`,
		"home/cli.tfrc": "provider_installation {\n  filesystem_mirror {\n    path = \"" + dir + "/mirror\"\n  }\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "mirror/registry.opentofu.org/hashicorp/time/1.0.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-time_v1.0.0")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(provider)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	terrace := func(in string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "terrace", args...)
		cmd.Dir, cmd.Env = filepath.Join(dir, in), append(os.Environ(), "HOME="+dir, "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE="+dir+"/home/cli.tfrc")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("terrace %s in %q: %v\n%s", strings.Join(args, " "), in, err, out)
		}
	}
	terrace("", "run", "--all", "--non-interactive", "apply") // creates the working directories
	// settle makes files appear old. A file that changed recently may change again, so it is
	// read each time.
	settle := func() (dirs []string) {
		old := time.Now().Add(-time.Hour)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "providers" || d.Name() == "mirror"):
				return filepath.SkipDir
			case d.IsDir():
				dirs = append(dirs, path)
				return nil
			}
			return os.Chtimes(path, old, old)
		})
		if err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	shared := []string{"home/cli.tfrc", "root.hcl", "shared/common.hcl", "shared/data.json", "shared/data.yaml"}
	vars := []string{"shared/required.tfvars", "shared/optional.tfvars"}
	installed := []string{".terraform.lock.hcl", "modules/modules.json"}
	check := func(in string, args []string, units int, files, once []string) {
		t.Helper()
		got := opened(t, settle(), func() { terrace(in, args...) })
		for i, f := range append(files, once...) {
			most := 1
			if i >= len(files) {
				most = units // each unit has its own, in directories with the same name
			}
			found := false
			for path, times := range got {
				if !strings.HasSuffix("/"+path, "/"+f) {
					continue
				}
				found = true
				if times > most {
					t.Errorf("%s in %q opened %s %d times", strings.Join(args, " "), in, path, times)
				}
			}
			if !found {
				t.Errorf("%s in %q did not open %s", strings.Join(args, " "), in, f)
			}
		}
	}
	for _, command := range []string{"plan", "apply -auto-approve", "validate", "output"} {
		files := []string{"home/cli.tfrc", "root.hcl"}
		var own []string
		if command != "output" {
			own = []string{"modules/modules.json"}
		}
		if command == "plan" || strings.HasPrefix(command, "apply") {
			files = append(append(files, shared[2:]...), vars...)
			own = append(installed, "terragrunt.values.hcl", "data.txt")
		}
		check("a", strings.Fields(command), 1, files, own)
	}
	for _, command := range []string{"plan", "apply"} {
		check("", []string{"run", "--all", "--non-interactive", command}, 2, append(shared, vars...), append(installed, "terragrunt.values.hcl", "data.txt"))
	}
}
