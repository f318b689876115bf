package migrate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/backend/inmem"
	"github.com/terrace-iac/terrace/internal/backend/local"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/terrace-iac/terrace/state"
)

// A cut backend fails from a certain call on, as if the program or the service ended
// there.
type cut struct {
	backend.Backend
	left *int
}

var errCut = errors.New("cut off")

func (c cut) call() error {
	if *c.left--; *c.left < 0 {
		return errCut
	}
	return nil
}

func (c cut) List(ctx context.Context) ([]string, error) {
	if err := c.call(); err != nil {
		return nil, err
	}
	return c.Backend.List(ctx)
}

func (c cut) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	st, err := c.Backend.Store(workspace, o)
	if err != nil {
		return nil, err
	}
	s, ok := st.(*backend.Store)
	if !ok {
		return st, nil
	}
	return backend.NewStore(cutObject{s.Object(), c}, s.Place(), o, backendtest.Services(&testing.T{})), nil
}

type cutObject struct {
	backend.Object
	c cut
}

func (o cutObject) Read(ctx context.Context) (backend.Payload, error) {
	if err := o.c.call(); err != nil {
		return backend.Payload{}, err
	}
	return o.Object.Read(ctx)
}

func (o cutObject) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	if err := o.c.call(); err != nil {
		return "", err
	}
	return o.Object.Write(ctx, data, prior, lock)
}

func put(t *testing.T, b backend.Backend, workspace string, st *state.State) {
	t.Helper()
	s, err := b.Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ds := s.Write(t.Context(), st); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
}

func get(t *testing.T, b backend.Backend, workspace string) *state.State {
	t.Helper()
	s, err := b.Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st, ds := s.Read(t.Context())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return st
}

// Wherever a migration is cut off, no state is lost, and running it again ends it.
func TestCutOffAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		if n > 200 {
			t.Fatal("never came to its end")
		}
		from := backendtest.Open(t, local.Kind(), backendtest.Place{Services: backendtest.Services(t)})
		to := backendtest.Open(t, inmem.Kind(), backendtest.Place{Services: backendtest.Services(t)})
		names := []string{"default", "a", "b"}
		for i, name := range names {
			put(t, from, name, storetest.Sample(i+3))
		}
		left := n
		m := Migration{
			From: Side{Type: "local", Backend: from}, To: Side{Type: "inmem", Backend: cut{to, &left}},
			Current: "a", Dir: t.TempDir(), Temp: t.TempDir(), Force: true, Lock: &store.LockInfo{},
		}
		r, ds := Run(t.Context(), m)
		for i, name := range names {
			if got := get(t, from, name); !got.Equal(storetest.Sample(i + 3)) {
				t.Fatalf("cut at %d: the old place lost %s", n, name)
			}
		}
		whole := !ds.HasErrors()
		if !whole {
			left = 1 << 30
			for _, name := range []string{"default", "a", "b"} {
				_ = backend.ForceUnlock(t.Context(), openStore(t, to, name), lockID(t, to, name))
			}
			if r, ds = Run(t.Context(), m); ds.HasErrors() {
				t.Fatalf("cut at %d, run again: %v", n, ds.Err())
			}
		}
		m.To.Backend = to
		if ds := Vacate(t.Context(), m, r); len(ds) > 0 {
			t.Fatal(ds.Err())
		}
		for i, name := range names {
			want := storetest.Sample(i + 3)
			if got := get(t, to, name); got == nil || !got.Equal(want) || got.Serial != want.Serial || got.Lineage != want.Lineage {
				t.Fatalf("cut at %d: the new place has another %s", n, name)
			}
		}
		if whole {
			if len(r.Copied) != 3 || !get(t, from, "a").Empty() {
				t.Errorf("%v", r)
			}
			return
		}
	}
}

func openStore(t *testing.T, b backend.Backend, workspace string) store.Store {
	st, err := b.Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// lockID is the ID of the lock that a run left, "" for none.
func lockID(t *testing.T, b backend.Backend, workspace string) string {
	st := openStore(t, b, workspace)
	unlock, ds := st.Lock(t.Context(), store.LockInfo{}, 0)
	if !ds.HasErrors() {
		unlock()
		return ""
	}
	return ds[0].Extra.(*store.LockInfo).ID
}

func TestQuestions(t *testing.T) {
	services := backendtest.Services(t)
	from := backendtest.Open(t, local.Kind(), backendtest.Place{Services: services})
	to := backendtest.Open(t, inmem.Kind(), backendtest.Place{Services: services})
	put(t, from, "default", storetest.Sample(2))
	asked := 0
	m := Migration{
		From: Side{Type: "local", Backend: from}, To: Side{Type: "inmem", Backend: to}, Current: "default", Dir: t.TempDir(), Temp: t.TempDir(),
		Ask: func(context.Context, Question) (bool, error) { asked++; return asked > 1, nil },
	}
	if r, ds := Run(t.Context(), m); ds.HasErrors() || len(r.Copied) != 0 || get(t, to, "default") != nil {
		t.Errorf("no: %v %v", r, ds.Err())
	}
	if r, ds := Run(t.Context(), m); ds.HasErrors() || fmt.Sprint(r.Copied) != "[default]" {
		t.Errorf("yes: %v %v", r, ds.Err())
	}
	if r, ds := Run(t.Context(), m); ds.HasErrors() || len(r.Copied) != 0 || asked != 2 {
		t.Errorf("again: %v %v, asked %d times", r, ds.Err(), asked)
	}
	m.Ask = nil
	put(t, from, "default", storetest.Sample(5))
	if _, ds := Run(t.Context(), m); !ds.HasErrors() {
		t.Error("copied over another state without a question")
	}
}
