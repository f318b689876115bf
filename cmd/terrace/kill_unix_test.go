//go:build unix

package main_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
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

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// kills is the number of applies that are killed at random moments, in four concurrent
// groups. .ci/run uses more.
var kills = flag.Int("kills", 8, "how often an apply is killed")

const resources = 200

const killConfig = `
terraform {
  required_providers {
    test = { source = "terrace/test" }
  }
}

provider "test" {
  record_path = "%s"
  delay_ms    = %d
}

resource "test_record" "r" {
  count = %d
  name  = "n${count.index}"
}
`

// TestKill9 repeatedly kills an apply. Every object for which the provider has responded
// must be in the state afterwards, and other begun calls must be reported.
//
// The provider records requests and responses. A response may have been pending at the
// moment of the kill. Which responses had certainly arrived is known from later calls: with
// one call at a time, all responses before the last call; with several, all except the
// maximum number of concurrent calls.
func TestKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes minutes; run without -short")
	}
	t.Parallel()
	terrace, plugin := testkit.Terrace(t), testkit.TestProvider(t, 6)
	for _, how := range []struct {
		parallel int
		window   int // about the duration of the apply, in milliseconds
	}{{1, 450}, {1, 450}, {10, 60}, {10, 60}} { // concurrently, because they mostly wait
		t.Run(fmt.Sprintf("parallelism=%d", how.parallel), func(t *testing.T) {
			t.Parallel()
			k := &killer{t: t, terrace: terrace, dir: t.TempDir()}
			k.setUp(plugin)
			var kept, named, done, n int
			for n < *kills/4 || (kept == 0 || named == 0) && n < *kills/4+100 { // more kills may be needed by chance
				killed := k.apply(how.parallel, time.Duration(rand.IntN(how.window))*time.Millisecond)
				a, b := k.check(killed, how.parallel)
				kept, named = kept+a, named+b
				if killed {
					n++
					continue
				}
				done++
				k.reset()
			}
			t.Logf("%d kills, %d applies ended; %d begun objects found in state, %d named instead", n, done, kept, named)
			if kept == 0 || named == 0 {
				t.Errorf("the kills came at moments that show nothing: %d found, %d named", kept, named)
			}
		})
	}
}

// shownName matches the names of the objects in the output of show.
var shownName = regexp.MustCompile(`(?m)^ +name += "(n[0-9]+)"$`)

type killer struct {
	t            *testing.T
	terrace, dir string
	record       string
	env          []string
	recovered    []byte // the output of the run that merged the journal
	// since is the recorded call from which the time until a kill counts; "" means the first create
	// call.
	since string
}

func (k *killer) setUp(provider string) {
	k.t.Helper()
	k.env = environ("TF_CLI_CONFIG_FILE="+os.DevNull, "TMPDIR="+k.tmp())
	platform := runtime.GOOS + "_" + runtime.GOARCH
	plugin := filepath.Join(k.dir, "terraform.d", "plugins", "registry.opentofu.org", "terrace", "test", "1.0.0", platform, "terraform-provider-test")
	k.must(os.MkdirAll(filepath.Dir(plugin), 0o755))
	k.must(os.Symlink(provider, plugin))
	k.record = filepath.Join(k.dir, "record")
	k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killConfig, k.record, 2, resources), 0o644))
	if out, err := k.command("init").CombinedOutput(); err != nil {
		k.t.Fatalf("init: %v\n%s", err, out)
	}
}

// tmp returns a directory for files of killed plugins. Its name is short, because it
// contains their sockets.
func (k *killer) tmp() string {
	k.t.Helper()
	dir, err := os.MkdirTemp("", "k")
	k.must(err)
	k.t.Cleanup(func() { k.must(os.RemoveAll(dir)) })
	return dir
}

func (k *killer) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *killer) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), k.terrace, args...)
	c.Dir, c.Env = k.dir, k.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// apply runs an apply and kills it.
func (k *killer) apply(parallel int, after time.Duration) (killed bool) {
	k.t.Helper()
	return k.kill(k.command("apply", "-auto-approve", "-input=false", "-no-color", fmt.Sprintf("-parallelism=%d", parallel)), after)
}

// kill runs an apply and kills it with its plugins some time after the first recorded
// create call, or the call in since. It reports whether the kill came before the end.
func (k *killer) kill(c *exec.Cmd, after time.Duration) (killed bool) {
	k.t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	alive, theirs, err := os.Pipe() // plugins inherit it
	k.must(err)
	defer alive.Close()
	c.ExtraFiles = []*os.File{theirs}
	k.must(c.Start())
	k.must(theirs.Close())
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
		if raw, err := os.ReadFile(k.record); err == nil && bytes.Contains(raw, []byte("begin\t"+cmp.Or(k.since, "create\t"))) {
			begun = true
			wait.Reset(after)
		}
	}
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	<-ended
	// A plugin that is ending may still write to the record.
	k.must(alive.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = alive.Read(make([]byte, 1))
	if err != io.EOF {
		k.t.Fatalf("a plugin goes on after the kill: %v", err)
	}
	return true
}

// check compares the provider's record with the state and messages of the next command.
func (k *killer) check(killed bool, parallel int) (kept, named int) {
	k.t.Helper()
	begun, arrived := k.read()
	before := k.recovered
	human, err := k.command("show", "-no-color").CombinedOutput()
	if err != nil {
		k.t.Fatalf("show: %v\n%s", err, human)
	}
	have := map[string]bool{}
	for _, m := range shownName.FindAllSubmatch(human, -1) {
		have[string(m[1])] = true
	}
	found := 0
	for _, name := range begun {
		if have[name] {
			found++
			continue
		}
		if parallel == 1 && arrived[name] {
			k.t.Fatalf("%s was answered before the next call and is not in state\n%s", name, human)
		}
		address := "test_record.r[" + strings.TrimPrefix(name, "n") + "]"
		if !killed || !strings.Contains(string(before)+string(human), "happened: "+address) {
			k.t.Fatalf("%s was begun and is neither in state nor named\n%s", address, human)
		}
		named++
	}
	if found < len(begun)-parallel {
		k.t.Fatalf("%d calls were begun, %d at a time, and the answers of %d are in state\n%s", len(begun), parallel, found, human)
	}
	k.must(os.Truncate(k.record, 0))
	return found, named
}

// read parses the record. It returns the begun create calls, in order, and those with a
// response before the last of them began.
func (k *killer) read() (begun []string, arrived map[string]bool) {
	arrived = map[string]bool{}
	raw, err := os.ReadFile(k.record)
	if os.IsNotExist(err) {
		k.must(os.WriteFile(k.record, nil, 0o644))
		return nil, arrived
	}
	k.must(err)
	var answered []string
	for _, line := range strings.Split(string(raw), "\n") {
		f := strings.Split(line, "\t")
		if len(f) < 3 || f[1] != "create" {
			continue
		}
		switch f[0] {
		case "begin":
			begun = append(begun, f[2])
			for _, name := range answered {
				arrived[name] = true
			}
			answered = nil
		case "answered":
			answered = append(answered, f[2])
		}
	}
	return begun, arrived
}

// reset deletes everything.
func (k *killer) reset() {
	k.t.Helper()
	if out, err := k.command("destroy", "-auto-approve", "-input=false", "-no-color").CombinedOutput(); err != nil {
		k.t.Fatalf("destroy: %v\n%s", err, out)
	}
	k.must(os.Truncate(k.record, 0))
}
