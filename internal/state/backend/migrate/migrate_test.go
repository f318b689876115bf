package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/inmem"
	"github.com/terrace-iac/terrace/internal/state/backend/local"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A cut backend fails from a certain call on, as if the program or the service ended there.
type cut struct {
	backend.Backend
	left     *int
	services backend.Services
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
	return backend.NewStore(cutObject{s.Object(), c}, s.Place(), o, c.services), nil
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

// shaped is a backend without workspaces, with one named workspace, or without a default
// workspace.
type shaped struct {
	backend.Backend
	single, noDefault bool
	sole              string
}

func (s shaped) List(ctx context.Context) ([]string, error) {
	names, err := s.Backend.List(ctx)
	if err == nil && s.single {
		return nil, backend.ErrNoWorkspaces
	}
	if s.noDefault {
		names = slices.DeleteFunc(names, func(n string) bool { return n == store.Default })
	}
	return names, err
}

func (s shaped) Sole() string     { return s.sole }
func (s shaped) HasDefault() bool { return !s.noDefault }

// Wherever a migration is interrupted, no state is lost, and running it again completes it. It
// covers one or many workspaces, to one, many, and backends with restricted names.
func TestCutOffAnywhere(t *testing.T) {
	for what, c := range map[string]struct {
		names []string
		to    shaped
		want  map[string]string // the final location of each state
	}{
		"one to one":               {[]string{"default"}, shaped{single: true}, map[string]string{"default": "default"}},
		"one to many":              {[]string{"default"}, shaped{}, map[string]string{"default": "default"}},
		"many to many":             {[]string{"default", "a", "b"}, shaped{}, map[string]string{"default": "default", "a": "a", "b": "b"}},
		"many to one":              {[]string{"default", "a", "b"}, shaped{single: true}, map[string]string{"a": "default"}},
		"one to a named one":       {[]string{"default"}, shaped{sole: "only", noDefault: true}, map[string]string{"default": "only"}},
		"many to a named one":      {[]string{"default", "a", "b"}, shaped{sole: "only", noDefault: true}, map[string]string{"a": "only"}},
		"one to many of names":     {[]string{"default"}, shaped{noDefault: true}, map[string]string{"default": "main"}},
		"many to many of names":    {[]string{"default", "a", "b"}, shaped{noDefault: true}, map[string]string{"default": "app-default", "a": "app-a", "b": "app-b"}},
		"without the default one":  {[]string{"a", "b"}, shaped{}, map[string]string{"a": "a", "b": "b"}},
		"two, and none of default": {[]string{"a", "b"}, shaped{noDefault: true}, map[string]string{"a": "app-a", "b": "app-b"}},
	} {
		t.Run(what, func(t *testing.T) {
			for n := 0; cutOffAt(t, n, c.names, c.to, c.want); n++ {
				if n > 200 {
					t.Fatal("never came to its end")
				}
			}
		})
	}
}

// cutOffAt interrupts a migration at a call and runs it again. It reports whether the migration
// was interrupted.
func cutOffAt(t *testing.T, n int, names []string, shape shaped, want map[string]string) bool {
	t.Helper()
	from := backendtest.Open(t, local.Kind(), backendtest.Place{Services: backendtest.Services(t)})
	to := backendtest.Open(t, inmem.Kind(), backendtest.Place{Services: backendtest.Services(t)})
	for i, name := range names {
		put(t, from, name, storetest.Sample(i+3))
	}
	left := n
	shape.Backend = cut{to, &left, backendtest.Services(t)}
	m := Migration{
		From: Side{Type: "local", Backend: from}, To: Side{Type: "inmem", Backend: shape},
		Current: names[len(names)/2], Dir: t.TempDir(), Temp: t.TempDir(), Lock: &store.LockInfo{},
		Ask: func(context.Context, Question) (bool, error) { return true, nil },
		Choose: func(_ context.Context, q Question) (string, error) {
			if q.Title == "Workspace name" {
				return "main", nil
			}
			return "app-*", nil
		},
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
		for _, name := range want {
			_ = backend.ForceUnlock(t.Context(), openStore(t, to, name), lockID(t, to, name))
		}
		if r, ds = Run(t.Context(), m); ds.HasErrors() {
			t.Fatalf("cut at %d, run again: %v", n, ds.Err())
		}
	}
	if ds := Clear(t.Context(), m, r); len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	for i, name := range names {
		target, ok := want[name]
		if !ok {
			continue
		}
		want := storetest.Sample(i + 3)
		if got := get(t, to, target); got == nil || !got.Equal(want) || got.Serial != want.Serial || got.Lineage != want.Lineage {
			t.Fatalf("cut at %d: the new place has another %s", n, target)
		}
	}
	if whole && (len(r.Copied) != len(want) || !get(t, from, r.Copied[0]).Empty()) {
		t.Errorf("%v", r)
	}
	return !whole
}

// A state that a migration replaces is kept in a file if it is not contained in the copy.
func TestReplacedIsKept(t *testing.T) {
	services := backendtest.Services(t)
	from := backendtest.Open(t, local.Kind(), backendtest.Place{Services: services})
	to := backendtest.Open(t, inmem.Kind(), backendtest.Place{Services: services})
	put(t, from, "default", storetest.Sample(2))
	old := storetest.Sample(5)
	put(t, to, "default", old.WithMeta("another", old.Serial, old.TerraformVersion))
	m := Migration{From: Side{Type: "local", Backend: from}, To: Side{Type: "inmem", Backend: to}, Current: "default", Dir: t.TempDir(), Temp: t.TempDir(), Force: true}
	_, ds := Run(t.Context(), m)
	raw, err := os.ReadFile(filepath.Join(m.Dir, "replaced.tfstate"))
	if ds.HasErrors() || len(ds) != 1 || !strings.Contains(ds[0].Detail, "replaced.tfstate") || err != nil {
		t.Fatalf("%v %v", ds, err)
	}
	if kept, ds := statefile.Parse("x", raw); ds.HasErrors() || kept.Lineage != "another" || !kept.Equal(old) {
		t.Errorf("%v %s", ds, raw)
	}
	if _, ds := Run(t.Context(), m); len(ds) != 0 {
		t.Errorf("again: %v", ds)
	}
}

func openStore(t *testing.T, b backend.Backend, workspace string) store.Store {
	st, err := b.Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// lockID returns the ID of the lock that a run left; "" for none.
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
