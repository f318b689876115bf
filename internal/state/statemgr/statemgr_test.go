package statemgr

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

func object(n int) addr.Instance {
	return addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: "x"}, Key: addr.Int(n)}
}

func answer(n int) []state.Change {
	return []state.Change{{
		Object: addr.Object{Instance: object(n)}, Provider: addr.ProviderConfig{Provider: addr.BuiltIn},
		New: &state.Object{JSON: []byte(`{"id":"x"}`)},
	}}
}

func options(dir string) Options {
	st := local.Open(local.Options{Dir: dir, Who: "me@here", Now: time.Now})
	return Options{Store: st, Journal: st.JournalPath(), Dir: dir, User: journal.User{Dir: filepath.Join(filepath.Dir(dir), "user")}, Lock: &store.LockInfo{Operation: "test"}}
}

func take(t *testing.T, o Options) (*State, diag.List) {
	t.Helper()
	h, ds := Take(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return h, ds
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// begun returns a state in which a first call was answered and a second was not.
func begun(t *testing.T, o Options) *State {
	t.Helper()
	h, _ := take(t, o)
	must(t, h.Start(t.Context(), 2, 2).Err(), h.Begin(0, "terraform_data.x[0]", "create"), h.Answer(0, answer(0)), h.Begin(1, "terraform_data.x[1]", "create"), h.Sync())
	return h
}

func has(s *state.State, n int) bool {
	_, _, ok := s.Object(addr.Object{Instance: object(n)})
	return ok
}

// An abandoned run leaves its journal. Readers merge it in memory, and the next command that
// takes the state writes it.
func TestAbandoned(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	if err := h.Answer(1, answer(1)); !errors.Is(err, errAbandoned) {
		t.Errorf("an answer after the end: %v", err)
	}
	if ds := h.Write(t.Context(), state.New()); !ds.HasErrors() {
		t.Error("a state was written after the end")
	}
	if ds := h.End(nil); len(ds) > 0 || !journal.Exists(o.Journal) {
		t.Errorf("the journal is gone: %v", ds)
	}
	h.Release()
	for range 2 { // reading changes nothing
		s, ds := Read(t.Context(), o)
		if !has(s, 0) || has(s, 1) || !strings.Contains(ds[len(ds)-1].Detail, "May have happened: terraform_data.x[1]") {
			t.Fatalf("read: %v", ds)
		}
	}
	h, ds := take(t, o)
	if !has(h.Current(), 0) || has(h.Current(), 1) || !strings.Contains(ds[len(ds)-1].Detail, "May have happened: terraform_data.x[1]") {
		t.Errorf("taken: %v", ds)
	}
	if journal.Exists(o.Journal) {
		t.Error("the journal is still there")
	}
	must(t, h.Release().Err(), h.Release().Err())
	if s, ds := Read(t.Context(), o); !has(s, 0) || len(ds) > 0 {
		t.Errorf("what was folded in was not written: %v", ds)
	}
}

func TestHeld(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	if other, ds := Take(t.Context(), o); other != nil || !ds.HasErrors() {
		t.Error("a state was taken that is held")
	}
	d := state.New().Edit()
	for _, c := range answer(0) {
		d.Apply(c)
	}
	must(t, h.Answer(1, nil), h.Write(t.Context(), d.Freeze()).Err(), h.End(d.Freeze()).Err(), h.Release().Err())
	if journal.Exists(o.Journal) {
		t.Error("the journal was left")
	}
	h, ds := take(t, o)
	if len(ds) > 0 || !has(h.Current(), 0) {
		t.Errorf("%v", ds)
	}
	must(t, h.Release().Err())
}

// full is a store that cannot be written.
type full struct{ store.Store }

func (full) Write(context.Context, *state.State) diag.List {
	return diag.Errorf(diag.CodeBackendWriteFailed, nil, "Failed to write", "The disk is full.")
}

// A state that cannot be written is saved as errored.tfstate, or passed to Rescue. The journal
// is kept.
func TestNotWritten(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		o := options(t.TempDir())
		rescued := false
		o.Store, o.Dir = full{o.Store}, dir
		if dir == "" {
			o.Dir = filepath.Join(t.TempDir(), "missing")
		}
		o.Host = testHost{rescue: func(text []byte) diag.List {
			s, _ := statefile.Parse("rescued", text)
			rescued = has(s, 0)
			return nil
		}}
		h := begun(t, o)
		d := state.New().Edit()
		for _, c := range answer(0) {
			d.Apply(c)
		}
		if ds := h.Write(t.Context(), d.Freeze()); !ds.HasErrors() {
			t.Fatal("it was written")
		}
		if ds := h.End(d.Freeze()); !ds.HasErrors() {
			t.Error("nothing was said")
		}
		if !journal.Exists(o.Journal) {
			t.Error("the journal is gone")
		}
		_, err := os.Stat(filepath.Join(o.Dir, erroredName))
		if saved := err == nil; saved == rescued || rescued != (dir == "") {
			t.Errorf("saved: %t, rescued: %t", saved, rescued)
		}
		h.Release()
	}
}

// If a merged journal cannot be written to the state, the journal remains unchanged.
func TestNotFoldedIn(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	must(t, h.Release().Err())
	before, err := os.ReadFile(o.Journal)
	must(t, err)
	broken := o
	broken.Store = full{o.Store}
	if h, ds := Take(t.Context(), broken); h != nil || !ds.HasErrors() {
		t.Errorf("taken: %v", ds)
	}
	if after, err := os.ReadFile(o.Journal); err != nil || string(after) != string(before) {
		t.Errorf("the journal was touched: %v", err)
	}
	h, _ = take(t, o) // writing is possible again
	if !has(h.Current(), 0) || journal.Exists(o.Journal) {
		t.Error("it was not folded in")
	}
	must(t, h.Release().Err())
}

// The state in errored.tfstate is newer than the state merged with the journal.
func TestErroredIsNewer(t *testing.T) {
	o := options(t.TempDir())
	broken := o
	broken.Store = full{o.Store}
	h := begun(t, broken)
	if ds := h.Write(t.Context(), with(0)); !ds.HasErrors() {
		t.Fatal("it was written")
	}
	h.End(with(0))
	must(t, h.Release().Err())
	h, _ = take(t, o)
	saved, ds := local.ReadFile(t.Context(), filepath.Join(o.Dir, erroredName))
	if ds.HasErrors() || !has(saved, 0) || !has(h.Current(), 0) || saved.Serial <= h.Current().Serial || saved.Lineage != h.Current().Lineage {
		t.Errorf("saved %v, folded in %v: %v", saved, h.Current(), ds)
	}
	must(t, h.Release().Err())
}

// If a run ends between writing the state and removing the journal, the messages about pending
// calls are not lost: the next run finds them in the journal again. With a lease, they are
// noted before the state is written.
func TestFoldedInAndEnded(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	must(t, h.Release().Err())
	text, err := os.ReadFile(o.Journal)
	must(t, err)

	var noted diag.List
	o.Lease = &Lease{Held: func() error { return nil }, Succeeds: func(store.LockInfo) bool { return false }, Note: func(ds diag.List) error {
		if s, ds := o.Store.Read(t.Context()); ds.HasErrors() || s != nil && has(s, 0) {
			t.Errorf("noted after the state was written: %v", ds)
		}
		noted = append(noted, ds...)
		return nil
	}}
	h, ds := take(t, o)
	must(t, h.Release().Err())
	if len(noted) != 2 || len(ds) != 2 {
		t.Fatalf("noted %v, said %v", noted, ds)
	}
	must(t, os.WriteFile(o.Journal, text, 0o600)) // the run ended before it removed the journal
	o.Lease.Note, o.Lease.Noted = nil, func() diag.List { return noted }
	h, ds = take(t, o)
	must(t, h.Release().Err())
	said := map[string]int{}
	for _, m := range ds {
		said[m.Code]++
	}
	if len(ds) != 2 || said[journal.RecoveredCode] != 1 || said[journal.PendingCode] != 1 || journal.Exists(o.Journal) {
		t.Errorf("the next one says %v", ds)
	}

	must(t, os.WriteFile(o.Journal, text, 0o600)) // the same without notes
	o.Lease = nil
	h, ds = take(t, o)
	must(t, h.Release().Err())
	if len(ds) != 1 || ds[0].Code != journal.PendingCode {
		t.Errorf("without a lease: %v", ds)
	}

	must(t, os.WriteFile(o.Journal, text, 0o600)) // a journal whose messages cannot be noted is not merged
	o.Lease = &Lease{Held: func() error { return nil }, Note: func(diag.List) error { return errors.New("no network") }}
	if h, ds := Take(t.Context(), o); h != nil || !ds.HasErrors() || !journal.Exists(o.Journal) {
		t.Errorf("taken: %v", ds)
	}
}
