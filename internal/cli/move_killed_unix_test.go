//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// TestMoveKilled kills the program at many points while it moves an object between two states.
// It checks that later commands find the object in exactly one of them, and that no files
// remain.
func TestMoveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills many processes")
	}
	dir := t.TempDir()
	terrace := func(sub string, args ...string) *exec.Cmd {
		c := exec.Command(testkit.Terrace(t), args...)
		c.Dir = filepath.Join(dir, sub)
		return c
	}
	output := func(sub string, args ...string) string {
		t.Helper()
		out, err := terrace(sub, args...).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "No state file was found") {
			t.Fatalf("%s in %s: %v\n%s", args, sub, err, out)
		}
		return string(out)
	}
	for name, text := range map[string]string{"a": `resource "terraform_data" "x" {}`, "b": ""} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "main.tf"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output("a", "apply", "-auto-approve")
	start := time.Now()
	output("a", "state", "mv", "-to=../b", "terraform_data.x", "terraform_data.x")
	took := time.Since(start)
	const times = 12
	from, to := "b", "a"
	for n := range times {
		c := terrace(from, "state", "mv", "-to=../"+to, "terraform_data.x", "terraform_data.x")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took/2 + took*time.Duration(n)/times)
		_ = c.Process.Kill()
		_ = c.Wait()
		in := map[string]bool{}
		for _, sub := range []string{from, to} {
			in[sub] = strings.Contains(output(sub, "state", "list"), "terraform_data.x")
		}
		if in[from] == in[to] {
			t.Fatalf("killed after %s of %s: %v", took/2+took*time.Duration(n)/times, took, in)
		}
		for _, sub := range []string{from, to} { // this locks the state and completes the move
			output(sub, "plan", "-refresh=false")
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", ".*journal*")); len(left) > 0 {
			t.Fatalf("%s is left", left)
		}
		if in[to] {
			from, to = to, from
		}
	}
}
