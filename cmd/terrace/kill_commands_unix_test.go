//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"

	"github.com/jackc/pgx/v5/pgconn"
)

var commandKills = flag.Int("commandkills", 0, "how often each command that changes state is killed in each store, at a request or moment that chance decides; 0: one of the commands once, -1: all at every request")

// commandConfig is the configuration of the commands that are killed: a is unchanged, t is
// tainted, and c was not created yet.
const commandConfig = `
resource "terraform_data" "a" { input = "a" }
resource "terraform_data" "t" { input = "t" }
output "o" { value = terraform_data.a.output }
`

const unmade = "resource \"terraform_data\" \"c\" { input = \"c\" }\n"

// A killedCommand is a command that changes a state, with the results that are allowed
// after killing it.
type killedCommand struct {
	name, args string
	config     string // the configuration, if it differs
	backend    bool   // the state is moved to another backend
	made       bool   // the state is moved here from another backend
	partial    bool   // init gets the missing arguments of the backend block
	locked     bool   // another run has left its lock
	// again is the message of a second run if the first was complete; "" means that it
	// succeeds again.
	again string
	// want lists the allowed states, as objects of all workspaces: from the state before
	// the command to the state after it.
	want []string
}

const before = "a t*"

var killedCommands = []killedCommand{
	{name: "taint", args: "taint terraform_data.a", want: []string{before, "a* t*"}},
	{name: "untaint", args: "untaint terraform_data.t", want: []string{before, "a t"}, again: "not tainted"},
	{name: "rm", args: "state rm terraform_data.a", want: []string{before, "t*"}, again: "No matching objects"},
	{name: "mv", args: "state mv terraform_data.a terraform_data.m", want: []string{before, "m t*"}, again: "Invalid source address"},
	{name: "replace-provider", args: "state replace-provider -auto-approve terraform.io/builtin/terraform registry.opentofu.org/x/y", want: []string{before, "a@y t*@y"}},
	{name: "import", args: "import terraform_data.c x", config: commandConfig + unmade, want: []string{before, "a c t*"}, again: "already managed"},
	{name: "refresh", args: "refresh", config: commandConfig + "output \"p\" { value = 1 }\n", want: []string{before, before + " =p"}},
	{name: "push", args: "state push {}/pushed", want: []string{before, "a s t*"}},
	{name: "push -force", args: "state push -force {}/forced", want: []string{before, "a s t*"}},
	{name: "workspace new", args: "workspace new w", want: []string{before, before + " w:"}, again: "already exists"},
	{name: "workspace new -state", args: "workspace new -state={}/forced w", want: []string{before, before + " w:", before + " w: a s t*"}, again: "already exists"},
	{name: "workspace delete", args: "workspace delete -force x", want: []string{before + " x: a", before}, again: "doesn't exist"},
	{name: "apply", args: "apply -auto-approve -target=terraform_data.c", config: commandConfig + unmade, want: []string{before, "a c t*"}},
	{name: "apply -refresh-only", args: "apply -auto-approve -refresh-only", config: commandConfig + "output \"p\" { value = 1 }\n", want: []string{before, before + " =p"}},
	{name: "moved", args: "apply -auto-approve -exclude=terraform_data.t", config: "moved {\n  from = terraform_data.a\n  to   = terraform_data.m\n}\nresource \"terraform_data\" \"m\" { input = \"a\" }\nresource \"terraform_data\" \"t\" { input = \"t\" }\noutput \"o\" { value = terraform_data.m.output }\n", want: []string{before, "m t*"}},
	{name: "removed", args: "apply -auto-approve -exclude=terraform_data.t", config: "removed {\n  from = terraform_data.a\n  lifecycle {\n    destroy = false\n  }\n}\nresource \"terraform_data\" \"t\" { input = \"t\" }\n", want: []string{before, "t*"}},
	{name: "import block", args: "apply -auto-approve -exclude=terraform_data.t", config: commandConfig + "resource \"terraform_data\" \"c\" {}\nimport {\n  to = terraform_data.c\n  id = \"x\"\n}\n", want: []string{before, "a c t*"}},
	{name: "destroy", args: "destroy -auto-approve", want: []string{before, "t*", "a", ""}},
	{name: "force-unlock", args: "force-unlock -force 11111111-2222-3333-4444-555555555555", locked: true, want: []string{before}, again: "(?i)unlock"},
	{name: "migrate away", args: "init -migrate-state -force-copy -input=false", backend: true, want: []string{before + " x: a"}},
	{name: "migrate here", args: "init -migrate-state -force-copy -input=false", made: true, want: []string{before + " x: a"}},
	{name: "migrate here with -backend-config", args: "init -migrate-state -force-copy -input=false -backend-config={}/b.tfbackend", made: true, partial: true, want: []string{before + " x: a"}},
}

// A commandStore is a store whose state is reset for each kill.
type commandStore struct {
	backend    string
	env        []string
	workspaces bool
	snapshot   func() (restore func()) // saves the content of the service; nil for files
	lock       func()                  // creates a lock of another run; may be nil
	left       func() []string         // returns objects that a run has left in the service besides states; nil for none
	requests   *killerAtRequest        // nil: kills after a time
}

// A killerAtRequest is a proxy in front of a service that kills the client at a request.
type killerAtRequest struct {
	service http.Handler
	mu      sync.Mutex
	seen    int // number of requests
	changes []bool
	at      int // number of the request at which to kill, from 1; 0: none
	after   bool
	process int
	done    bool
}

func (k *killerAtRequest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock() // one request at a time, so that they are counted in order
	k.seen++
	k.changes = append(k.changes, r.Method != http.MethodGet && r.Method != http.MethodHead)
	if k.at != k.seen {
		k.service.ServeHTTP(w, r)
		return
	}
	if k.after {
		k.service.ServeHTTP(httptest.NewRecorder(), r)
	}
	_ = syscall.Kill(-k.process, syscall.SIGKILL)
	k.done = true
	panic(http.ErrAbortHandler)
}

func (k *killerAtRequest) reset(at int, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen, k.changes, k.at, k.after, k.process, k.done = 0, nil, at, after, 0, false
}

func (k *killerAtRequest) start(t *testing.T) string {
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	return server.URL
}

func commandStores() map[string]func(t *testing.T) commandStore {
	return map[string]func(t *testing.T) commandStore{
		"local": func(*testing.T) commandStore {
			return commandStore{workspaces: true}
		},
		"http": func(t *testing.T) commandStore {
			service := servers.HTTP(t)
			k := &killerAtRequest{service: service}
			url := k.start(t)
			return commandStore{
				backend: fmt.Sprintf("terraform {\n  backend \"http\" {\n    address = \"%[1]s/state\"\n    lock_address = \"%[1]s/lock\"\n    unlock_address = \"%[1]s/lock\"\n    retry_max = 0\n  }\n}\n", url),
				snapshot: func() func() {
					state := service.State()
					return func() { service.SetLock(""); service.SetState(state) }
				},
				lock: func() { service.SetLock(leftLock) },
				left: func() []string {
					if lock := service.Lock(); lock != "" {
						return []string{lock}
					}
					return nil
				},
				requests: k,
			}
		},
		"s3": func(t *testing.T) commandStore {
			service := servers.NewAWS()
			service.Bucket("states")
			k := &killerAtRequest{service: http.HandlerFunc(service.Answer)}
			url := k.start(t)
			return commandStore{
				backend:    fmt.Sprintf(inStore, url),
				env:        []string{"AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey, "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1"},
				workspaces: true,
				snapshot: func() func() {
					kept := map[string]string{}
					for _, key := range service.Objects("states") {
						kept[key] = service.Object("states", key)
					}
					return func() {
						for _, key := range service.Objects("states") {
							service.Drop("states", key)
						}
						for key, text := range kept {
							service.Put("states", key, text)
						}
					}
				},
				lock: func() { service.Put("states", "app.tfstate.tflock", leftLock) },
				left: func() (out []string) {
					for _, key := range service.Objects("states") {
						if !strings.HasSuffix(key, "app.tfstate") {
							out = append(out, key+": "+service.Object("states", key))
						}
					}
					return out
				},
				requests: k,
			}
		},
		"pg": func(t *testing.T) commandStore {
			url := servers.Postgres(t)
			return commandStore{
				snapshot:   func() func() { return pgStates(t, url) },
				backend:    fmt.Sprintf("terraform {\n  backend \"pg\" {\n    conn_str = %q\n  }\n}\n", url),
				workspaces: true,
			}
		},
	}
}

// pgStates saves the states in a database, and returns a function that restores them.
func pgStates(t *testing.T, url string) (restore func()) {
	sql := func(text string, args ...[]byte) [][][]byte {
		t.Helper()
		ctx := context.Background()
		c, err := pgconn.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		return c.ExecParams(ctx, text, args, nil, nil, nil).Read().Rows // none if there is no table yet
	}
	kept := sql("SELECT name, data FROM terraform_remote_state.states ORDER BY id")
	return func() {
		sql("DELETE FROM terraform_remote_state.states")
		for _, row := range kept {
			sql("INSERT INTO terraform_remote_state.states (name, data) VALUES ($1, $2)", row...)
		}
	}
}

const leftLock = `{"ID":"11111111-2222-3333-4444-555555555555","Operation":"OperationTypeApply","Info":"","Who":"somebody@somewhere","Version":"1.12.6","Created":"2026-01-02T03:04:05Z","Path":""}`

// TestCommandsKilled kills the commands that change a state: with files after a time, and
// with services at each request, before and after it is carried out. The state is then
// either the one before or the one after the command, locks name their holder, the command
// can be run again, and no files are left.
func TestCommandsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes a while; run without -short")
	}
	t.Parallel()
	terrace := testkit.Terrace(t)
	for name, open := range commandStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &commandKiller{killer: killer{t: t, terrace: terrace}, store: open(t), root: t.TempDir()}
			k.env = environ(append(k.store.env, "TF_CLI_CONFIG_FILE="+os.DevNull, "TMPDIR="+k.tmp(), "TERRACE_AS=tofu")...)
			left := len(killedCommands)
			if *commandKills == 0 {
				left = 1
			}
			for _, at := range rand.Perm(len(killedCommands)) {
				c := killedCommands[at]
				if left == 0 {
					break
				}
				if !k.store.workspaces && strings.HasPrefix(c.name, "workspace") || c.locked && k.store.lock == nil || c.partial && k.store.backend == "" {
					continue
				}
				if !k.store.workspaces {
					c.want = slices.Clone(c.want)
					for i := range c.want {
						c.want[i] = strings.TrimSuffix(c.want[i], " x: a")
					}
				}
				left--
				t.Run(c.name, func(t *testing.T) {
					k.t = t
					k.all(c)
				})
			}
		})
	}
}

type commandKiller struct {
	killer
	store   commandStore
	root    string
	count   int
	restore func()
}

func (k *commandKiller) write(name, text string) {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	k.must(os.MkdirAll(filepath.Dir(path), 0o755))
	k.must(os.WriteFile(path, []byte(text), 0o644))
}

func (k *commandKiller) ok(args ...string) string {
	k.t.Helper()
	out, err := k.command(args...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

const elsewhere = "terraform {\n  backend \"local\" {\n    path = \"elsewhere/x.tfstate\"\n    workspace_dir = \"elsewhere/w\"\n  }\n}\n"

// prepare creates the working directory of the command.
func (k *commandKiller) prepare(c killedCommand) {
	k.t.Helper()
	template := filepath.Join(k.root, "template "+k.t.Name()[strings.LastIndex(k.t.Name(), "/")+1:])
	if _, err := os.Stat(template); err == nil {
		if k.restore != nil {
			k.restore()
		}
	} else {
		k.dir = template
		k.must(os.Mkdir(k.dir, 0o755))
		if k.store.snapshot != nil && k.restore == nil {
			k.restore = k.store.snapshot() // empty
		}
		if k.restore != nil {
			k.restore()
		}
		k.write("main.tf", commandConfig)
		first := k.store.backend
		if c.made {
			first = elsewhere
		}
		k.write("backend.tf", first)
		k.ok("init", "-input=false", "-reconfigure")
		k.ok("apply", "-auto-approve")
		k.ok("taint", "terraform_data.t")
		if k.store.workspaces && len(c.want) > 0 && strings.Contains(c.want[0], " x:") {
			k.ok("workspace", "new", "x")
			k.ok("apply", "-auto-approve", "-target=terraform_data.a")
			k.ok("workspace", "select", "default")
		}
		pulled := k.ok("state", "pull")
		k.write("pushed", addObject(k.t, pulled, 5))
		k.write("forced", addObject(k.t, pulled, 0))
		if c.config != "" {
			k.write("main.tf", c.config)
		}
		if c.made {
			k.write("backend.tf", k.store.backend)
		}
		if c.partial {
			m := backendBlock.FindStringSubmatch(k.store.backend)
			k.write("backend.tf", "terraform {\n  backend "+m[1]+" {}\n}\n")
			k.write("b.tfbackend", m[2])
		}
		if c.backend {
			k.write("backend.tf", elsewhere)
		}
		if c.locked {
			k.store.lock()
		}
		if k.store.snapshot != nil {
			empty := k.restore
			k.restore = k.store.snapshot()
			k.t.Cleanup(func() { k.restore = empty })
		}
	}
	k.count++
	k.dir = filepath.Join(k.root, fmt.Sprint(k.count))
	k.must(os.CopyFS(k.dir, os.DirFS(template)))
}

var backendBlock = regexp.MustCompile(`(?s)backend ("\w+") \{(.*)\n  \}`)

// addObject adds an object s to a state, and increases its serial.
func addObject(t *testing.T, text string, serial float64) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	resources := v["resources"].([]any)
	raw, _ := json.Marshal(resources[0])
	var s map[string]any
	_ = json.Unmarshal(raw, &s)
	s["name"] = "s"
	v["resources"] = append(resources, s)
	v["serial"] = v["serial"].(float64) + serial
	raw, _ = json.Marshal(v)
	return string(raw)
}

// all kills a command repeatedly.
func (k *commandKiller) all(c killedCommand) {
	k.t.Helper()
	k.prepare(c)
	start := time.Now()
	if r := k.store.requests; r != nil {
		r.reset(0, false)
	}
	out, err := k.run(c).CombinedOutput()
	took := time.Since(start)
	if err != nil {
		k.t.Fatalf("%s: %v\n%s", c.args, err, out)
	}
	if got, want := k.found(), c.want[len(c.want)-1]; got != want {
		k.t.Fatalf("%s leads to %q, want %q:\n%s", c.args, got, want, out)
	}
	if r := k.store.requests; r != nil {
		total := len(r.changes)
		type moment struct {
			at    int
			after bool
		}
		var moments []moment
		for i, changes := range r.changes {
			moments = append(moments, moment{i + 1, false})
			if changes {
				moments = append(moments, moment{i + 1, true})
			}
		}
		if *commandKills >= 0 {
			rand.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
			moments = moments[:min(len(moments), max(1, *commandKills))]
		}
		for _, m := range moments {
			k.prepare(c)
			r.reset(m.at, m.after)
			cmd := k.run(c)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			r.mu.Lock()
			k.must(cmd.Start())
			r.process = cmd.Process.Pid
			r.mu.Unlock()
			_ = cmd.Wait()
			r.mu.Lock()
			killed := r.done
			r.at = 0
			r.mu.Unlock()
			if killed {
				k.look(c, fmt.Sprintf("killed at request %d of %d, after it: %t", m.at, total, m.after), out.String())
			}
		}
		k.t.Logf("%d kills", len(moments))
		return
	}
	kills := max(1, *commandKills)
	if *commandKills < 0 {
		kills = 40
	}
	for range kills {
		k.prepare(c)
		cmd := k.run(c)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		k.must(cmd.Start())
		after := time.Duration(rand.Int64N(int64(took)))
		time.Sleep(after)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		k.look(c, fmt.Sprintf("killed after %v of %v", after, took), out.String())
	}
	k.t.Logf("%d kills", kills)
}

func (k *commandKiller) run(c killedCommand) *exec.Cmd {
	return k.command(strings.Fields(strings.ReplaceAll(c.args, "{}", k.dir))...)
}

var lockOf = regexp.MustCompile(`(?s)ID:\s+(\S+).*Operation:\s+(\S+).*Who:\s+(\S+@\S+)`)

// lockIn matches the workspace of a lock, if that is not the selected one.
var lockIn = regexp.MustCompile(`TF_WORKSPACE=(\S+)`)

// look checks the result of a kill, and runs the command again.
func (k *commandKiller) look(c killedCommand, when, said string) {
	k.t.Helper()
	if !c.backend && !c.made {
		if got := k.found(); !slices.Contains(c.want, got) {
			k.t.Errorf("%s, %s: the state is %q, want one of %q\nit had said:\n%s", c.args, when, got, c.want, said)
			return
		}
	}
	args := strings.Fields(strings.ReplaceAll(c.args, "{}", k.dir))
	out, err := k.unlocked(args...)
	if err != nil && strings.Contains(string(out), "workspace delete") { // the advice if -state may have been ignored
		if got := k.found(); got != c.want[len(c.want)-1] {
			_, _ = k.unlocked("workspace", "delete", "w")
			out, err = k.unlocked(args...)
		}
	}
	if err != nil && (c.again == "" || !regexp.MustCompile(c.again).Match(out)) {
		k.t.Errorf("%s, %s: it cannot be run again: %v\n%s\nit had said:\n%s", c.args, when, err, out, said)
		return
	}
	if got, want := k.found(), c.want[len(c.want)-1]; got != want {
		k.t.Errorf("%s, %s, and run again: the state is %q, want %q\n%s", c.args, when, got, want, out)
	}
	if strings.HasPrefix(c.name, "workspace new") { // its lock may be left
		_, _ = k.unlocked("workspace", "select", "w")
	}
	if out, err := k.unlocked("plan", "-refresh=false"); err != nil && c.name != "replace-provider" {
		k.t.Errorf("%s, %s, and run again: plan fails:\n%s", c.args, when, out)
	}
	if left := k.left(c.backend || c.made); left != "" {
		k.t.Errorf("%s, %s, and run again: there are %s", c.args, when, left)
	}
}

// unlocked runs a command, and releases the locks that it reports.
func (k *commandKiller) unlocked(args ...string) (out []byte, err error) {
	k.t.Helper()
	for range 4 {
		out, err = k.command(args...).CombinedOutput()
		m := lockOf.FindSubmatch(out)
		if err == nil || m == nil {
			break
		}
		unlock := []string{"force-unlock", "-force"}
		if len(args) > 0 && strings.HasPrefix(args[len(args)-1], "-backend-config=") {
			unlock = append(unlock, args[len(args)-1])
		}
		c := k.command(append(unlock, string(m[1]))...)
		if w := lockIn.FindSubmatch(out); w != nil {
			c.Env = append(slices.Clone(k.env), "TF_WORKSPACE="+string(w[1]))
		}
		if said, err := c.CombinedOutput(); err != nil && k.store.lock != nil { // otherwise the lock ends by itself after some time
			k.t.Fatalf("%v: %v\n%s\nadvised by:\n%s", c.Args[1:], err, said, out)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return out, err
}

// left returns files that a run must not leave.
func (k *commandKiller) left(moves bool) string {
	var out []string
	patterns := []string{"errored*", "*journal*", ".*journal*", "*/*journal*", "*/.*journal*"}
	if !moves { // files next to a moved state are removed by the next command that locks it
		patterns = append(patterns, ".terraform.*", ".*.new", "*/*/.*", ".terraform/*.lock*")
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join(k.dir, pattern))
		k.must(err)
		for _, name := range names {
			if base := filepath.Base(name); base != ".terraform.lock.hcl" && !slices.Contains(out, name[len(k.dir)+1:]) {
				out = append(out, name[len(k.dir)+1:])
			}
		}
	}
	if k.store.left != nil {
		for _, left := range k.store.left() {
			// A state that was copied already is not locked again. The lock describes
			// itself.
			if !moves || !strings.Contains(left, `"migration `) {
				out = append(out, "in the store: "+left)
			}
		}
	}
	return strings.Join(out, ", ")
}

// found returns the objects of all workspaces.
func (k *commandKiller) found() string {
	k.t.Helper()
	out := k.objects("default")
	var names []string
	if list, err := k.command("workspace", "list").CombinedOutput(); err == nil {
		names = strings.Fields(strings.ReplaceAll(string(list), "*", " "))
	}
	for _, name := range names {
		if name != "default" {
			out = strings.TrimSpace(out + " " + name + ": " + k.objects(name))
		}
	}
	return strings.TrimSpace(out)
}

func (k *commandKiller) objects(workspace string) string {
	k.t.Helper()
	c := k.command("state", "pull")
	c.Env = append(slices.Clone(k.env), "TF_WORKSPACE="+workspace)
	var text, errs bytes.Buffer
	c.Stdout, c.Stderr = &text, &errs
	if err := c.Run(); err != nil {
		k.t.Fatalf("state pull: %v\n%s", err, errs.String())
	}
	var v struct {
		Outputs   map[string]any
		Resources []struct {
			Name, Provider string
			Instances      []struct{ Status string }
		}
	}
	if text.Len() > 0 && strings.TrimSpace(text.String()) != "" {
		if err := json.Unmarshal(text.Bytes(), &v); err != nil {
			k.t.Fatalf("state pull: %v\n%s", err, text.String())
		}
	}
	var out []string
	for _, r := range v.Resources {
		for _, i := range r.Instances {
			s := r.Name
			if i.Status == "tainted" {
				s += "*"
			}
			if strings.Contains(r.Provider, "/x/y") {
				s += "@y"
			}
			out = append(out, s)
		}
	}
	slices.Sort(out)
	if _, ok := v.Outputs["p"]; ok {
		out = append(out, "=p")
	}
	return strings.Join(out, " ")
}
