//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
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

var workerKills = flag.Int("workerkills", 2, "how many runs on workers of a Temporal server have a worker killed or stopped")

const (
	turnUnits  = 12
	turnLayer  = 4
	turnUnit   = "terraform {\n  source = \"../modules//m\"\n}\nremote_state {\n  backend = \"local\"\n  config  = { path = %q }\n}\ninputs = {\n  unit   = %q\n  before = %s\n}\n"
	turnQueue  = "terrace-test"
	turnPaused = 8 * time.Second
)

// TestWorkersKilled applies an estate on two workers of a Temporal server. It kills one of
// them, or stops it for longer than its tasks are reserved. The run succeeds, each object
// is in the states exactly once, and an object is only created twice if its call was
// pending when the worker was killed, which the run reports.
func TestWorkersKilled(t *testing.T) {
	server := aTemporal(t)
	k := &workersKiller{killer: killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}, host: server.address, namespace: server.namespace, queue: turnQueue}
	k.url, k.blobs = server.url(server.address, turnQueue), filepath.Join(k.dir, "blobs")
	k.setUp()
	var twice, killed, paused int
	for i := range *workerKills {
		a, stopped := k.run(i%2 == 1)
		twice += a
		if stopped {
			paused++
		} else {
			killed++
		}
	}
	t.Logf("%d runs with a worker killed, %d with one stopped for %s; %d objects were on their way then and made again", killed, paused, turnPaused, twice)
}

type workersKiller struct {
	killer
	url, host, namespace, queue, blobs string
	stderr                             *os.File // of workers; nil: discarded
}

// estate writes a module whose objects take some time, without units.
func (k *workersKiller) estate(delay int) {
	k.t.Helper()
	plugins := filepath.Join(k.dir, "plugins")
	k.must(os.MkdirAll(plugins, 0o755))
	k.must(os.Symlink(testkit.TestProvider(k.t, 6), filepath.Join(plugins, "terraform-provider-test")))
	k.record = filepath.Join(k.dir, "record")
	files := map[string]string{
		"rc":                       fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", plugins),
		"record":                   "",
		"estate/modules/m/main.tf": strings.Replace(fmt.Sprintf(killModule, k.record), "delay_ms    = 3", fmt.Sprintf("delay_ms    = %d", delay), 1),
	}
	k.write(files)
	k.env = environ("TF_CLI_CONFIG_FILE="+filepath.Join(k.dir, "rc"), "TMPDIR="+k.tmp(), "TERRACE_TEMPORAL_HEARTBEAT=4s", runKey)
}

func (k *workersKiller) setUp() {
	k.t.Helper()
	k.estate(150)
	files := map[string]string{}
	for i := range turnUnits {
		before, dependency := `"first"`, ""
		if i >= turnLayer {
			before = "dependency.before.outputs.last"
			dependency = fmt.Sprintf("dependency \"before\" {\n  config_path = \"../%s\"\n}\n", unitName(i-turnLayer))
		}
		files["estate/"+unitName(i)+"/terragrunt.hcl"] = dependency + fmt.Sprintf(turnUnit, k.state(i), unitName(i), before)
	}
	k.write(files)
}

// write writes files below the directory of the test.
func (k *killer) write(files map[string]string) {
	k.t.Helper()
	for name, text := range files {
		path := filepath.Join(k.dir, name)
		k.must(os.MkdirAll(filepath.Dir(path), 0o755))
		k.must(os.WriteFile(path, []byte(text), 0o644))
	}
}

func (k *workersKiller) state(i int) string {
	return filepath.Join(k.dir, "states", unitName(i)+".tfstate")
}

func (k *workersKiller) all(args ...string) *exec.Cmd {
	c := k.command(append([]string{"run", "--all", "--non-interactive", "--share-provider", "terrace/test", "--blobs", k.blobs}, args...)...)
	c.Dir = filepath.Join(k.dir, "estate")
	return c
}

// worker starts a worker in its own process group.
func (k *workersKiller) worker(n int) *exec.Cmd {
	k.t.Helper()
	c := k.command("worker", "--temporal", k.host, "--namespace", k.namespace, "--queue", k.queue, "--slots", "3",
		"--dir", filepath.Join(k.dir, fmt.Sprintf("worker%d", n)), "--blobs", k.blobs)
	c.Stdin, c.Stderr = nil, nil
	if k.stderr != nil {
		c.Stderr = k.stderr
	}
	k.must(c.Start())
	return c
}

func (k *workersKiller) signal(c *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-c.Process.Pid, s) }

var mayHaveHappened = regexp.MustCompile(`May have\s+happened:\s+test_record\.`)

// run applies the estate from nothing, with a worker killed or stopped at a random moment,
// and destroys it. It returns the number of objects that were created again.
func (k *workersKiller) run(stop bool) (again int, stopped bool) {
	k.t.Helper()
	workers := []*exec.Cmd{k.worker(1), k.worker(2)}
	defer func() {
		for _, w := range workers {
			k.signal(w, syscall.SIGKILL)
			_ = w.Wait()
		}
	}()
	var out bytes.Buffer
	c := k.all("--on", k.url, "apply", "-no-color")
	c.Stdout, c.Stderr = &out, &out
	k.must(c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(k.record)
		if len(raw) > 0 {
			break
		}
		if time.Now().After(deadline) {
			_ = c.Process.Kill()
			k.t.Fatalf("nothing was begun\n%s", out.String())
		}
	}
	time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
	victim := workers[0]
	if stop {
		k.signal(victim, syscall.SIGSTOP)
		time.Sleep(turnPaused)
		k.signal(victim, syscall.SIGCONT)
	} else {
		k.signal(victim, syscall.SIGKILL)
		workers = append(workers, k.worker(3))
	}
	select {
	case err := <-ended:
		if err != nil {
			k.t.Fatalf("apply: %v\n%s", err, out.String())
		}
	case <-time.After(5 * time.Minute):
		_ = c.Process.Kill()
		k.t.Fatalf("the run does not end\n%s", out.String())
	}
	raw, err := os.ReadFile(k.record)
	k.must(err)
	begun := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) > 2 && f[0] == "begin" && f[1] == "create" {
			if begun[f[2]]++; begun[f[2]] > 1 {
				again++
			}
		}
	}
	if named := len(mayHaveHappened.FindAllString(out.String(), -1)); again > named {
		k.t.Fatalf("%d objects were made again, and %d named as what may have happened\n%s\n%s", again, named, out.String(), raw)
	}
	have := 0
	for i := range turnUnits {
		have += k.count(k.state(i))
	}
	if have != turnUnits*4 || len(begun) != turnUnits*4 {
		k.t.Fatalf("%d objects in the states and %d begun, want %d\n%s", have, len(begun), turnUnits*4, out.String())
	}
	if out, err := k.all("plan", "-detailed-exitcode").CombinedOutput(); err != nil {
		k.t.Fatalf("there is something left to do: %v\n%s", err, out)
	}
	if out, err := k.all("destroy", "-no-color").CombinedOutput(); err != nil {
		k.t.Fatalf("destroy: %v\n%s", err, out)
	}
	k.must(os.Truncate(k.record, 0))
	return again, stop
}

// count returns the number of objects in a state.
func (k *workersKiller) count(path string) int {
	k.t.Helper()
	raw, err := os.ReadFile(path)
	k.must(err)
	var state struct {
		Resources []struct{ Instances []json.RawMessage }
	}
	k.must(json.Unmarshal(raw, &state))
	n := 0
	for _, r := range state.Resources {
		n += len(r.Instances)
	}
	return n
}
