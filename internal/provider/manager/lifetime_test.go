package manager

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/provider"
)

// If a process ends, running calls fail for their own units. Other units get a new process
// with the same configuration.
func TestCrash(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(3)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	defer b.Close()
	pa, pb := configured(t, a, "x"), configured(t, b, "x")
	first := w.running()[0]
	first.hold = make(chan struct{})
	failed := make(chan diag.List)
	go func() {
		_, ds := pa.Read(t.Context(), provider.ReadRequest{Type: "thing", Prior: configOf("a")})
		failed <- ds
	}()
	for first.inside.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	first.dead.Store(true)
	close(first.hold)
	if ds := <-failed; !ds.HasErrors() {
		t.Error("the call in flight did not fail")
	}
	if ds := read(t, pb); ds.HasErrors() {
		t.Errorf("another unit: %v", ds.Err())
	}
	if ds := read(t, pa); !ds.HasErrors() {
		t.Error("the unit whose call failed goes on with a fresh process")
	}
	c := h.New(s, "c")
	defer c.Close()
	if ds := read(t, configured(t, c, "x")); ds.HasErrors() {
		t.Errorf("a new unit: %v", ds.Err())
	}
	a.Close()
	if w.count() != 2 || len(w.running()) != 1 {
		t.Errorf("%d processes started, %d run", w.count(), len(w.running()))
	}
}

// A call that did not reach its process is repeated on a new one, but only a few times.
func TestUnasked(t *testing.T) {
	for lost, want := range []bool{true, true, true, false} {
		w := newWorld()
		h := NewHost(Options{})
		defer h.Close()
		h.Expect(1)
		p := h.New(source{world: w, path: "/bin/thing", dir: "/a"}, "a")
		defer p.Close()
		prov := configured(t, p, "x")
		w.losing.Store(int64(lost))
		if ds := read(t, prov); ds.HasErrors() == want {
			t.Errorf("%d processes ended before they were asked: %v", lost, ds.Err())
		}
		if n := w.count(); n != min(lost, mostTries-1)+1 {
			t.Errorf("%d processes were started, %d ended before they were asked", n, lost)
		}
	}
}

// A unit that waits for a process that ends during its start or configuration gets another
// process. A process that is too slow to start is not started again.
func TestEndsWhenStarted(t *testing.T) {
	for _, tt := range []struct {
		code string
		want int
	}{{"", 1}, {provider.CodeSlow, 2}} {
		w := newWorld()
		w.gate = make(chan struct{})
		h := NewHost(Options{})
		defer h.Close()
		h.Expect(2)
		s := source{world: w, path: "/bin/thing", dir: "/a"}
		a, b := h.New(s, "a"), h.New(s, "b")
		w.code = tt.code
		w.failing.Store(1)
		got := make(chan diag.List)
		start := func(p *Pool) {
			go func() {
				_, ds := p.Configured(t.Context(), addr.ProviderConfig{Provider: thing}, configOf("x"))
				got <- ds
			}()
			until(func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return len(p.used) == 1
			})
		}
		start(a)
		start(b)
		until(func() bool { return w.waiting.Load() == 1 })
		close(w.gate)
		failed := 0
		for range 2 {
			if ds := <-got; ds.HasErrors() {
				failed++
			}
		}
		if failed != tt.want {
			t.Errorf("code %q: %d units failed, want %d", tt.code, failed, tt.want)
		}
	}
}

// Stop reaches a process when all its users are stopping. The process gets no new users.
func TestStop(t *testing.T) {
	for _, outside := range []bool{false, true} {
		w := newWorld()
		h := NewHost(Options{})
		h.Expect(3)
		s := source{world: w, path: "/bin/thing", dir: "/a", outside: outside}
		a, b := h.New(s, "a"), h.New(s, "b")
		configured(t, a, "x")
		other := "x"
		if outside {
			other = "y" // another connection to the same process
		}
		pb := configured(t, b, other)
		a.Stop(t.Context())
		for _, i := range w.running() {
			if i.stopped.Load() != 0 {
				t.Fatal("a process was stopped that another unit uses")
			}
		}
		if ds := read(t, pb); ds.HasErrors() {
			t.Error(ds.Err())
		}
		b.Stop(t.Context())
		b.Stop(t.Context())
		n := int64(0)
		for _, i := range w.running() {
			n += i.stopped.Load()
		}
		if n != 1 {
			t.Errorf("outside %v: stopped %d times after all are stopping", outside, n)
		}
		if !outside {
			c := h.New(s, "c")
			configured(t, c, "x")
			if w.count() != 2 {
				t.Errorf("a new unit got the process that was told to stop")
			}
		}
		a.Close()
		b.Close()
		h.Close()
		if len(w.running()) != 0 {
			t.Errorf("%d processes run", len(w.running()))
		}
	}
}

// A unit that closes its pool may have been the last one that kept a process from being
// stopped.
func TestStopWhenTheOtherLeaves(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	a, b := h.New(s, "a"), h.New(s, "b")
	defer a.Close()
	configured(t, a, "x")
	configured(t, b, "x")
	a.Stop(t.Context())
	b.Close()
	if got := w.running()[0].stopped.Load(); got != 1 {
		t.Errorf("stopped %d times", got)
	}
}

// While units are still expected, unused processes are kept if they are few or small.
// Afterwards all of them end.
func TestIdle(t *testing.T) {
	for memory, kept := range map[int64]int{0: keptIdle, 2 * idleMemory: keptIdle, idleMemory / 20: 20, idleMemory / 1000: 30} {
		w := newWorld()
		w.memory = memory
		h := NewHost(Options{Dir: "/root", Sharing: sharing{use: IgnoresDirectory}})
		defer h.Close()
		const units = 30
		h.Expect(units)
		for i := range units {
			p := h.New(source{world: w, path: "/bin/thing", env: []string{fmt.Sprint("KEY=", i)}}, "")
			configured(t, p, "x")
			p.Close()
			if n := len(w.running()); n != min(i+1, kept) {
				t.Fatalf("%d processes run that nobody uses after %d units, each with a memory of %d", n, i+1, memory)
			}
			if i < units-1 {
				h.Done()
			}
		}
		p := h.New(source{world: w, path: "/bin/thing", env: []string{fmt.Sprint("KEY=", units-kept)}}, "")
		configured(t, p, "x")
		p.Close()
		if w.count() != units {
			t.Error("the longest unused of those that are kept was not to be had")
		}
		h.Done()
		if n := len(w.running()); n != 0 {
			t.Errorf("%d processes run after the last unit", n)
		}
	}
}

// sharing describes providers that are all alike.
type sharing struct {
	use       DirectoryUse
	needed    func() bool                 // nil means always
	separated func(unit, argument string) // nil means that nobody wants to know
}

func (s sharing) Directory(addr.Provider) DirectoryUse { return s.use }

func (s sharing) Separated(unit string, _ addr.Provider, argument string) {
	if s.separated != nil {
		s.separated(unit, argument)
	}
}

func (s sharing) Needed(addr.Provider) bool { return s.needed == nil || s.needed() }

func (sharing) CallsOf(addr.Provider) int { return 0 }

// A process ends when the last unit is done that can need its provider.
func TestNoLongerNeeded(t *testing.T) {
	w := newWorld()
	var needed atomic.Bool
	needed.Store(true)
	h := NewHost(Options{
		Dir: "/root", Sharing: sharing{use: IgnoresDirectory, needed: needed.Load},
	})
	defer h.Close()
	h.Expect(3)
	s := source{world: w, path: "/bin/thing", dir: "/a"}
	use := func(name string) {
		p := h.New(s, name)
		configured(t, p, "x")
		p.Close()
		h.Done()
	}
	use("a")
	if n := len(w.running()); n != 1 {
		t.Errorf("%d processes run while a unit that needs them is to come", n)
	}
	needed.Store(false)
	use("b")
	if n := len(w.running()); n != 0 {
		t.Errorf("%d processes run while a unit is to come that does not need them", n)
	}
	needed.Store(true)
	use("c")
	if w.count() != 2 {
		t.Errorf("%d processes were started, want one and, for a unit that needs it against all expectations, another", w.count())
	}
}

// A configured process that depends on the directory of its unit ends with the unit.
func TestBoundToItsFolder(t *testing.T) {
	w := newWorld()
	h := NewHost(Options{})
	defer h.Close()
	h.Expect(2)
	p := h.New(source{world: w, path: "/bin/thing", dir: "/a"}, "a")
	configured(t, p, "x")
	p.Close()
	if n := len(w.running()); n != 0 {
		t.Errorf("%d processes run after their unit", n)
	}
}
