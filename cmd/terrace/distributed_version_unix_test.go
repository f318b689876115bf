//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// otherVersion differs from the version of this program.
const otherVersion = "0.0.1"

// otherWorker builds terrace-worker with another version, as a release is built.
func otherWorker(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "terrace-worker")
	c := exec.Command("go", "build", "-ldflags", "-X github.com/terrace-iac/terrace/internal/base/release.Version="+otherVersion, "-o", program, "github.com/terrace-iac/terrace/cmd/terrace-worker")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// A worker of another version gets no tasks of a run. The run reports that it waits for a
// worker of its own version, and continues when there is one. A terrace-worker of another
// version next to the program is not used.
func TestWorkerOfAnotherVersion(t *testing.T) {
	k := newTravelers(t)
	k.write(map[string]string{"estate/modules/m/main.tf": "variable \"in\" {}\nresource \"terraform_data\" \"x\" {\n  input = var.in\n}\n"})
	k.unit("a", "one")
	dir := t.TempDir()
	other := otherWorker(t, dir)
	c := k.command()
	c.Path, c.Args = other, []string{other, "worker", "--temporal", k.host, "--namespace", k.namespace, "--queue", k.queue, "--dir", filepath.Join(k.dir, "other"), "--blobs", k.blobs}
	var said bytes.Buffer
	c.Stdin, c.Stderr = nil, &said
	k.must(c.Start())
	defer func() {
		k.signal(c, syscall.SIGKILL)
		_ = c.Wait()
		if !strings.Contains(said.String(), "runs of version "+otherVersion) {
			t.Errorf("the worker says: %s", said.String())
		}
	}()
	out, err := os.Create(filepath.Join(dir, "out"))
	k.must(err)
	defer out.Close()
	client := k.command("run", "--all", "--non-interactive", "--blobs", k.blobs, "--on", k.url, "apply")
	client.Dir, client.Stdout, client.Stderr = filepath.Join(k.dir, "estate"), out, out
	k.must(client.Start())
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	words := func() string {
		text, err := os.ReadFile(out.Name())
		k.must(err)
		return strings.Join(strings.Fields(string(text)), " ")
	}
	for begin := time.Now(); !regexp.MustCompile(`No worker of version \S+ with the key of TERRACE_RUN_KEY takes turns from the queue `).MatchString(words()); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			_ = client.Process.Kill()
			t.Fatalf("the client does not say that it waits:\n%s", words())
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the run ended: %v\n%s", err, words())
	default:
	}
	k.work()
	select {
	case err := <-ended:
		if err != nil || !strings.Contains(words(), "[live/a] applied: 1 added") {
			t.Errorf("with a worker of its version: %v\n%s", err, words())
		}
	case <-time.After(2 * time.Minute):
		_ = client.Process.Kill()
		t.Fatalf("a worker of its version does not take the run:\n%s", words())
	}

	// terrace itself, next to the terrace-worker of another version
	own, err := os.ReadFile(testkit.Terrace(t))
	k.must(err)
	mixed := filepath.Join(dir, "terrace")
	k.must(os.WriteFile(mixed, own, 0o755))
	c2 := k.command("run", "--all", "--non-interactive", "--blobs", k.blobs, "--on", k.url, "plan")
	c2.Path, c2.Dir = mixed, filepath.Join(k.dir, "estate")
	got, err := c2.CombinedOutput()
	want := fmt.Sprintf("terrace-worker has version %s and the program that started it has", otherVersion)
	if text := strings.Join(strings.Fields(string(got)), " "); err == nil || !strings.Contains(text, want) {
		t.Errorf("beside a terrace-worker of another version: %v, want %q\n%s", err, want, got)
	}
}
