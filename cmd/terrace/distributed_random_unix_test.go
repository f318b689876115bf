//go:build unix

package main_test

import (
	"bytes"
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
)

var (
	troubledRuns  = flag.Int("troubledruns", 1, "how many runs on workers of a Temporal server meet with trouble of all kinds")
	troubledUnits = flag.Int("troubledunits", 50, "how many units they have")
	troubledSeed  = flag.Uint64("troubledseed", 0, "what the trouble of the first of them is drawn from, the next number for each one more; 0: any")
)

const (
	troubledQueue   = "terrace-troubled"
	troubledWorkers = 3
	troubledUnit    = "terraform {\n  source = \"../modules//m\"\n}\nremote_state {\n  backend = \"s3\"\n  config = {\n    bucket = \"states\"\n    key = \"${get_env(\"TG_TRY\")}/%[1]s.tfstate\"\n    region = \"us-east-1\"\n    use_path_style = true\n    use_lockfile = true\n  }\n}\ninputs = {\n  unit   = %[1]q\n  before = %[2]s\n}\n"
)

// TestWorkersInTrouble applies an estate on three workers, with states, journals, files and
// plans in a store. Workers, the client, the server, the network and the store are killed,
// stopped or disconnected at random. Each process has its own connections to the server and
// to the store, so that each can be cut off, and the store knows which process writes. In
// every case, only the holder of the lock writes, objects for which the provider has
// responded are not created again, and pending calls are reported. The run, or the next
// one, succeeds, and each object is in the states exactly once.
func TestWorkersInTrouble(t *testing.T) {
	k := &trouble{estateKiller: estateKiller{killer{t: t, terrace: testkit.Terrace(t), dir: t.TempDir()}}, server: aTemporal(t), store: newGuarded(t)}
	k.setUp()
	if k.seed = *troubledSeed; k.seed == 0 {
		k.seed = rand.Uint64N(1e9)
	}
	begin := time.Now()
	for i := range *troubledRuns {
		k.try(i)
	}
	t.Logf("%d runs of %d units from seed %d on in %s: %s", *troubledRuns, *troubledUnits, k.seed, time.Since(begin).Round(time.Second), k.sum.String())
}

// sums counts the events.
type sums struct {
	kinds                        map[string]int
	well, more, again, attempted int
}

func (s *sums) String() string {
	var out []string
	for kind, n := range s.kinds {
		out = append(out, fmt.Sprintf("%d × %s", n, kind))
	}
	slices.Sort(out)
	return fmt.Sprintf("%s; %d runs ended well by themselves, %d with one more; %d objects were on their way and made again, all of them named", strings.Join(out, ", "), s.well, s.more, s.again)
}

// A guarded store identifies the writing process, and checks that it has the lock.
type guarded struct {
	*servers.AWSServer
	t *testing.T

	mu      sync.Mutex
	holders map[string]string // of locks, by the key of the state
	down    map[string]bool   // processes that cannot reach the store; "" means all of them
	wrong   []string
	writes  int
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{AWSServer: servers.NewAWS(), t: t, holders: map[string]string{}, down: map[string]bool{}}
	g.Bucket("states")
	return g
}

// way returns the address of the store for a process.
func (g *guarded) way(who string) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, who) }))
	g.t.Cleanup(s.Close)
	return s.URL
}

func (g *guarded) set(who string, down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down[who] = down
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request, who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down[who] || g.down[""] {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
		return
	}
	answer := httptest.NewRecorder()
	g.Answer(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	key, of, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/states/"), ".tfstate")
	if !found || answer.Code/100 != 2 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	switch {
	case of == ".tflock" && r.Method == http.MethodPut:
		g.holders[key] = who
	case of == ".tflock":
		delete(g.holders, key)
	default:
		g.writes++
		if holder := g.holders[key]; holder != who {
			g.wrong = append(g.wrong, fmt.Sprintf("%s writes %s, whose lock %q has", who, r.URL.Path, holder))
		}
	}
}

// A process is a process of the program, with its own connections.
type process struct {
	name string
	wire *wire // to the server
	env  []string
	cmd  *exec.Cmd
}

type trouble struct {
	estateKiller
	server *temporal
	store  *guarded
	sum    sums
	seed   uint64 // of the first run
	draw   *rand.Rand

	workers []*process
	client  *process
	number  int // number of workers so far

	mu    sync.Mutex
	said  bytes.Buffer // all output of clients
	log   []string     // the injected faults
	begun time.Time
}

func (k *trouble) setUp() {
	k.t.Helper()
	k.sum.kinds = map[string]int{}
	plugins := filepath.Join(k.dir, "plugins")
	k.must(os.MkdirAll(plugins, 0o755))
	k.must(os.Symlink(testkit.TestProvider(k.t, 6), filepath.Join(plugins, "terraform-provider-test")))
	k.record = filepath.Join(k.dir, "record")
	module := strings.Replace(fmt.Sprintf(killModule, k.record), "delay_ms    = 3", "delay_ms    = 100", 1)
	files := map[string]string{
		"rc":                       fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", plugins),
		"record":                   "",
		"estate/modules/m/main.tf": strings.Replace(module, `backend "local"`, `backend "s3"`, 1),
	}
	for i := range *troubledUnits {
		before, dependency := `"first"`, ""
		if i >= killLayer {
			before = "dependency.before.outputs.last"
			dependency = fmt.Sprintf("dependency \"before\" {\n  config_path = \"../%s\"\n}\n", unitName(i-killLayer))
		}
		files["estate/"+unitName(i)+"/terragrunt.hcl"] = dependency + fmt.Sprintf(troubledUnit, unitName(i), before)
	}
	k.write(files)
	k.env = environ("TF_CLI_CONFIG_FILE="+filepath.Join(k.dir, "rc"), "TMPDIR="+k.tmp(), "TERRACE_TEMPORAL_HEARTBEAT=4s", runKey,
		"AWS_ACCESS_KEY_ID="+servers.AccessKey, "AWS_SECRET_ACCESS_KEY="+servers.SecretKey, "AWS_EC2_METADATA_DISABLED=true")
	k.client = k.process("client")
}

// process creates the connections of a process.
func (k *trouble) process(name string) *process {
	w := newWire(k.t, k.server.address)
	return &process{name: name, wire: w, env: append(slices.Clip(k.env), "AWS_ENDPOINT_URL_S3="+k.store.way(name))}
}

const troubledBlobs = "--blobs=s3:bucket=states,key=runs,region=us-east-1,use_path_style=true"

func (k *trouble) run(p *process, args ...string) *exec.Cmd {
	c := k.command(args...)
	c.Dir, c.Env = filepath.Join(k.dir, "estate"), append(slices.Clip(p.env), fmt.Sprintf("TG_TRY=try%d", k.sum.attempted))
	return c
}

// worker starts a worker in its own process group.
func (k *trouble) worker() {
	k.t.Helper()
	k.number++
	p := k.process(fmt.Sprintf("worker%d", k.number))
	p.cmd = k.run(p, "worker", "--temporal", p.wire.address(), "--namespace", k.server.namespace, "--queue", troubledQueue, "--slots", "3",
		"--dir", filepath.Join(k.dir, p.name), troubledBlobs)
	out, err := os.Create(filepath.Join(k.dir, p.name+".log"))
	k.must(err)
	defer out.Close()
	p.cmd.Stderr = out
	k.must(p.cmd.Start())
	k.workers = append(k.workers, p)
}

func (k *trouble) end(p *process) {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(filepath.Join(k.dir, p.name))
}

func (k *trouble) note(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, fmt.Sprintf("%6.2fs ", time.Since(k.begun).Seconds())+fmt.Sprintf(format, args...))
}

// Write receives the output of clients.
func (k *trouble) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.said.Write(b)
}

func (k *trouble) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.said.String()
}

func (k *trouble) failf(format string, args ...any) {
	k.t.Helper()
	raw, _ := os.ReadFile(k.record)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.t.Fatalf("run %d, seed %d: %s\n%s\n%s\n%s\n%s", k.sum.attempted, k.seed+uint64(k.sum.attempted), fmt.Sprintf(format, args...), strings.Join(k.log, "\n"), k.said.String(), raw, k.sum.String())
}

var runID = regexp.MustCompile(`terrace-apply-estate-[0-9a-f]+`)

// try applies the estate from nothing, with faults.
func (k *trouble) try(n int) {
	k.t.Helper()
	k.sum.attempted = n
	k.begun, k.log, k.draw = time.Now(), nil, rand.New(rand.NewPCG(k.seed+uint64(n), 0))
	k.said.Reset()
	k.must(os.Truncate(k.record, 0))
	for range troubledWorkers {
		k.worker()
	}
	defer func() {
		for _, p := range k.workers {
			k.end(p)
		}
		k.workers = nil
	}()
	stop, troubled := make(chan struct{}), make(chan struct{})
	killClient := make(chan struct{}, 1)
	go func() { // ended by stop
		defer close(troubled)
		k.make(stop, killClient)
	}()
	err := k.follow(killClient)
	close(stop)
	<-troubled
	well := err == nil
	for again := 0; err != nil; again++ {
		if again == 3 {
			k.failf("it does not end well: %v", err)
		}
		k.note("applied once more, since: %v", err)
		err = k.follow(nil)
	}
	if well {
		k.sum.well++
	} else {
		k.sum.more++
	}
	k.judge()
	k.t.Logf("run %d, seed %d, %s: %s", n, k.seed+uint64(n), time.Since(k.begun).Round(time.Second), k.sum.String())
}

// follow starts a run and follows it to its end. If a client is killed, another one
// continues.
func (k *trouble) follow(killClient chan struct{}) error {
	k.t.Helper()
	on := k.server.url(k.client.wire.address(), troubledQueue)
	apply := []string{"run", "--all", "--non-interactive", "--share-provider", "terrace/test", troubledBlobs, "--on", on, "apply", "-json"}
	args, before := apply, len(k.text())
	deadline := time.After(10 * time.Minute)
	for tries := 0; ; tries++ {
		c := k.run(k.client, args...)
		var errs bytes.Buffer
		c.Stdout, c.Stderr = k, &errs
		k.must(c.Start())
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		killed := false
		var err error
		for over := false; !over; {
			select {
			case err = <-ended:
				over = true
			case <-killClient:
				if runID.MatchString(k.text()[before:]) { // without the ID the run cannot be followed
					k.note("the client is killed")
					killed = true
					_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
				}
			case <-deadline:
				_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
				k.failf("the run does not end: %s", errs.String())
			}
		}
		if err == nil {
			return nil
		}
		said := k.text()[before:]
		id := runID.FindString(said)
		last := said[max(0, len(said)-6000):] + errs.String()
		gone := killed || strings.Contains(last, "could not be followed") || strings.Contains(last, "cannot be followed") || strings.Contains(last, "cannot be reached") || strings.Contains(last, "did not begin")
		if !gone || tries > 60 {
			return fmt.Errorf("%w: %s", err, errs.String())
		}
		if id != "" {
			args = []string{"run", "--on", on, troubledBlobs, "attach", id}
		}
		k.note("another client (%v)", args[len(args)-2:])
		time.Sleep(300 * time.Millisecond)
	}
}

// make injects faults until it is stopped, and then removes them.
func (k *trouble) make(stop <-chan struct{}, killClient chan<- struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wait := func(ms int) bool { // reports whether to continue
		select {
		case <-stop:
			return false
		case <-time.After(time.Duration(ms) * time.Millisecond):
			return true
		}
	}
	pause := func(least, most int) bool { return wait(least + k.draw.IntN(most-least)) }
	for range 100 { // until a process makes progress
		if raw, _ := os.ReadFile(k.record); len(raw) > 0 || !wait(150) {
			break
		}
	}
	kinds := []string{"worker killed", "worker killed", "worker stopped", "client killed", "network of a worker cut", "network of a worker silent", "network of the client cut", "store cut off from a worker", "store gone"}
	if k.server.program != "" {
		kinds = append(kinds, "server killed", "server killed")
	}
	for range 4 {
		if !pause(200, 2500) {
			return
		}
		kind := kinds[k.draw.IntN(len(kinds))]
		k.sum.kinds[kind]++
		i := k.draw.IntN(len(k.workers))
		p := k.workers[i]
		k.note("%s (%s)", kind, p.name)
		switch kind {
		case "worker killed":
			k.workers = slices.Delete(k.workers, i, i+1)
			k.end(p)
			pause(0, 2000)
			k.worker()
		case "worker stopped":
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP)
			pause(500, 9000)
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT)
		case "client killed":
			select {
			case killClient <- struct{}{}:
			default:
			}
		case "network of a worker cut", "network of the client cut":
			if kind == "network of the client cut" {
				p = k.client
			}
			p.wire.setCut(true)
			pause(200, 8000)
			p.wire.setCut(false)
		case "network of a worker silent":
			p.wire.stalled.Lock()
			pause(200, 9000)
			p.wire.stalled.Unlock()
		case "store cut off from a worker", "store gone":
			who := p.name
			if kind == "store gone" {
				who = ""
			}
			k.store.set(who, true)
			pause(200, 6000)
			k.store.set(who, false)
		case "server killed":
			k.server.kill()
			pause(0, 3000)
			k.server.start()
		}
		k.note("over")
	}
}

// judge checks the provider's record, the states, and who wrote them.
func (k *trouble) judge() {
	k.t.Helper()
	said := map[string]bool{}
	for line := range strings.Lines(k.text()) {
		var m struct {
			Unit       string
			Diagnostic struct{ Detail string }
		}
		if json.Unmarshal([]byte(line), &m) != nil { // from a client that was killed
			continue
		}
		for _, named := range mayHaveHappenedTo.FindAllStringSubmatch(m.Diagnostic.Detail, -1) {
			index := "3"
			if named[2] != "" {
				index = named[2]
			}
			said[m.Unit+"-"+index] = true
		}
	}
	raw, err := os.ReadFile(k.record)
	k.must(err)
	made := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 3 || f[0] != "begin" || f[1] == "read" {
			continue
		}
		if f[1] != "create" {
			k.failf("%s of %s", f[1], f[2])
		}
		made[f[2]]++
		for name := range made { // a dependent call had begun, so the response had arrived
			if made[f[2]] > 1 && slices.Contains(k.needs(name), f[2]) {
				k.failf("%s was there when %s was begun, and was made again", f[2], name)
			}
		}
		if made[f[2]] > 1 {
			k.sum.again++
			if !said[f[2]] {
				k.failf("%s was made again, and not named", f[2])
			}
		}
	}
	have := map[string]int{}
	for i := range *troubledUnits {
		var state struct {
			Resources []struct {
				Instances []struct{ Attributes struct{ Name string } }
			}
		}
		key := fmt.Sprintf("try%d/%s.tfstate", k.sum.attempted, unitName(i))
		if err := json.Unmarshal([]byte(k.store.Object("states", key)), &state); err != nil {
			k.failf("%s: %v", key, err)
		}
		for _, r := range state.Resources {
			for _, in := range r.Instances {
				have[in.Attributes.Name]++
			}
		}
	}
	if len(have) != *troubledUnits*4 || len(made) != len(have) {
		k.failf("%d objects in the states and %d begun, want %d", len(have), len(made), *troubledUnits*4)
	}
	c := k.run(k.client, "run", "--all", "--non-interactive", "--share-provider", "terrace/test", "plan", "-detailed-exitcode")
	if out, err := c.CombinedOutput(); err != nil {
		k.failf("there is something left to do: %v\n%s", err, out)
	}
	for _, key := range k.store.Objects("states") {
		if strings.HasSuffix(key, ".tflock") || strings.Contains(key, "/journal/") {
			k.failf("%s is left", key)
		}
	}
	k.store.mu.Lock()
	wrong := k.store.wrong
	k.store.mu.Unlock()
	if len(wrong) > 0 {
		k.failf("somebody wrote without the lock:\n%s", strings.Join(wrong, "\n"))
	}
}

var mayHaveHappenedTo = regexp.MustCompile(`May have\s+happened:\s+test_record\.(r\[([0-9]+)\]|last)`)
