//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A worker that is started before the server waits for it, and continues after a restart of
// the server.
func TestWorkerBeforeServer(t *testing.T) {
	k := newTravelers(t)
	if k.server.program == "" {
		t.Skipf("SKIP: %s names no server that can be ended", programVariable)
	}
	k.write(map[string]string{"estate/a/terragrunt.hcl": fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states", "a")), "estate/a/main.tf": "output \"x\" {\n  value = 1\n}\n"})
	k.server.kill()
	said, err := os.Create(filepath.Join(k.dir, "said"))
	k.must(err)
	defer said.Close()
	k.stderr = said
	k.work()
	text := func() string {
		b, err := os.ReadFile(said.Name())
		k.must(err)
		return string(b)
	}
	for begin := time.Now(); !strings.Contains(text(), "cannot be reached") || !strings.Contains(text(), "The worker waits for it."); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the worker does not wait: %s", text())
		}
	}
	for range 2 {
		k.server.start()
		if out, err := k.on("estate", "plan"); err != nil || !strings.Contains(out, "[a] plan: ") {
			t.Errorf("%v\n%s\n%s", err, out, text())
		}
		k.server.kill()
	}
	if n := strings.Count(text(), "The worker waits for it."); n != 1 {
		t.Errorf("said %d times: %s", n, text())
	}
}

// unread runs a command whose standard output is closed, and returns its standard error.
func (k *travelers) unread(args ...string) string {
	k.t.Helper()
	from, to, err := os.Pipe()
	k.must(err)
	k.must(from.Close())
	defer to.Close()
	var said bytes.Buffer
	c := k.command(args...)
	c.Dir, c.Stdout, c.Stderr = filepath.Join(k.dir, "estate"), to, &said
	_ = c.Run()
	if code := c.ProcessState.ExitCode(); code != 141 {
		k.t.Errorf("%v ends with status %d", args, code)
	}
	return said.String()
}

// A run continues without its client. It can be listed, followed and cancelled, and its
// logs can be read. Impossible requests are reported. A run whose files exceed the limit of
// the file store does not begin.
func TestRunWithoutClient(t *testing.T) {
	k := newTravelers(t)
	k.work()
	gate, begun := filepath.Join(k.dir, "gate"), filepath.Join(k.dir, "begun")
	unit := func(name, before string) {
		k.write(map[string]string{"estate/" + name + "/terragrunt.hcl": before + fmt.Sprintf(sealedBackend, filepath.Join(k.dir, "states", name)), "estate/" + name + "/main.tf": "resource \"terraform_data\" \"x\" {\n  input = \"" + name + "\"\n}\n"})
	}
	unit("a", "terraform {\n  before_hook \"wait\" {\n    commands = [\"apply\"]\n    execute  = [\"sh\", \"-c\", \"touch "+begun+"; for i in $(seq 1200); do test -e "+gate+" && exit; sleep 0.05; done; exit 1\"]\n  }\n}\n")
	unit("b", "dependencies { paths = [\"../a\"] }\n")
	words := func(args ...string) (string, error) {
		c := k.command(append([]string{"run", "--on", k.url, "--blobs", k.blobs}, args...)...)
		c.Dir = filepath.Join(k.dir, "estate")
		out, err := c.CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " "), err
	}
	expect := func(fails bool, want string, args ...string) {
		t.Helper()
		if out, err := words(args...); (err != nil) != fails || !strings.Contains(out, want) {
			t.Errorf("%v: %v, want %q:\n%s", args, err, want, out)
		}
	}
	detached := func() string {
		t.Helper()
		c := k.command("run", "--all", "--non-interactive", "--blobs", k.blobs, "--on", k.url, "--detach", "apply")
		c.Dir = filepath.Join(k.dir, "estate")
		out, err := c.Output()
		if err != nil || !strings.HasPrefix(string(out), "terrace-apply-estate-") {
			t.Fatalf("detached: %v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	id := detached()
	for range 200 { // the server's list is updated after the run starts
		if out, err := words("list"); err != nil || strings.Contains(out, id) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	expect(false, "running "+id, "list")
	if said := k.unread("run", "--on", k.url, "--blobs", k.blobs, "list"); said != "" {
		t.Errorf("a list that nobody reads: %s", said)
	}
	k.must(os.WriteFile(gate, nil, 0o644))
	expect(false, "[b] applied: 1 added, 0 changed, 0 destroyed", "attach", id)
	expect(false, "completed "+id, "list")
	expect(false, "[b] terraform_data.x: Creation complete", "logs", id, "b")
	if out, _ := words("logs", id, "b"); strings.Contains(out, "[a]") {
		t.Errorf("the logs of b:\n%s", out)
	}
	expect(true, "has no unit c", "logs", id, "c")
	expect(true, "has ended already (completed)", "cancel", id)
	for _, what := range []string{"attach", "logs", "cancel"} {
		expect(true, "there is no run nowhere", what, "nowhere")
	}

	k.must(os.Remove(gate))
	k.must(os.Remove(begun))
	id = detached()
	under := false
	for range 1200 { // until a is running, which is not interrupted
		if _, err := os.Stat(begun); err == nil {
			under = true
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !under {
		t.Fatal("the unit a does not begin")
	}
	expect(false, "", "cancel", id)
	k.must(os.WriteFile(gate, nil, 0o644))
	expect(true, "[b] not run", "attach", id)

	file := filepath.Join(k.dir, "file")
	k.must(os.WriteFile(file, nil, 0o644))
	c := k.command("run", "--all", "--non-interactive", "--blobs", file, "--on", k.url, "plan")
	c.Dir = filepath.Join(k.dir, "estate")
	out, err := c.CombinedOutput()
	if text := strings.Join(strings.Fields(string(out)), " "); err == nil || !strings.Contains(text, "Distributed run not begun") || strings.Contains(text, "[a]") {
		t.Errorf("without a place for files: %v\n%s", err, out)
	}
}
