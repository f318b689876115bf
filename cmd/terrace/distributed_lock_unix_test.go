//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// lockedUnit is a unit with its state in a store. Three objects are created concurrently,
// and then a fourth one.
const lockedUnit = "terraform {\n  source = \"../modules//m\"\n}\nremote_state {\n  backend = %q\n  config = {\n%s  }\n}\ninputs = {\n  unit   = \"app\"\n  before = \"first\"\n}\n"

// stateStore is a store of states for a test.
type stateStore struct {
	kind, config, blobs string
	lock                func() string // returns the content of the lock; nil: it cannot be read
	setLock             func(text string)
}

func stateStores() map[string]func(t *testing.T) stateStore {
	const arguments = "    bucket = \"states\"\n    key = \"app.tfstate\"\n    region = \"us-east-1\"\n    use_path_style = true\n    use_lockfile = true\n"
	const blobs = "s3:bucket=states,key=runs,region=us-east-1,use_path_style=true"
	return map[string]func(t *testing.T) stateStore{
		"s3": func(t *testing.T) stateStore {
			s := servers.AWS(t)
			s.Bucket("states")
			t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
			return stateStore{"s3", arguments, blobs, func() string { return s.Object("states", "app.tfstate.tflock") }, func(text string) {
				if s.Drop("states", "app.tfstate.tflock"); text != "" {
					s.Put("states", "app.tfstate.tflock", text)
				}
			}}
		},
		"versitygw": func(t *testing.T) stateStore {
			url, bucket := servers.Versity(t)
			bucket("states")
			t.Setenv("AWS_ENDPOINT_URL_S3", url)
			return stateStore{kind: "s3", config: arguments, blobs: blobs}
		},
		"http": func(t *testing.T) stateStore {
			s := &servers.HTTPServer{}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			return stateStore{"http", fmt.Sprintf("    address = %q\n    lock_address = %q\n    unlock_address = %q\n", server.URL+"/state", server.URL+"/lock", server.URL+"/lock"), t.TempDir(), s.Lock, s.SetLock}
		},
	}
}

// TestLockIsTakenOver kills the worker that has the lock of a state in a remote store. The
// next worker takes over the lock, and the journal from the store. Objects for which the
// provider has responded are not created again, and pending calls are reported. A lock of
// another run or unit is not taken over.
func TestLockIsTakenOver(t *testing.T) {
	server := aTemporal(t)
	for name, open := range stateStores() {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
			t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			s := open(t)
			k := &workersKiller{killer: killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}, host: server.address, namespace: server.namespace, queue: "terrace-lock-" + name, blobs: s.blobs}
			k.url = server.url(server.address, k.queue)
			k.estate(1500)
			k.must(os.MkdirAll(filepath.Join(k.dir, "estate/app"), 0o755))
			k.must(os.WriteFile(filepath.Join(k.dir, "estate/app/terragrunt.hcl"), fmt.Appendf(nil, lockedUnit, s.kind, s.config), 0o644))
			module := filepath.Join(k.dir, "estate/modules/m/main.tf")
			raw, err := os.ReadFile(module)
			k.must(err)
			k.must(os.WriteFile(module, bytes.Replace(raw, []byte(`backend "local"`), []byte(fmt.Sprintf("backend %q", s.kind)), 1), 0o644))
			workers := []*process{{cmd: k.worker(1)}}
			defer func() {
				for _, w := range workers {
					k.signal(w.cmd, syscall.SIGKILL)
					_ = w.cmd.Wait()
				}
			}()
			if s.setLock != nil {
				for _, info := range []string{`terrace run other, turn 1.1 of unit \"app\"`, "", "terrace"} {
					foreign := fmt.Sprintf(`{"ID":"11111111-2222-3333-4444-555555555555","Operation":"OperationTypeApply","Info":"%s","Who":"somebody@else","Version":"1.12.6","Created":"2026-01-02T03:04:05Z","Path":"x"}`, info)
					s.setLock(foreign)
					out, err := k.all("--on", k.url, "apply", "-no-color").CombinedOutput()
					if err == nil || !strings.Contains(string(out), "somebody@else") || s.lock() != foreign {
						t.Fatalf("the lock of somebody else (%s): %v, now %q\n%s", info, err, s.lock(), out)
					}
				}
				s.setLock("")
			}
			var out bytes.Buffer
			c := k.all("--on", k.url, "apply", "-no-color")
			c.Stdout, c.Stderr = &out, &out
			k.must(c.Start())
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			// Wait until the first three calls have returned and the last one is running.
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if raw, _ := os.ReadFile(k.record); bytes.Contains(raw, []byte("begin\tcreate\tapp-3")) {
					break
				}
				if time.Now().After(deadline) {
					_ = c.Process.Kill()
					t.Fatalf("nothing was begun\n%s", out.String())
				}
			}
			time.Sleep(200 * time.Millisecond)
			k.signal(workers[0].cmd, syscall.SIGKILL)
			held := ""
			if s.lock != nil {
				if held = s.lock(); !strings.Contains(held, `turn 1.1 of unit`) {
					t.Errorf("the lock of the attempt says %q", held)
				}
			}
			k.must(os.RemoveAll(filepath.Join(k.dir, "worker1"))) // the machine is lost
			workers = append(workers, &process{cmd: k.worker(2)})
			select {
			case err := <-ended:
				if err != nil {
					t.Fatalf("apply: %v\n%s", err, out.String())
				}
			case <-time.After(4 * time.Minute):
				_ = c.Process.Kill()
				t.Fatalf("the run does not end\n%s", out.String())
			}
			raw, err = os.ReadFile(k.record)
			k.must(err)
			for name, want := range map[string]int{"app-0": 1, "app-1": 1, "app-2": 1, "app-3": 2} {
				// On a busy machine the second attempt may be given up too.
				if got := bytes.Count(raw, []byte("begin\tcreate\t"+name+"\n")); got < want || got > 1 && want == 1 {
					t.Errorf("%s was made %d times, want %d\n%s", name, got, want, raw)
				}
			}
			if named := mayHaveHappened.FindAllString(out.String(), -1); len(named) == 0 {
				t.Errorf("named: %q\n%s", named, out.String())
			}
			if s.lock != nil && s.lock() != "" {
				t.Errorf("the lock is left: %s", s.lock())
			}
			if out, err := k.all("plan", "-detailed-exitcode").CombinedOutput(); err != nil {
				t.Errorf("there is something left to do: %v\n%s", err, out)
			}
		})
	}
}
