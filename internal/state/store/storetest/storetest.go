// Package storetest is the test suite that every kind of store must pass.
//
// Main function: Run. The one rule: the tests of a store only test behaviour that other stores do
// not have.
package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// A Place is an empty location for state, created for one test.
type Place struct {
	// Open opens the state of a workspace; "" means the default one. Each call returns a new
	// Store, which behaves like another run.
	Open func(workspace string) store.Store
	// Workspaces is nil if the kind of store has none.
	Workspaces store.Workspaces
	// Locks means that the store can lock. Otherwise Lock must succeed and do nothing.
	Locks bool
	// Anonymous means that a lock does not contain its holder.
	Anonymous bool
	// Small means that the store cannot store some megabytes.
	Small bool
}

// Run runs the suite. place returns a new Place for each test.
func Run(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"nothing there yet is nil":            nothing,
		"what was written is read":            roundTrip,
		"an empty state is not nil":           empty,
		"write replaces all":                  replaced,
		"a large state":                       large,
		"readers see whole states":            whole,
		"a second lock is refused":            refused,
		"a lock is free after unlock":         free,
		"unlock twice does no harm":           twice,
		"a waiting lock is granted":           granted,
		"waiting ends with the context":       canceled,
		"one of many gets the lock":           contended,
		"reading needs no lock":               unlocked,
		"writing under the lock keeps it":     kept,
		"a lock leaves no state behind":       traceless,
		"workspaces are created and listed":   listed,
		"workspaces have states of their own": separate,
		"workspaces are deleted":              deleted,
		"workspace names are checked":         named,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

// Sample returns a state with n resources and serial n+1.
func Sample(n int) *state.State {
	d := (&state.State{Lineage: "6f2c1d3e-0000-4000-8000-000000000000", Serial: uint64(n) + 1}).Edit()
	d.SetOutput("n", &state.Output{Value: cty.NumberIntVal(int64(n))})
	d.SetOutput("secret", &state.Output{Value: cty.StringVal("<s3cret>"), Sensitive: true})
	for i := range n {
		a := addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: "x"}, Key: addr.Int(i)}
		d.Apply(state.Change{
			Object:   addr.Object{Instance: a},
			Provider: addr.ProviderConfig{Provider: addr.BuiltIn},
			New:      &state.Object{JSON: []byte(`{"id":"` + strings.Repeat("x", 36) + `","input":null,"output":null,"triggers_replace":null}`)},
		})
	}
	return d.Freeze()
}

func fatal(t *testing.T, ds diag.List) {
	t.Helper()
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, s store.Store, st *state.State) {
	t.Helper()
	fatal(t, s.Write(context.Background(), st))
}

func expect(t *testing.T, s store.Store, want *state.State) {
	t.Helper()
	got, ds := s.Read(context.Background())
	fatal(t, ds)
	if (got == nil) != (want == nil) {
		t.Fatalf("the state is nil: %v, want %v", got == nil, want == nil)
	}
	if want == nil {
		return
	}
	if !got.Equal(want) || got.Serial != want.Serial || got.Lineage != want.Lineage {
		t.Fatalf("read serial %d with %d resources, want serial %d with %d", got.Serial, len(got.Resources), want.Serial, len(want.Resources))
	}
}

// expectEmpty checks that a new workspace has no state or an empty one.
func expectEmpty(t *testing.T, s store.Store) {
	t.Helper()
	got, ds := s.Read(context.Background())
	fatal(t, ds)
	if !got.Empty() {
		t.Fatalf("a new workspace has %d resources", len(got.Resources))
	}
}

func lock(t *testing.T, s store.Store, timeout time.Duration) func() {
	t.Helper()
	unlock, ds := s.Lock(context.Background(), store.LockInfo{Operation: "test", Who: "me@here"}, timeout)
	fatal(t, ds)
	return func() {
		t.Helper()
		fatal(t, unlock())
	}
}

func mustRefuse(t *testing.T, p Place) {
	t.Helper()
	s := p.Open("")
	unlock, ds := s.Lock(context.Background(), store.LockInfo{Operation: "test", Who: "other@there"}, 0)
	if !ds.HasErrors() {
		fatal(t, unlock())
		t.Fatal("the lock was granted twice")
	}
	if unlock != nil {
		t.Error("a lock that was refused has something to unlock")
	}
	m := ds.Errors()[0]
	if m.Summary != "Error acquiring the state lock" {
		t.Errorf("summary %q", m.Summary)
	}
	if p.Anonymous {
		return
	}
	if info, ok := m.Extra.(*store.LockInfo); !ok || info.Who != "me@here" || info.ID == "" {
		t.Errorf("the message does not tell who has the lock: %v", m.Extra)
	}
	if !strings.Contains(m.Detail, "me@here") {
		t.Errorf("the detail does not tell who has the lock: %s", m.Detail)
	}
}

func nothing(t *testing.T, p Place) { expect(t, p.Open(""), nil) }

func roundTrip(t *testing.T, p Place) {
	write(t, p.Open(""), Sample(3))
	expect(t, p.Open(""), Sample(3))
}

func empty(t *testing.T, p Place) {
	st := &state.State{Lineage: "l", Serial: 4}
	write(t, p.Open(""), st)
	expect(t, p.Open(""), st)
}

func replaced(t *testing.T, p Place) {
	s := p.Open("")
	for _, n := range []int{5, 1, 0, 7} {
		write(t, s, Sample(n))
		expect(t, s, Sample(n))
		expect(t, p.Open(""), Sample(n))
	}
}

func large(t *testing.T, p Place) {
	if p.Small {
		t.Skip("this kind of store holds small states only")
	}
	write(t, p.Open(""), Sample(20000))
	expect(t, p.Open(""), Sample(20000))
}

func whole(t *testing.T, p Place) {
	s := p.Open("")
	write(t, s, Sample(100))
	unlock := lock(t, s, 0)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			r := p.Open("")
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, ds := r.Read(context.Background())
				if ds.HasErrors() || got == nil || uint64(len(got.Resources)) != 1 || uint64(len(got.Resources[sampleAddr].Instances))+1 != got.Serial {
					t.Errorf("a reader saw something else than a whole state: %v", ds.Err())
					return
				}
			}
		})
	}
	for n := 101; n < 130; n++ {
		write(t, s, Sample(n))
	}
	unlock()
	close(stop)
	wg.Wait()
}

var sampleAddr = addr.AbsResource{Resource: addr.Resource{Type: "terraform_data", Name: "x"}}

func needLocks(t *testing.T, p Place) {
	if !p.Locks {
		t.Skip("this kind of store has no locks")
	}
}

func refused(t *testing.T, p Place) {
	needLocks(t, p)
	unlock := lock(t, p.Open(""), 0)
	mustRefuse(t, p)
	mustRefuse(t, p)
	unlock()
}

func free(t *testing.T, p Place) {
	for range 3 {
		lock(t, p.Open(""), 0)()
	}
}

func twice(t *testing.T, p Place) {
	needLocks(t, p)
	unlock := lock(t, p.Open(""), 0)
	unlock()
	unlock()
	second := lock(t, p.Open(""), 0)
	unlock() // must not release the lock of another Store
	mustRefuse(t, p)
	second()
}

func granted(t *testing.T, p Place) {
	needLocks(t, p)
	unlock := lock(t, p.Open(""), 0)
	got := make(chan func())
	go func() { got <- lock(t, p.Open(""), time.Minute) }()
	select {
	case <-got:
		t.Fatal("the lock was granted twice")
	case <-time.After(200 * time.Millisecond):
	}
	unlock()
	(<-got)()
}

func canceled(t *testing.T, p Place) {
	needLocks(t, p)
	unlock := lock(t, p.Open(""), 0)
	defer unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, ds := p.Open("").Lock(ctx, store.LockInfo{}, time.Hour); !ds.HasErrors() {
		t.Error("the lock was granted twice")
	}
}

func contended(t *testing.T, p Place) {
	needLocks(t, p)
	write(t, p.Open(""), Sample(0))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := p.Open("")
			unlock, ds := s.Lock(context.Background(), store.LockInfo{}, time.Minute)
			if ds.HasErrors() {
				t.Error(ds.Err())
				return
			}
			st, ds := s.Read(context.Background())
			if ds.HasErrors() || st == nil {
				t.Errorf("the state cannot be read under the lock: %v", ds.Err())
				return
			}
			ds = s.Write(context.Background(), Sample(int(st.Serial)))
			ds = append(ds, unlock()...)
			if ds.HasErrors() {
				t.Error(ds.Err())
			}
		})
	}
	wg.Wait()
	expect(t, p.Open(""), Sample(4))
}

func unlocked(t *testing.T, p Place) {
	needLocks(t, p)
	write(t, p.Open(""), Sample(2))
	unlock := lock(t, p.Open(""), 0)
	expect(t, p.Open(""), Sample(2))
	mustRefuse(t, p)
	unlock()
}

func kept(t *testing.T, p Place) {
	needLocks(t, p)
	s := p.Open("")
	unlock := lock(t, s, 0)
	for n := range 3 {
		write(t, s, Sample(n))
		expect(t, p.Open(""), Sample(n))
		mustRefuse(t, p)
	}
	unlock()
	expect(t, p.Open(""), Sample(2))
	lock(t, p.Open(""), 0)()
	expect(t, p.Open(""), Sample(2))
}

func traceless(t *testing.T, p Place) {
	unlock := lock(t, p.Open(""), 0)
	expect(t, p.Open(""), nil)
	unlock()
	expect(t, p.Open(""), nil)
}

func needWorkspaces(t *testing.T, p Place) {
	if p.Workspaces == nil {
		t.Skip("this kind of store has no workspaces")
	}
}

func names(t *testing.T, p Place) string {
	t.Helper()
	names, ds := p.Workspaces.List(context.Background())
	fatal(t, ds)
	return strings.Join(names, " ")
}

func listed(t *testing.T, p Place) {
	needWorkspaces(t, p)
	ctx := context.Background()
	if got := names(t, p); got != "default" {
		t.Errorf("at first: %s", got)
	}
	fatal(t, p.Workspaces.Create(ctx, "zebra"))
	fatal(t, p.Workspaces.Create(ctx, "a-1"))
	if got := names(t, p); got != "default a-1 zebra" {
		t.Errorf("after two: %s", got)
	}
	for _, name := range []string{"zebra", "default"} {
		if !p.Workspaces.Create(ctx, name).HasErrors() {
			t.Errorf("%s was created twice", name)
		}
	}
}

func separate(t *testing.T, p Place) {
	needWorkspaces(t, p)
	fatal(t, p.Workspaces.Create(context.Background(), "w"))
	expectEmpty(t, p.Open("w"))
	write(t, p.Open(""), Sample(1))
	write(t, p.Open("w"), Sample(2))
	expect(t, p.Open("default"), Sample(1))
	expect(t, p.Open("w"), Sample(2))
	unlock := lock(t, p.Open("w"), 0)
	lock(t, p.Open(""), 0)()
	unlock()
}

func deleted(t *testing.T, p Place) {
	needWorkspaces(t, p)
	ctx := context.Background()
	fatal(t, p.Workspaces.Create(ctx, "w"))
	write(t, p.Open("w"), Sample(2))
	fatal(t, p.Workspaces.Delete(ctx, "w"))
	if got := names(t, p); got != "default" {
		t.Errorf("after delete: %s", got)
	}
	fatal(t, p.Workspaces.Create(ctx, "w"))
	expectEmpty(t, p.Open("w"))
	for _, name := range []string{"default", "never"} {
		if !p.Workspaces.Delete(ctx, name).HasErrors() {
			t.Errorf("%s was deleted", name)
		}
	}
}

func named(t *testing.T, p Place) {
	needWorkspaces(t, p)
	for _, name := range []string{"", "..", ".", "a/b", `a\b`, "a b", "ü", "a%20b"} {
		if !p.Workspaces.Create(context.Background(), name).HasErrors() {
			t.Errorf("a workspace %q was created", name)
		}
		if !p.Workspaces.Delete(context.Background(), name).HasErrors() {
			t.Errorf("a workspace %q was deleted", name)
		}
	}
}
