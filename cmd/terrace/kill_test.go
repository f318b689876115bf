package main_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/testkit"
)

// kills is how often an apply of resources is killed, at moments that chance decides.
const (
	kills     = 200
	resources = 200
)

const killConfig = `
terraform {
  required_providers {
    test = { source = "terrace/test" }
  }
}

provider "test" {
  record_path       = "%s"
  delay_ms          = 15
  answered_delay_ms = 250
}

resource "test_record" "r" {
  count = %d
  name  = "n${count.index}"
}
`

// TestKill9 kills an apply again and again. Whatever the provider answered must
// be in state afterwards, and what was begun and not answered must be named.
func TestKill9(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: kill -9 is tested on Unix")
	}
	if testing.Short() {
		t.Skip("SKIP: takes minutes; run without -short")
	}
	k := &killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}
	k.setUp()
	var kept, named, done int
	for n := 0; n < kills; {
		killed := k.apply(time.Duration(rand.IntN(450)) * time.Millisecond)
		a, b := k.check(killed)
		kept, named = kept+a, named+b
		if killed {
			n++
			continue
		}
		done++
		k.reset()
	}
	t.Logf("%d kills, %d applies ended; %d answered objects looked up and found, %d begun ones named", kills, done, kept, named)
	if kept == 0 || named == 0 {
		t.Errorf("the kills came at moments that show nothing: %d answered, %d begun", kept, named)
	}
}

// shownName finds the names of the objects that show lists.
var shownName = regexp.MustCompile(`(?m)^ +name += "(n[0-9]+)"$`)

type killer struct {
	t            *testing.T
	terrace, dir string
	record       string
}

func (k *killer) setUp() {
	k.t.Helper()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	plugin := filepath.Join(k.dir, "terraform.d", "plugins", "registry.opentofu.org", "terrace", "test", "1.0.0", platform, "terraform-provider-test")
	k.must(os.MkdirAll(filepath.Dir(plugin), 0o755))
	k.must(os.Symlink(testkit.TestProvider(k.t, 6), plugin))
	k.record = filepath.Join(k.dir, "record")
	k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killConfig, k.record, resources), 0o644))
	if out, err := k.command("init").CombinedOutput(); err != nil {
		k.t.Fatalf("init: %v\n%s", err, out)
	}
}

func (k *killer) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *killer) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), k.terrace, args...)
	c.Dir = k.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// apply runs an apply and kills it with its plugins a while after the first create
// that the provider recorded; it reports whether the kill came before the end.
func (k *killer) apply(after time.Duration) (killed bool) {
	k.t.Helper()
	c := k.command("apply", "-auto-approve", "-input=false", "-no-color")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	k.must(c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	wait := time.NewTimer(time.Millisecond)
	for begun := false; ; {
		select {
		case err := <-ended:
			if err != nil {
				k.t.Fatalf("apply failed by itself: %v\n%s", err, out.String())
			}
			return false
		case <-wait.C:
		}
		if begun {
			break
		}
		wait.Reset(time.Millisecond)
		if raw, err := os.ReadFile(k.record); err == nil && bytes.Contains(raw, []byte("begin\tcreate\t")) {
			begun = true
			wait.Reset(after)
		}
	}
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	<-ended
	return true
}

// check compares the provider's record with what the next command knows.
func (k *killer) check(killed bool) (kept, named int) {
	k.t.Helper()
	begun, answered := k.read()
	human, err := k.command("show", "-no-color").CombinedOutput()
	if err != nil {
		k.t.Fatalf("show: %v\n%s", err, human)
	}
	have := map[string]bool{}
	for _, m := range shownName.FindAllSubmatch(human, -1) {
		have[string(m[1])] = true
	}
	for name := range answered {
		if !have[name] {
			k.t.Fatalf("%s was answered and is not in state\n%s", name, human)
		}
		kept++
	}
	for name := range begun {
		if answered[name] || have[name] {
			continue
		}
		address := "test_record.r[" + strings.TrimPrefix(name, "n") + "]"
		if !killed || !strings.Contains(string(human), "happened: "+address) {
			k.t.Fatalf("%s was begun and is neither in state nor named\n%s", address, human)
		}
		named++
	}
	k.must(os.Truncate(k.record, 0))
	return kept, named
}

// read takes the record apart.
func (k *killer) read() (begun, answered map[string]bool) {
	begun, answered = map[string]bool{}, map[string]bool{}
	raw, err := os.ReadFile(k.record)
	if os.IsNotExist(err) {
		k.must(os.WriteFile(k.record, nil, 0o644))
		return begun, answered
	}
	k.must(err)
	for _, line := range strings.Split(string(raw), "\n") {
		f := strings.Split(line, "\t")
		if len(f) < 3 || f[1] != "create" {
			continue
		}
		switch f[0] {
		case "begin":
			begun[f[2]] = true
		case "answered":
			answered[f[2]] = true
		}
	}
	return begun, answered
}

// reset starts again from nothing.
func (k *killer) reset() {
	k.t.Helper()
	if out, err := k.command("destroy", "-auto-approve", "-input=false", "-no-color").CombinedOutput(); err != nil {
		k.t.Fatalf("destroy: %v\n%s", err, out)
	}
	k.must(os.Truncate(k.record, 0))
}
