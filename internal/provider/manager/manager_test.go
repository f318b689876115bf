package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/provider/fake"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

var thing = addr.Provider{Host: "example.com", Namespace: "x", Type: "thing"}

// world is a source of providers that counts the starts.
type world struct {
	script  *fake.Script
	mu      sync.Mutex
	started []*instance
	dirs    []string
	schemas atomic.Int64
	fail    atomic.Bool
	slow    time.Duration
	gate    chan struct{} // starts wait for it; nil: they do not wait
	waiting atomic.Int64  // starts that are waiting
	failing atomic.Int64  // number of starts that fail, with this code
	code    string
	losing  atomic.Int64 // number of processes that end at a read
	memory  int64        // memory of each process; 0: unknown
}

// An instance can end unexpectedly, like a process.
type instance struct {
	*fake.Provider
	w       *world
	dead    atomic.Bool
	stopped atomic.Int64
	closed  atomic.Bool
	inside  atomic.Int64
	hold    chan struct{} // reads wait for it; nil: they do not wait
	memory  int64
}

func (i *instance) Ended() bool { return i.dead.Load() }

func (i *instance) Memory() int64 { return i.memory }

func (i *instance) Schema(ctx context.Context) (*schema.Provider, diag.List) {
	i.w.schemas.Add(1)
	return i.Provider.Schema(ctx)
}

func (i *instance) Read(ctx context.Context, req provider.ReadRequest) (provider.ReadResponse, diag.List) {
	i.inside.Add(1)
	if i.hold != nil {
		<-i.hold
	}
	if i.w.losing.Add(-1) >= 0 { // it ends before the call reaches it
		i.dead.Store(true)
		return provider.ReadResponse{}, diag.List{{Code: provider.CodeUnasked, Summary: "Provider ended", Detail: "It was gone."}}
	}
	if i.dead.Load() {
		return provider.ReadResponse{}, diag.Errorf("", nil, "Provider ended", "It is gone.")
	}
	return i.Provider.Read(ctx, req)
}

func (i *instance) Stop(context.Context) error {
	i.stopped.Add(1)
	return nil
}

func (i *instance) Close() error {
	i.closed.Store(true)
	return i.Provider.Close()
}

func newWorld() *world {
	block := &schema.Block{Attributes: map[string]*schema.Attribute{"name": {Type: cty.String, Optional: true}}}
	return &world{script: &fake.Script{
		Config:  block,
		Managed: map[string]*fake.Type{"thing": {Schema: &schema.Resource{Block: block}}},
	}}
}

func (w *world) running() []*instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.started), func(i *instance) bool { return i.closed.Load() })
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.started)
}

// A source is the view of one unit.
type source struct {
	*world
	path, dir string
	env       []string
	outside   bool
}

func (s source) Factory(addr.Provider) (provider.Factory, diag.List) {
	return func(ctx context.Context) (provider.Provider, diag.List) { return s.begin(ctx, "") }, nil
}

func (s source) Program(context.Context, addr.Provider) (Program, diag.List) {
	return Program{Path: s.path, Env: s.env, Dir: s.dir, Outside: s.outside, Start: s.begin}, nil
}

func (s source) begin(ctx context.Context, dir string) (provider.Provider, diag.List) {
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-ctx.Done():
		}
	}
	if s.gate != nil {
		s.waiting.Add(1)
		select {
		case <-s.gate:
		case <-ctx.Done():
		}
	}
	if s.failing.Add(-1) >= 0 {
		return nil, diag.List{{Code: s.code, Summary: "Provider could not be started", Detail: "It ended."}}
	}
	if s.fail.Load() || ctx.Err() != nil {
		return nil, diag.Errorf(diag.CodeProviderStart, nil, "Provider could not be started", "It does not want to.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &instance{Provider: s.script.New(), w: s.world, memory: s.memory}
	s.started, s.dirs = append(s.started, i), append(s.dirs, dir)
	return i, nil
}

func configOf(name string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
}

func must[T any](t *testing.T) func(v T, ds diag.List) T {
	return func(v T, ds diag.List) T {
		t.Helper()
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		return v
	}
}

func configured(t *testing.T, p *Pool, name string) provider.Provider {
	t.Helper()
	return must[provider.Provider](t)(p.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf(name)))
}

func read(t *testing.T, p provider.Provider) diag.List {
	t.Helper()
	_, ds := p.Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: configOf("a")})
	return ds
}

// Two pools share a process if and only if everything is equal.
func TestWhoShares(t *testing.T) {
	base := source{path: "/bin/thing", dir: "/a", env: []string{"HOME=/h", "KEY=1"}}
	for _, tt := range []struct {
		name        string
		change      func(*source)
		config      string
		indifferent bool
		want        int
	}{
		{"all equal", func(*source) {}, "x", false, 1},
		{"equal environments in two lists", func(s *source) { s.env = []string{"HOME=/h", "KEY=1"} }, "x", false, 1},
		{"other program", func(s *source) { s.path = "/bin/other" }, "x", false, 2},
		{"other configuration", func(*source) {}, "y", false, 2},
		{"other credentials", func(s *source) { s.env = []string{"HOME=/h", "KEY=2"} }, "x", true, 2},
		{"more environment", func(s *source) { s.env = []string{"HOME=/h", "KEY=1", "REGION="} }, "x", true, 2},
		{"a value that looks like two variables", func(s *source) { s.env = []string{"HOME=/h\nKEY=1"} }, "x", true, 2},
		{"other directory", func(s *source) { s.dir = "/b" }, "x", false, 2},
		{"other directory, which does not matter", func(s *source) { s.dir = "/b" }, "x", true, 1},
		{"not to be shared", func(s *source) { s.path = "" }, "x", true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			use := UsesDirectory
			if tt.indifferent {
				use = IgnoresDirectory
			}
			h := NewHost(Options{Dir: "/root", Sharing: sharing{use: use}})
			defer h.Close()
			h.Expect(2)
			one, two := base, base
			one.world, two.world = w, w
			tt.change(&two)
			a, b := h.New(one, "a"), h.New(two, "b")
			must[*schema.Provider](t)(a.Schema(t.Context(), thing))
			must[*schema.Provider](t)(b.Schema(t.Context(), thing))
			pa, pb := configured(t, a, "x"), configured(t, b, tt.config)
			if ds := append(read(t, pa), read(t, pb)...); ds.HasErrors() {
				t.Error(ds.Err())
			}
			if got := w.count(); got != tt.want {
				t.Errorf("%d processes, want %d", got, tt.want)
			}
			if tt.indifferent && two.path == base.path && !slices.Equal(w.dirs, slices.Repeat([]string{"/root"}, tt.want)) {
				t.Errorf("started in %v", w.dirs)
			}
			a.Close()
			if ds := read(t, pb); ds.HasErrors() {
				t.Errorf("after the other was closed: %v", ds.Err())
			}
			b.Close()
		})
	}
}

// Many concurrent units with the same configuration share one process, one schema and one
// configuration call.
func TestOneProcessForMany(t *testing.T) {
	w := newWorld()
	w.slow = time.Millisecond
	h := NewHost(Options{Dir: "/root", Sharing: sharing{use: IgnoresDirectory}})
	defer h.Close()
	const units = 200
	h.Expect(units)
	parallel.Each(units, 16, func(i int) {
		defer h.Done()
		p := h.New(source{world: w, path: "/bin/thing", dir: fmt.Sprint("/", i), env: []string{"A=b"}}, fmt.Sprint(i))
		defer p.Close()
		if _, ds := p.Schema(t.Context(), thing); ds.HasErrors() {
			t.Error(ds.Err())
		}
		prov, ds := p.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("x"))
		if ds.HasErrors() {
			t.Error(ds.Err())
			return
		}
		if ds := read(t, prov); ds.HasErrors() {
			t.Error(ds.Err())
		}
	})
	if w.count() != 1 || w.schemas.Load() != 1 {
		t.Errorf("%d processes, %d schemas read, want one of each", w.count(), w.schemas.Load())
	}
	n := 0
	for _, c := range w.script.Calls() {
		if c.Method == "Configure" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("configured %d times", n)
	}
	if len(w.running()) != 0 {
		t.Errorf("%d processes run after the last unit", len(w.running()))
	}
}

// Any process of the program can validate configurations, which does not configure it.
func TestValidationIsShared(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	for _, unit := range []string{"a", "b"} {
		p := h.New(source{world: w, path: "/bin/thing", dir: "/" + unit, env: []string{"KEY=" + unit}}, unit)
		defer p.Close()
		prov := must[provider.Provider](t)(p.Any(t.Context(), thing))
		if ds := prov.ValidateResource(t.Context(), addr.Managed, "thing", configOf("x")); ds.HasErrors() {
			t.Error(ds.Err())
		}
	}
	if w.count() != 1 {
		t.Errorf("%d processes for two checks", w.count())
	}
	p := h.New(source{world: w, path: "/bin/thing", dir: "/b", env: []string{"KEY=b"}}, "b")
	defer p.Close()
	configured(t, p, "x")
	if w.count() != 2 {
		t.Errorf("%d processes after one was configured with other credentials, want 2", w.count())
	}
}

// An upgrade needs no configuration, but must not run in a process that another unit
// configured.
func TestUpgradeIsNotShared(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	defer a.Close()
	defer b.Close()
	configured(t, a, "x")
	prov := must[provider.Provider](t)(b.Any(t.Context(), thing))
	if _, ds := prov.UpgradeState(t.Context(), provider.UpgradeRequest{Type: "thing", JSON: []byte(`{"name":"n"}`)}); ds.HasErrors() {
		t.Error(ds.Err())
	}
	if w.count() != 2 {
		t.Errorf("%d processes, want one with the configuration of another unit and one without", w.count())
	}
}

// If a start fails, or the units that waited for it are interrupted, the next unit starts a
// process again.
func TestStartFails(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	w.fail.Store(true)
	if _, ds := a.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("x")); !ds.HasErrors() {
		t.Error("no error")
	}
	if _, ds := a.Schema(t.Context(), thing); !ds.HasErrors() {
		t.Error("no error")
	}
	w.fail.Store(false)
	must[*schema.Provider](t)(a.Schema(t.Context(), thing))
	configured(t, b, "x")

	w.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	gave := make(chan diag.List)
	go func() {
		_, ds := a.Configured(ctx, addr.ProviderConfig{Provider: thing}, configOf("z"))
		gave <- ds
	}()
	until(func() bool { return w.waiting.Load() == 1 })
	got := make(chan diag.List)
	go func() {
		_, ds := b.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("z"))
		got <- ds
	}()
	until(func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(b.used) == 2
	})
	cancel()
	if ds := <-gave; !ds.HasErrors() {
		t.Error("the one who gave up has no error")
	}
	close(w.gate)
	if ds := <-got; ds.HasErrors() {
		t.Errorf("the one who waited for it: %v", ds.Err())
	}
}

// noticed is a context that reports whether another goroutine waits for its end too.
type noticed struct {
	context.Context
	asked atomic.Bool
}

func (n *noticed) Done() <-chan struct{} {
	n.asked.Store(true)
	return n.Context.Done()
}

// until waits until ok returns true.
func until(ok func() bool) {
	for !ok() {
		time.Sleep(time.Millisecond)
	}
}

// Interrupting a unit that waits for a start is not a failure of the provider.
func TestWaitForStartInterrupted(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	w.gate = make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = a.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("x")) })
	until(func() bool { return w.waiting.Load() == 1 })
	over, end := context.WithCancel(t.Context())
	end()
	_, ds := b.Configured(over, addr.ProviderConfig{Provider: thing}, configOf("x"))
	if len(ds) != 1 || ds[0].Code != provider.CodeInterrupted || !strings.Contains(ds[0].Detail, "example.com/x/thing") {
		t.Errorf("messages %v", ds.Err())
	}
	close(w.gate)
	wg.Wait()
}

// Each unit gets messages of its own about a rejected configuration.
func TestConfigureFails(t *testing.T) {
	w := newWorld()
	w.script.Configure = func(cty.Value) diag.List { return diag.Errorf("", nil, "No", "Not like this.") }
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	var messages []*diag.Message
	for _, name := range []string{"a", "b"} {
		p := h.New(s, name)
		defer p.Close()
		_, ds := p.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("x"))
		messages = append(messages, ds.Errors()...)
	}
	if len(messages) != 2 || messages[0] == messages[1] {
		t.Errorf("messages %v", messages)
	}
	if n := len(w.running()); n != 0 {
		t.Errorf("%d processes run that are of no use", n)
	}
}

// The number of calls is limited over all pools, which take turns.
func TestCallsOfTheWhole(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{Calls: 1})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	defer a.Close()
	defer b.Close()
	pa, pb := configured(t, a, "x"), configured(t, b, "x")
	inst := w.running()[0]
	inst.hold = make(chan struct{})
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	ended := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(order)
	}
	call := func(p provider.Provider, name string) {
		ctx := &noticed{Context: t.Context()}
		wg.Go(func() {
			_, _ = p.Read(ctx, provider.ReadRequest{Type: "thing", Prior: configOf("a")})
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
		})
		until(func() bool { return ctx.asked.Load() || inst.inside.Load() == 1 && name == "first" })
	}
	call(pa, "first")
	for range 4 {
		call(pa, "a")
	}
	call(pb, "b")
	for i := range 6 {
		inst.hold <- struct{}{}
		until(func() bool { return ended() == i+1 })
	}
	wg.Wait()
	if want := []string{"first", "a", "b", "a", "a", "a"}; !slices.Equal(order, want) {
		t.Errorf("calls were made in the order %v, want %v", order, want)
	}
}

// A pool from New shares nothing, and keeps its processes until it is closed.
func TestAlone(t *testing.T) {
	w := newWorld()
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	p := New(s)
	must[*schema.Provider](t)(p.Schema(t.Context(), thing))
	one := configured(t, p, "x")
	must[*schema.Provider](t)(p.Schema(t.Context(), thing))
	if two := configured(t, p, "x"); one != two || w.count() != 1 || w.schemas.Load() != 1 {
		t.Errorf("%d processes, %d schemas", w.count(), w.schemas.Load())
	}
	q := New(s)
	configured(t, q, "x")
	if w.count() != 2 {
		t.Errorf("two pools of their own have %d processes", w.count())
	}
	p.Stop(t.Context())
	p.Close()
	q.Close()
	if w.started[0].stopped.Load() != 1 || w.started[1].stopped.Load() != 0 || len(w.running()) != 0 {
		t.Errorf("%d and %d stops, %d run", w.started[0].stopped.Load(), w.started[1].stopped.Load(), len(w.running()))
	}
	if _, ds := p.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("y")); !ds.HasErrors() {
		t.Error("a closed pool starts providers")
	}
}

// Configuring a provider is a call, and waits for its turn.
func TestConfigureWaitsForItsTurn(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{Calls: 1})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	defer a.Close()
	defer b.Close()
	pa := configured(t, a, "x")
	inst := w.running()[0]
	inst.hold = make(chan struct{})
	read := make(chan diag.List)
	go func() {
		_, ds := pa.Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: configOf("a")})
		read <- ds
	}()
	until(func() bool { return inst.inside.Load() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	late := &noticed{Context: ctx}
	got := make(chan diag.List)
	go func() {
		_, ds := b.Configured(late, addr.ProviderConfig{Provider: thing}, configOf("y"))
		got <- ds
	}()
	until(func() bool { return w.count() == 2 && late.asked.Load() })
	cancel() // interrupted while it waits
	if ds := <-got; !ds.HasErrors() {
		t.Error("a provider was configured out of turn")
	}
	go func() {
		_, ds := b.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("y"))
		got <- ds
	}()
	close(inst.hold)
	if ds := append(<-read, <-got...); ds.HasErrors() {
		t.Error(ds.Err())
	}
	n := 0
	for _, c := range w.script.Calls() {
		if c.Method == "Configure" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("configured %d times", n)
	}
}
