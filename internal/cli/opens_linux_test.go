package cli_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// opened counts how often the files of folders are opened while a program runs, as the
// system reports it.
func opened(t *testing.T, dirs []string, run func()) map[string]int {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK)
	if err != nil {
		t.Skipf("the system does not report what is opened: %v", err)
	}
	defer syscall.Close(fd)
	names := map[int32]string{}
	for _, dir := range dirs {
		// what is closed is reported too, since equal reports are joined where nothing lies between
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

// A command in a unit's folder opens each file of the unit and of its module once, as a
// run over all units does.
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
		terrace(in, "init") // makes the working folder, which is a copy
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
