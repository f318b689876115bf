package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestEmbed runs the program in its own directory: with a real provider from a mirror, an
// apply that is killed, one that continues, an explanation and a destroy.
func TestEmbed(t *testing.T) {
	work := t.TempDir()
	text, err := os.ReadFile("folder/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(work, "folder")
	write(t, filepath.Join(folder, "main.tf"), text)
	mirror := filepath.Join(work, "mirror")
	install(t, filepath.Join(mirror, "registry.opentofu.org", "hashicorp", "time", "0.14.2", runtime.GOOS+"_"+runtime.GOARCH))
	program := filepath.Join(work, "embed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	embed := func(args ...string) *exec.Cmd {
		c := exec.Command(program, append([]string{"-mirror", mirror, "-var", "steps=4", folder}, args...)...)
		c.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull)
		return c
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := embed(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("embed %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("init")
	if out := run("plan"); !strings.Contains(out, "create time_static.done") {
		t.Fatalf("the plan lacks a change:\n%s", out)
	}

	killed := embed("apply")
	out, err := killed.StdoutPipe()
	if err == nil {
		err = killed.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Text() != "done: time_static.start"; {
		if !lines.Scan() {
			t.Fatalf("the apply ended before it was killed: %v", killed.Wait())
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed

	if out := run("apply"); !strings.Contains(out, "5 added") {
		t.Fatalf("the second apply is to create all but what the first one did:\n%s", out)
	}
	if out := run("output"); !strings.Contains(out, "done = 20") {
		t.Fatalf("no output after the apply:\n%s", out)
	}
	if out := run("plan"); strings.Contains(out, "create") {
		t.Fatalf("something is left to do:\n%s", out)
	}
	var state struct {
		Resources []struct{ Name string }
	}
	raw, err := os.ReadFile(filepath.Join(folder, "terraform.tfstate"))
	if err == nil {
		err = json.Unmarshal(raw, &state)
	}
	if err != nil || len(state.Resources) != 3 {
		t.Fatalf("the state file has %d resources: %v", len(state.Resources), err)
	}
	if out := run("explain", "time_sleep.step[1].triggers.step"); !strings.Contains(out, "main.tf:21: ") {
		t.Fatalf("the explanation does not name the line:\n%s", out)
	}
	if out := run("destroy"); !strings.Contains(out, "6 destroyed") {
		t.Fatalf("what destroy says:\n%s", out)
	}
}

// install builds the provider from the module proxy into the mirror.
func install(t *testing.T, dir string) {
	t.Helper()
	bin := os.Getenv("TERRACE_TEST_PROVIDER_TIME")
	if bin == "" {
		tmp := t.TempDir()
		c := exec.Command("go", "install", "github.com/hashicorp/terraform-provider-time@v0.14.2")
		c.Env = append(os.Environ(), "GOBIN="+tmp, "GOFLAGS=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go install: %v\n%s", err, out)
		}
		bin = filepath.Join(tmp, "terraform-provider-time")
	}
	text, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "terraform-provider-time")
	write(t, path, text)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
