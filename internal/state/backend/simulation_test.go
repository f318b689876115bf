package backend_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azurerm"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/backend/consul"
	"github.com/terrace-iac/terrace/internal/state/backend/cos"
	"github.com/terrace-iac/terrace/internal/state/backend/gcs"
	"github.com/terrace-iac/terrace/internal/state/backend/httpstore"
	"github.com/terrace-iac/terrace/internal/state/backend/kubernetes"
	"github.com/terrace-iac/terrace/internal/state/backend/migrate"
	"github.com/terrace-iac/terrace/internal/state/backend/oss"
	"github.com/terrace-iac/terrace/internal/state/backend/s3"
	"github.com/terrace-iac/terrace/internal/state/backend/tfe"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// # The simulation
//
// A seed determines a world: two stores of the same or different kinds, two machines with
// clocks and disks, and a network between them, all in one process and in synthetic time. The
// machines plan, apply and migrate, alone and concurrently. Every request to a store may be
// dropped before or after it was carried out, delayed, sent twice, or answered with 429, 500,
// 503 or 412 instead of the service's response. The process that sent it may die at that
// moment. Its disk then remains as it is, or is lost if the journal is kept in the store. Locks
// are taken away during runs. Then the network recovers, and the contents of the stores and
// disks are compared with the providers' answers.
//
// Everything is derived from the seed, so that -simseed reproduces a failure.

var (
	simulations = flag.Int("sim", 50, "how many worlds are simulated")
	firstWorld  = flag.Uint64("simseed", 0, "the seed of the first world")
)

// tally counts the events in all worlds.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what] += n
}

func TestSimulation(t *testing.T) {
	c := &tally{n: map[string]int{}}
	parallel.Map(*simulations, runtime.GOMAXPROCS(0), func(i int) struct{} {
		seed := *firstWorld + uint64(i)
		dir, err := os.MkdirTemp("", "sim")
		if err != nil {
			t.Error(err)
			return struct{}{}
		}
		defer os.RemoveAll(dir)
		if !t.Failed() {
			synctest.Test(t, func(t *testing.T) { newSimulation(t, seed, dir, c).run() })
		}
		return struct{}{}
	})
	var text []string
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		text = append(text, fmt.Sprintf("%d %s", c.n[k], k))
	}
	t.Logf("%d worlds: %s", *simulations, strings.Join(text, ", "))
}

// A simulation is one world.
type simulation struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand // for the world; machines have their own
	c      *tally
	dir    string
	stores []place // the current one first
	over   chan struct{}
	trace  []string

	segments bool        // journals are kept in the store
	stolen   atomic.Bool // a lock was taken away
	expires  bool        // a lock that is not renewed in time expires, which its holder finds out when it writes
	// bare means that a store has no conditional writes and uses its own clock. If a lock is
	// taken away there during a write, that write may be lost in any implementation, and a
	// client with a wrong clock is refused.
	bare   bool
	healed atomic.Bool // there are no more faults
	holder *process

	mu    sync.Mutex
	known map[string]*answered
	disks int
	alive sync.WaitGroup // processes, including those that wait for the end of the world
}

// answered is an object that a provider returned.
type answered struct {
	by   *machine
	safe bool // it must survive the loss of the disk
}

// A place is a store.
type place struct {
	kind    backend.Kind
	config  map[string]cty.Value
	handler http.Handler
}

func newSimulation(t *testing.T, seed uint64, dir string, c *tally) *simulation {
	w := &simulation{t: t, seed: seed, rng: newRand(seed, 7), c: c, dir: dir, known: map[string]*answered{}, over: make(chan struct{})}
	w.stores = []place{w.place(), w.place()}
	is := func(names ...string) bool {
		return slices.ContainsFunc(w.stores, func(p place) bool { return slices.Contains(names, p.kind.Name) })
	}
	w.bare = is("cos", "oss")
	w.expires = is("consul")
	w.segments = !is("http", "remote") && w.rng.IntN(3) == 0
	return w
}

// place creates an empty store of a random kind.
func (w *simulation) place() place {
	text := cty.StringVal
	switch n := w.rng.IntN(11); n {
	case 8:
		s := servers.NewCOS()
		return place{cos.Kind(), map[string]cty.Value{"bucket": text(s.Bucket), "region": text(s.Region), "prefix": text("p"), "secret_id": text(s.ID), "secret_key": text(s.Key)}, s}
	case 9:
		s := servers.NewOSS()
		at := text("http://127.0.0.1") // a service with a custom address has the bucket in its paths
		return place{oss.Kind(), map[string]cty.Value{
			"bucket": text(s.Bucket), "endpoint": at, "tablestore_endpoint": at, "tablestore_table": text(s.Table), "access_key": text(s.ID), "secret_key": text(s.Key),
		}, s}
	case 10:
		s := servers.NewTFE()
		s.Host = "tfe.test"
		return place{tfe.Remote(), map[string]cty.Value{
			"hostname": text(s.Host), "organization": text("acme"), "token": text("planted-token"), "workspaces": cty.ObjectVal(map[string]cty.Value{"name": text("app"), "prefix": cty.NullVal(cty.String)}),
		}, s}
	case 5:
		s := servers.NewBlobs("states")
		return place{azurerm.Kind(), map[string]cty.Value{"storage_account_name": text(s.Account), "container_name": text("states"), "key": text("app.tfstate"), "access_key": text(s.Key)}, s}
	case 6:
		return place{kubernetes.Kind(), map[string]cty.Value{"secret_suffix": text("app"), "host": text("https://cluster.test"), "token": text("planted")}, servers.NewKubernetes("planted")}
	case 7:
		return place{consul.Kind(), map[string]cty.Value{"path": text("app/state"), "address": text("consul.test"), "gzip": cty.BoolVal(w.rng.IntN(2) == 0)}, servers.NewConsul()}
	case 0:
		const where = "http://state.test"
		return place{httpstore.Kind(), map[string]cty.Value{
			"address": text(where + "/state"), "lock_address": text(where + "/lock"), "unlock_address": text(where + "/lock"),
		}, http.HandlerFunc((&servers.HTTPServer{}).Answer)}
	case 1:
		s := servers.NewGCS()
		return place{gcs.Kind(), map[string]cty.Value{"bucket": text(s.Bucket), "prefix": text("p"), "access_token": text(s.Token)}, s}
	default:
		s := servers.NewAWS()
		s.Bucket("states")
		s.Table("locks")
		at := text("http://aws.test")
		config := map[string]cty.Value{
			"bucket": text("states"), "key": text("app.tfstate"), "region": text("us-east-1"), "access_key": text(servers.AccessKey), "secret_key": text(servers.SecretKey),
			"use_path_style": cty.True, "skip_metadata_api_check": cty.True, "use_lockfile": cty.BoolVal(n != 2),
			"endpoints": cty.ObjectVal(map[string]cty.Value{"s3": at, "dynamodb": at, "iam": cty.NullVal(cty.String), "sts": cty.NullVal(cty.String)}),
		}
		if n != 3 {
			config["dynamodb_table"] = text("locks")
		}
		return place{s3.Kind(), config, http.HandlerFunc(s.Answer)}
	}
}

// A machine has a clock and a disk, and runs one process at a time.
type machine struct {
	w    *simulation
	name string
	rng  *rand.Rand
	skew time.Duration
	rate float64 // fraction of requests with a fault
	disk string
	made int         // number of objects
	died atomic.Bool // its last process died
}

// newRand returns a random source for several goroutines.
func newRand(seed, n uint64) *rand.Rand { return rand.New(&source{pcg: rand.NewPCG(seed, n)}) }

type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// A process runs on a machine. After it has died, its remaining actions have no effect.
type process struct {
	*machine
	disk string // disk at the start of the process; the machine gets another disk when it dies
	dead atomic.Bool
	die  int  // number of the request at which it dies; 0 means never
	calm bool // its requests have no faults
	sent atomic.Int64
	gone chan struct{} // closed when it dies
}

func (w *simulation) machine(name string, n uint64) *machine {
	m := &machine{w: w, name: name, rng: newRand(w.seed, 100+n)}
	m.skew = []time.Duration{0, 0, time.Hour, -time.Hour}[m.rng.IntN(4)]
	if w.bare {
		m.skew /= 100
	}
	m.rate = []float64{0, 0.02, 0.1, 0.3}[m.rng.IntN(4)]
	m.disk = w.newDisk()
	return m
}

func (w *simulation) newDisk() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disks++
	dir := filepath.Join(w.dir, fmt.Sprint(w.disks))
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func (w *simulation) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *simulation) fail(format string, args ...any) {
	w.t.Helper()
	w.mu.Lock()
	trace := strings.Join(w.trace, "\n")
	w.mu.Unlock()
	w.t.Fatalf("seed %d (-sim 1 -simseed %[1]d): %s\n%s", w.seed, fmt.Sprintf(format, args...), trace)
}

// A wire is the network between one process and one store.
type wire struct {
	m       *process
	handler http.Handler
}

var errWire = errors.New("the connection broke")

func (x wire) answer(r *http.Request, body []byte) *http.Response {
	again := r.Clone(r.Context())
	again.Body, again.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	if again.Host == "" {
		again.Host = r.URL.Host
	}
	rec := httptest.NewRecorder()
	x.handler.ServeHTTP(rec, again)
	resp := rec.Result()
	resp.Request = r
	return resp
}

func canned(r *http.Request, status int) *http.Response {
	h := http.Header{}
	if status == http.StatusTooManyRequests {
		h.Set("Retry-After", "3")
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader("planted")), Request: r, ProtoMajor: 1, ProtoMinor: 1}
}

// RoundTrip sends a request through the network. A process that has died waits here for the end
// of the world, so that it does nothing more.
func (x wire) RoundTrip(r *http.Request) (*http.Response, error) {
	m := x.m
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a buffer cannot fail
		r.Body.Close()
	}
	if m.dead.Load() {
		<-m.w.over
		return nil, errWire
	}
	if m.calm || m.w.healed.Load() {
		return x.answer(r, body), nil
	}
	n := int(m.sent.Add(1))
	m.w.c.add("requests", 1)
	time.Sleep(time.Duration(1+m.rng.IntN(50_000_000)) * time.Nanosecond)
	switch {
	case m.dead.Load(): // another request of the process was its last
		<-m.w.over
		return nil, errWire
	case n == m.die:
		if m.rng.IntN(2) == 0 {
			x.answer(r, body)
			m.w.note("%s dies after %s %s", m.name, r.Method, r.URL.Path)
		} else {
			m.w.note("%s dies before %s %s", m.name, r.Method, r.URL.Path)
		}
		m.crash()
		<-m.w.over
		return nil, errWire
	}
	if m.rng.Float64() >= m.rate {
		resp := x.answer(r, body)
		if *simulations == 1 {
			m.w.note("%s: %s %s %s %.300s: %d", m.name, r.Method, r.URL.Path, r.Header.Get("X-Amz-Target"), body, resp.StatusCode)
		}
		return resp, nil
	}
	fault := m.rng.IntN(8)
	m.w.note("%s: %s %s has the fault %d", m.name, r.Method, r.URL.Path, fault)
	m.w.c.add("faults", 1)
	switch fault {
	case 0:
		return nil, errWire
	case 1:
		x.answer(r, body)
		return nil, errWire
	case 2:
		time.Sleep(time.Duration(1+m.rng.IntN(90_000)) * time.Millisecond)
		return x.answer(r, body), nil
	case 3:
		x.answer(r, body)
		return x.answer(r, body), nil
	case 4:
		return canned(r, http.StatusTooManyRequests), nil
	case 5:
		return canned(r, http.StatusInternalServerError), nil
	case 6:
		return canned(r, http.StatusServiceUnavailable), nil
	}
	return canned(r, http.StatusPreconditionFailed), nil
}

// crash ends the process. The disk remains as it is, or is lost if the store contains
// everything important.
func (m *process) crash() {
	m.dead.Store(true)
	m.died.Store(true)
	defer close(m.gone)
	w := m.w
	w.c.add("crashes", 1)
	next := w.newDisk()
	if w.segments && !w.stolen.Load() && m.rng.IntN(2) == 0 { // after its lock was taken away, the results of a run are only safe on its machine
		w.c.add("burnt disks", 1)
		w.mu.Lock()
		for name, a := range w.known {
			if a.by == m.machine && !a.safe {
				delete(w.known, name)
			}
		}
		w.mu.Unlock()
	} else {
		files, err := os.ReadDir(m.disk)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(m.disk, f.Name()))
			if err == nil {
				err = os.WriteFile(filepath.Join(next, f.Name()), b, 0o600)
			}
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
	m.machine.disk = next
}

// store opens a store like a new process.
func (m *process) store(p place) (store.Store, backend.Backend, backend.Services) {
	w := m.w
	t := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}} // without HTTP/2, which would register itself
	t.RegisterProtocol("http", wire{m, p.handler})
	t.RegisterProtocol("https", wire{m, p.handler})
	s := backend.Services{
		Dir: w.dir, Home: w.dir, Who: m.name, Version: "1.12.6", Env: sys.Env{}, Shared: new(backend.Shared), Transport: t, Run: sys.NoChildren,
		Now: func() time.Time { return time.Now().Add(m.skew) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			if d%(100*time.Millisecond) != 0 { // independent of jitter, so that only the seed decides
				d = time.Duration(1 + m.rng.IntN(2_000_000_000))
			}
			select {
			case <-time.After(d):
				return ctx.Err()
			case <-ctx.Done():
				return ctx.Err()
			case <-w.over:
				return errWire
			}
		},
		Token: func(context.Context, string) (string, error) { return "", nil },
		Service: func(_ context.Context, host, _ string) (*url.URL, error) {
			return url.Parse("https://" + host + "/api/v2/")
		},
	}
	b, err := p.kind.Open(w.t.Context(), backendtest.Config(w.t, p.kind, p.config), s)
	switch {
	case err != nil && (!m.calm && !w.healed.Load() || m.dead.Load()): // some kinds send requests when they are opened
		w.note("%s cannot open %s: %v", m.name, p.kind.Name, err)
		runtime.Goexit() // the process ends
	case err != nil:
		w.t.Fatal(err)
	}
	st, err := b.Store(store.Default, backend.StoreOptions{IgnoreVersion: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return st, b, s
}

func (m *process) options(p place) statemgr.Options {
	st, _, s := m.store(p)
	return statemgr.Options{
		Store: st, Journal: backend.JournalPath(st, m.disk, store.Default), Dir: m.disk, Segments: backend.BlobsOf(st), StateID: backend.StateID(st, store.Default),
		User: journal.User{Dir: m.w.dir}, Adopt: func(string, *journal.Recovered) diag.List { return nil }, // after a crash the disk is another directory
		KeepSegments: m.w.segments,
		Lock:         &store.LockInfo{Operation: "OperationTypeApply", Who: m.name, Created: s.Now()}, Timeout: time.Duration(m.rng.IntN(2)) * time.Minute,
	}
}

// start runs a function in a process on a machine, which may die at one of its requests. The
// result waits for the end of the process.
func (m *machine) start(f func(p *process)) (wait func()) {
	p := &process{machine: m, disk: m.disk, gone: make(chan struct{})}
	m.died.Store(false)
	if !m.w.healed.Load() && m.rng.IntN(3) == 0 {
		p.die = 1 + m.rng.IntN(40)
	}
	done := make(chan struct{})
	m.w.alive.Go(func() {
		defer close(done)
		f(p)
	})
	return func() {
		select {
		case <-done:
		case <-p.gone:
		}
	}
}

// plan reads the state, with or without the lock.
func (m *process) plan(p place) {
	o := m.options(p)
	if m.rng.IntN(2) == 0 {
		_, _ = statemgr.Read(m.w.t.Context(), o)
		return
	}
	h, ds := statemgr.Take(m.w.t.Context(), o)
	if !ds.HasErrors() {
		m.took()
		time.Sleep(time.Duration(1+m.rng.IntN(5_000)) * time.Millisecond)
		m.leaves()
		h.Release()
	}
}

// took records that the process holds the lock, which no other process may hold.
func (m *process) took() {
	w := m.w
	w.mu.Lock()
	other := w.holder
	w.holder = m
	w.mu.Unlock()
	if other != nil && other != m && !other.dead.Load() && w.expires {
		w.stolen.Store(true)
	}
	if other != nil && other != m && !other.dead.Load() && !w.stolen.Load() {
		w.mu.Lock()
		trace := strings.Join(w.trace, "\n")
		w.mu.Unlock()
		w.t.Errorf("seed %d: %s and %s hold the lock\n%s", w.seed, other.name, m.name, trace)
	}
	w.note("%s has the lock", m.name)
}

func (m *process) leaves() {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == m {
		w.holder = nil
	}
}

// apply creates objects like an apply.
func (m *process) apply(p place) {
	w, ctx := m.w, m.w.t.Context()
	o := m.options(p)
	h, ds := statemgr.Take(ctx, o)
	if ds.HasErrors() {
		w.note("%s cannot take the state: %s", m.name, ds[0].Summary)
		return
	}
	m.took()
	defer func() {
		m.leaves()
		h.Release()
	}()
	objects := 1 + m.rng.IntN(5)
	if ds := h.Start(ctx, objects, objects); ds.HasErrors() {
		w.note("%s cannot start: %s", m.name, ds[0].Summary)
		return
	}
	d := h.Current().Edit()
	var mine []string
	written := func(ds interface{ HasErrors() bool }) {
		if ds.HasErrors() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range mine {
			if a := w.known[name]; a != nil {
				a.safe = true
			}
		}
	}
	for i := range objects {
		m.made++
		name := fmt.Sprintf("%s_%d", m.name, m.made)
		if err := h.Begin(i, name, "create"); err != nil {
			w.note("%s cannot begin %s: %v", m.name, name, err)
			break // no further provider call
		}
		time.Sleep(time.Duration(1+m.rng.IntN(15_000)) * time.Millisecond) // the provider call
		if m.dead.Load() {
			return
		}
		if err := h.Answer(i, created(name)); err != nil {
			w.note("%s cannot note %s: %v", m.name, name, err)
			w.mu.Lock()
			w.known[name] = &answered{by: m.machine}
			w.mu.Unlock()
			d.Apply(created(name)[0])
			break
		}
		w.mu.Lock()
		w.known[name] = &answered{by: m.machine}
		w.mu.Unlock()
		w.note("%s: %s is answered", m.name, name)
		mine = append(mine, name)
		d.Apply(created(name)[0])
		if m.rng.IntN(2) == 0 {
			if err := h.Sync(); err != nil {
				w.note("%s cannot sync: %v", m.name, err)
				break
			}
			written(noErrors{})
		}
		if m.rng.IntN(3) == 0 {
			ds := h.Write(ctx, d.Freeze())
			written(ds)
			if d = d.Freeze().Edit(); ds.HasErrors() {
				w.note("%s cannot write: %s", m.name, ds[0].Detail)
			}
		}
	}
	final := d.Freeze()
	ds = h.Write(ctx, final)
	written(ds)
	more := h.End(final)
	if ds.HasErrors() || more.HasErrors() {
		w.note("%s ends with errors: %v %v", m.name, ds.Err(), more.Err())
	}
}

type noErrors struct{}

func (noErrors) HasErrors() bool { return false }

// migrate copies the state to the other store.
func (m *process) migrate() {
	w := m.w
	side := func(p place) migrate.Side {
		_, b, _ := m.store(p)
		return migrate.Side{Type: p.kind.Name, Backend: b}
	}
	res, ds := migrate.Run(w.t.Context(), migrate.Migration{
		From: side(w.stores[0]), To: side(w.stores[1]), Current: store.Default, Dir: m.disk, Temp: w.dir, Force: true,
		Lock: &store.LockInfo{Who: m.name, Created: time.Now()}, Timeout: time.Minute,
	})
	w.note("%s migrated %v: %v", m.name, res.Copied, ds.Err())
	if !ds.HasErrors() && !m.dead.Load() {
		w.stores[0], w.stores[1] = w.stores[1], w.stores[0]
		w.c.add("migrations", 1)
	}
}

// unlock releases the lock of any holder. If a store has two locks, they may have different
// holders.
func (w *simulation) unlock(p place) {
	op := &process{machine: &machine{w: w, name: "operator", rng: newRand(w.seed, 9)}, calm: true}
	for range 3 {
		st, _, _ := op.store(p)
		unlock, ds := st.Lock(w.t.Context(), store.LockInfo{Who: "operator"}, 0)
		if !ds.HasErrors() {
			unlock()
			return
		}
		if info, ok := ds[0].Extra.(*store.LockInfo); ok && info.ID != "" {
			w.note("the lock of %s is taken away", info.Who)
			w.mu.Lock()
			w.holder = nil
			w.mu.Unlock()
			backend.ForceUnlock(w.t.Context(), st, info.ID)
		}
	}
}

func (w *simulation) run() {
	a, b := w.machine("a", 1), w.machine("b", 2)
	for range 1 + w.rng.IntN(4) {
		m, other := a, b
		if w.rng.IntN(2) == 0 {
			m, other = b, a
		}
		p := w.stores[0]
		switch w.rng.IntN(6) {
		case 0:
			m.start(func(x *process) { x.plan(p) })()
		case 1:
			m.start((*process).migrate)()
		case 2, 3:
			m.start(func(x *process) { x.apply(p) })()
		default: // both at the same time
			first := m.start(func(x *process) { x.apply(p) })
			time.Sleep(time.Duration(w.rng.IntN(20_000)+1) * time.Millisecond)
			if w.rng.IntN(2) == 0 && !w.bare {
				w.stolen.Store(true)
				w.c.add("stolen locks", 1)
				w.unlock(p)
			}
			second := other.start(func(x *process) { x.apply(p) })
			first()
			second()
			w.c.add("runs at once", 1)
		}
		if m.died.Load() || other.died.Load() || w.rng.IntN(8) == 0 { // an operator releases the locks
			w.unlock(w.stores[0])
			w.unlock(w.stores[1])
		}
	}
	w.check(a, b)
	close(w.over)
	w.alive.Wait()
	time.Sleep(time.Minute) // background work of journals
}

// apart adds the objects in journals that a store keeps under another name.
func (w *simulation) apart(from statemgr.Segments, found map[string]bool) {
	if from == nil {
		return
	}
	names, err := from.ListBlobs(w.t.Context(), "journal-apart/")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		b, err := from.GetBlob(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		rec, err := journal.Parse(b, nil, "")
		if err != nil {
			w.fail("%s: %v", name, err)
		}
		w.c.add("journals kept apart", 1)
		for _, c := range rec.Changes {
			found[c.Object.Instance.Resource.Name] = true
		}
	}
}

// check removes all faults, lets every machine run once more, and compares the result with the
// providers' answers.
func (w *simulation) check(machines ...*machine) {
	w.healed.Store(true)
	found := map[string]bool{}
	add := func(s *state.State) {
		if s != nil {
			for a := range s.Resources {
				found[a.Resource.Name] = true
			}
		}
	}
	for _, m := range machines {
		x := &process{machine: m, disk: m.disk}
		for _, p := range w.stores {
			w.unlock(p)
			h, ds := statemgr.Take(w.t.Context(), x.options(p))
			if ds.HasErrors() {
				w.fail("%s cannot take the state of %s at the end: %v", m.name, p.kind.Name, ds.Err())
			}
			add(h.Current())
			h.Release()
			s, ds := x.options(p).Store.Read(w.t.Context())
			if ds.HasErrors() {
				w.fail("the state of %s cannot be read: %v", p.kind.Name, ds.Err())
			}
			add(s)
			w.apart(x.options(p).Segments, found)
		}
		files, _ := filepath.Glob(filepath.Join(m.disk, "*.tfstate")) // errored and replaced states
		for _, f := range files {
			w.c.add("errored.tfstate", 1)
			b, err := os.ReadFile(f)
			if err != nil {
				w.t.Fatal(err)
			}
			s, ds := statefile.Parse(f, b)
			if ds.HasErrors() {
				w.fail("%s: %v", f, ds.Err())
			}
			add(s)
		}
	}
	w.c.add("answers", len(w.known))
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		if !found[name] {
			w.fail("%s was answered and is lost (segments: %v, stores %s, %s)", name, w.segments, w.stores[0].kind.Name, w.stores[1].kind.Name)
		}
	}
}
