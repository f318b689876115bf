package backend_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/inmem"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

var runs = flag.Int("faults", 60, "how many random runs with faults there are")

var errService = errors.New("the service failed")

// A faulty object fails at random: before or after it did something.
type faulty struct {
	backend.Object
	rng  *rand.Rand
	rate float64 // fraction of calls that fail
	// blind hides versions and the holder of the lock, so that the store must compare by
	// reading.
	blind bool
}

func (f *faulty) before() error {
	if f.rng.Float64() < f.rate/2 {
		return errService
	}
	return nil
}

func (f *faulty) Read(ctx context.Context) (backend.Payload, error) {
	if err := f.before(); err != nil {
		return backend.Payload{}, err
	}
	p, err := f.Object.Read(ctx)
	if f.blind {
		p.Version = ""
	}
	return p, err
}

func (f *faulty) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	if err := f.before(); err != nil {
		return "", err
	}
	if f.blind {
		prior, lock = backend.Prior{Unknown: true}, ""
	}
	v, err := f.Object.Write(ctx, data, prior, lock)
	if err == nil && f.before() != nil {
		return "", errService // after writing
	}
	if f.blind {
		v = ""
	}
	return v, err
}

func (f *faulty) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	if err := f.before(); err != nil {
		return "", err
	}
	return f.Object.Lock(ctx, info)
}

func (f *faulty) Unlock(ctx context.Context, id string) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.Object.Unlock(ctx, id)
}

// A world is one state on a service and two machines that work on it.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	services backend.Services
	blind    bool
	rate     float64
	known    map[string]bool // objects that providers answered
}

// run describes the work of a machine on the state: it creates a number of objects, and an
// event may happen in the middle. killed means that it is killed before the end.
type run struct {
	dir     string
	name    string
	objects int
	meddle  func()
	killed  bool
}

func (w *world) store() store.Store {
	b, err := inmem.Kind().Open(w.t.Context(), backendtest.Config(w.t, inmem.Kind(), nil), w.services)
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := b.Store("", backend.StoreOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	o := &faulty{st.(*backend.Store).Object(), w.rng, w.rate, w.blind}
	return backend.NewStore(o, "test", backend.StoreOptions{}, w.services)
}

func (w *world) options(r run) statemgr.Options {
	return statemgr.Options{
		Store: w.store(), Journal: filepath.Join(r.dir, "journal"), Dir: r.dir, User: journal.User{Dir: filepath.Join(r.dir, "user")},
		Lock: &store.LockInfo{Operation: "OperationTypeApply", Who: r.name, Created: time.Unix(1, 0)},
	}
}

func created(name string) []state.Change {
	return []state.Change{{
		Object:   addr.Object{Instance: addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: name}}},
		Provider: addr.ProviderConfig{Provider: addr.BuiltIn}, New: &state.Object{JSON: []byte(`{"id":"x"}`)},
	}}
}

// apply creates objects like an apply.
func (w *world) apply(r run) {
	h, ds := statemgr.Take(w.t.Context(), w.options(r))
	if ds.HasErrors() {
		return
	}
	defer h.Release()
	if h.Start(w.t.Context(), r.objects, r.objects).HasErrors() {
		return
	}
	d := h.Current().Edit()
	at := w.rng.IntN(r.objects + 1)
	for i := range r.objects {
		if i == at && r.meddle != nil {
			r.meddle()
		}
		name := fmt.Sprintf("%s_%d", r.name, i)
		if h.Begin(i, name, "create") != nil || h.Answer(i, created(name)) != nil {
			w.t.Fatal("the journal on this machine failed")
		}
		w.known[name] = true
		d.Apply(created(name)[0])
		if w.rng.IntN(3) == 0 {
			h.Write(w.t.Context(), d.Freeze())
			d = d.Freeze().Edit()
		}
	}
	if r.killed {
		h.Abandon()
		return
	}
	final := d.Freeze()
	h.Write(w.t.Context(), final)
	h.End(final)
}

// unlock releases the lock of any holder, like force-unlock.
func (w *world) unlock() {
	rate := w.rate
	w.rate = 0
	defer func() { w.rate = rate }()
	st := w.store()
	unlock, ds := st.Lock(w.t.Context(), store.LockInfo{}, 0)
	if !ds.HasErrors() {
		unlock()
		return
	}
	if info, ok := ds[0].Extra.(*store.LockInfo); ok {
		backend.ForceUnlock(w.t.Context(), st, info.ID)
	}
}

// found returns the objects in the store and in the files of the machines.
func (w *world) found(dirs ...string) map[string]bool {
	w.rate = 0
	out := map[string]bool{}
	add := func(s *state.State) {
		if s == nil {
			return
		}
		for a := range s.Resources {
			out[a.Resource.Name] = true
		}
	}
	for i, dir := range dirs { // journals are merged into the state, or saved to a file
		w.unlock()
		h, ds := statemgr.Take(w.t.Context(), w.options(run{dir: dir, name: fmt.Sprintf("look%d", i)}))
		if ds.HasErrors() {
			w.t.Fatal(ds.Err())
		}
		add(h.Current())
		h.Release()
		files, _ := filepath.Glob(filepath.Join(dir, "errored*.tfstate"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				w.t.Fatal(err)
			}
			s, ds := statefile.Parse(f, b)
			if ds.HasErrors() {
				w.t.Fatal(ds.Err())
			}
			add(s)
		}
	}
	s, ds := w.store().Read(w.t.Context())
	if ds.HasErrors() {
		w.t.Fatal(ds.Err())
	}
	add(s)
	return out
}

// Whatever fails, and even if the lock is taken away and another machine works on the state:
// every answered object is in the state, in a journal that is merged into it, or in
// errored.tfstate. The writes of another run are not overwritten.
func TestNothingIsLost(t *testing.T) {
	stolen, killed, answered := 0, 0, 0
	for seed := range *runs {
		w := &world{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 1)), services: backendtest.Services(t), known: map[string]bool{}}
		w.services.Sleep = func(context.Context, time.Duration) error { return nil }
		w.blind, w.rate = seed%2 == 0, 0.2*w.rng.Float64()
		a, b := t.TempDir(), t.TempDir()
		r := run{dir: a, name: "a", objects: 1 + w.rng.IntN(6), killed: w.rng.IntN(3) == 0}
		if w.rng.IntN(2) == 0 {
			stolen++
			r.meddle = func() {
				w.unlock()
				w.apply(run{dir: b, name: "b", objects: 1 + w.rng.IntN(3)})
				if w.rng.IntN(2) == 0 {
					w.unlock()
				}
			}
		}
		if r.killed {
			killed++
		}
		w.apply(r)
		w.unlock()
		w.apply(run{dir: b, name: "c", objects: 1 + w.rng.IntN(3)})
		found := w.found(a, b)
		answered += len(w.known)
		for name := range w.known {
			if !found[name] {
				t.Fatalf("seed %d (blind %v): %s was created and is lost", seed, w.blind, name)
			}
		}
	}
	t.Logf("%d runs, %d with the lock taken away, %d killed, %d answers, none lost", *runs, stolen, killed, answered)
}
