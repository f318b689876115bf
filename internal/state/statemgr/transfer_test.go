package statemgr

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// pair returns two states in directories of one estate. The first contains x[0] and x[1]; the
// second is empty.
func pair(t *testing.T) (from, into Options) {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"a", "b"} {
		must(t, os.Mkdir(filepath.Join(root, name), 0o755))
	}
	from, into = options(filepath.Join(root, "a")), options(filepath.Join(root, "b"))
	h, _ := take(t, from)
	d := state.New().Edit()
	for n := range 2 {
		for _, c := range answer(n) {
			d.Apply(c)
		}
	}
	must(t, h.Write(t.Context(), d.Freeze()).Err(), h.Release().Err())
	return from, into
}

// moveOne moves x[0] and is killed after a step; "" means that it is not killed.
func moveOne(t *testing.T, from, into Options, killed string) diag.List {
	t.Helper()
	a, b, ds := TakePair(t.Context(), from, into)
	must(t, ds.Err())
	ds = transfer(t.Context(), a, b, []state.Change{{Object: addr.Object{Instance: object(0)}}}, answer(0), func(step string) bool { return step != killed })
	must(t, a.Release().Err(), b.Release().Err())
	return ds
}

// clean reports files in the directories of two states other than the states and their backups.
func clean(t *testing.T, all ...Options) string {
	t.Helper()
	var left []string
	for _, o := range all {
		entries, err := os.ReadDir(o.Dir)
		must(t, err)
		for _, e := range entries {
			if strings.Contains(e.Name(), "journal") || strings.Contains(e.Name(), "errored") {
				left = append(left, e.Name())
			}
		}
	}
	return strings.Join(left, " ")
}

// After whichever step a move is killed, both states have changed or neither has, for readers
// and for commands that take them in any order. Nothing is left over.
func TestTransferKilled(t *testing.T) {
	for step, moved := range map[string]bool{
		"": true, stepFromNoted: false, stepIntoNoted: false, stepDecided: true, stepInto: true, stepFrom: true, stepFromDone: true, stepSettled: true,
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			from, into := pair(t)
			if ds := moveOne(t, from, into, step); ds.HasErrors() != (step != "") {
				t.Fatalf("killed after %q: %v", step, ds)
			}
			all := [2]Options{from, into}
			check := func(when string) {
				t.Helper()
				for i, o := range all {
					s, ds := Read(t.Context(), o)
					if want := (i == 1) == moved; ds.HasErrors() || has(s, 0) != want || i == 0 && !has(s, 1) {
						t.Errorf("killed after %q, %s: state %d has x[0]: %t, want %t (%v)", step, when, i, has(s, 0), want, ds)
					}
				}
			}
			check("before anybody takes one")
			for n, i := range order {
				h, _ := take(t, all[i])
				must(t, h.Release().Err())
				check([]string{"after the first", "after both"}[n])
			}
			if left := clean(t, from, into); left != "" {
				t.Errorf("killed after %q, order %v: %s is left", step, order, left)
			}
		}
	}
}

// A killed move completes when the same command runs again.
func TestTransferAgain(t *testing.T) {
	for _, step := range []string{stepFromNoted, stepIntoNoted} {
		from, into := pair(t)
		moveOne(t, from, into, step)
		must(t, moveOne(t, from, into, "").Err())
		s, ds := Read(t.Context(), into)
		if !has(s, 0) || len(ds) > 0 || clean(t, from, into) != "" {
			t.Errorf("killed after %q and done again: %v, %s", step, ds, clean(t, from, into))
		}
	}
}

// failing is a store that cannot be written.
type failing struct{ store.Store }

func (failing) Write(context.Context, *state.State) diag.List {
	return diag.Errorf("", nil, "Disk full", "There is no room.")
}

// If a store cannot be written after the move was decided, it gets its changes later.
func TestTransferUnwritable(t *testing.T) {
	for _, bad := range []int{0, 1} {
		from, into := pair(t)
		broken := [2]Options{from, into}
		broken[bad].Store = failing{broken[bad].Store}
		if ds := moveOne(t, broken[0], broken[1], ""); !ds.HasErrors() {
			t.Fatal("no error")
		}
		for i, o := range []Options{from, into} {
			h, _ := take(t, o)
			if has(h.Current(), 0) != (i == 1) {
				t.Errorf("store %d failed: state %d has x[0]: %t", bad, i, has(h.Current(), 0))
			}
			must(t, h.Release().Err())
		}
		if left := clean(t, from, into); left != "" {
			t.Errorf("%s is left", left)
		}
	}
}

// Two runs that take the same two states in opposite order never wait for each other.
func TestTakePair(t *testing.T) {
	from, into := pair(t)
	if _, _, ds := TakePair(t.Context(), from, from); !ds.HasErrors() || ds[0].Code != "state/same" {
		t.Errorf("a state twice: %v", ds)
	}
	from.Lock.Operation = "source"
	a, b, ds := TakePair(t.Context(), from, into)
	must(t, ds.Err())
	if _, _, ds := TakePair(t.Context(), into, from); !store.IsLocked(ds) || ds[0].Extra.(*store.LockInfo).Operation != "source" {
		t.Errorf("the other way round: %v", ds.Err())
	}
	must(t, a.Release().Err(), b.Release().Err())
	b, a, ds = TakePair(t.Context(), into, from)
	must(t, ds.Err())
	if !has(a.Current(), 1) || b.Current() != nil {
		t.Error("the states are mixed up")
	}
	must(t, a.Release().Err(), b.Release().Err())
}
