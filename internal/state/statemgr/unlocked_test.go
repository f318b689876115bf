package statemgr

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// unlocked returns the options of a run with -lock=false.
func unlocked(o Options) Options {
	o.Lock, o.Run = nil, store.LockInfo{Operation: "other", Who: "you@there"}
	return o
}

func with(n int) *state.State {
	d := state.New().Edit()
	for _, c := range answer(n) {
		d.Apply(c)
	}
	return d.Freeze()
}

func says(ds diag.List, text string) bool {
	for _, m := range ds {
		if strings.Contains(m.Summary+": "+m.Detail, text) {
			return true
		}
	}
	return false
}

func text(ds diag.List) string {
	var b strings.Builder
	for _, m := range ds {
		fmt.Fprintf(&b, "\n%s: %s", m.Summary, m.Detail)
	}
	return b.String()
}

// While another run is working, nothing is written, whether that run has the lock or not.
func TestBesideARunAtWork(t *testing.T) {
	for _, locked := range []bool{true, false} {
		o := options(t.TempDir())
		first := o
		if !locked {
			first = unlocked(o)
		}
		h := begun(t, first)
		before, err := os.ReadFile(o.Journal)
		must(t, err)
		if s, ds := Read(t.Context(), o); !has(s, 0) || len(ds) > 0 {
			t.Errorf("read: %v", ds)
		}
		others := []Options{unlocked(o)}
		if !locked {
			others = append(others, o)
		}
		for _, o := range others {
			other, ds := take(t, o)
			if !has(other.Current(), 0) || !says(ds, "Another run is still running: The state is being changed by another run (test by") && locked {
				t.Errorf("taken: %v", ds)
			}
			if ds := other.Start(t.Context(), 1, 1); !says(ds.Errors(), "Another run is still running") {
				t.Errorf("a second apply was started: %v", ds)
			}
			if ds := other.Write(t.Context(), with(5)); !says(ds.Errors(), "Another run is still running") {
				t.Errorf("the state was written: %v", ds)
			}
			must(t, other.Release().Err())
		}
		if after, err := os.ReadFile(o.Journal); err != nil || string(after) != string(before) {
			t.Errorf("the journal was touched: %v", err)
		}
		must(t, h.Answer(1, answer(1)), h.Write(t.Context(), with(1)).Err(), h.End(with(1)).Err(), h.Release().Err())
		if s, ds := Read(t.Context(), o); !has(s, 1) || len(ds) > 0 || journal.Exists(o.Journal) {
			t.Errorf("at the end: %v", ds)
		}
	}
}

// A run without the lock permanently merges the journal of an ended run when it writes.
func TestUnlockedFoldsInWhenItWrites(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	h.Release()
	other, ds := take(t, unlocked(o))
	if !has(other.Current(), 0) || !says(ds, "Interrupted run recovered") || !journal.Exists(o.Journal) {
		t.Fatalf("taken: %v", ds)
	}
	tofu, ds := o.Store.Lock(t.Context(), *o.Lock, 0)
	must(t, ds.Err())
	if ds := other.Start(t.Context(), 1, 1); !says(ds.Errors(), "Journal of an interrupted run") || !store.IsLocked(ds) {
		t.Errorf("folded in although somebody has the lock: %v", ds)
	}
	must(t, tofu().Err(), other.Release().Err())
	other, _ = take(t, unlocked(o))
	must(t, other.Start(t.Context(), 1, 1).Err())
	if s, _ := o.Store.Read(t.Context()); !has(s, 0) {
		t.Error("what the journal held is not in the state")
	}
	must(t, other.Write(t.Context(), with(1)).Err(), other.End(with(1)).Err())
}

// Changes by another process are not overwritten.
func TestUnlockedNoticesOthers(t *testing.T) {
	o := options(t.TempDir())
	other, _ := take(t, unlocked(o))
	working, _ := take(t, unlocked(o))
	must(t, working.Start(t.Context(), 1, 1).Err(), working.Begin(0, "terraform_data.x[0]", "create"), working.Answer(0, answer(0)))
	h, _ := take(t, options(o.Dir)) // with the lock, while there is the journal of a working run
	must(t, h.Release().Err())
	must(t, o.Store.Write(t.Context(), with(7).WithMeta("l", 9, "")).Err()) // like tofu -lock=false
	if ds := other.Start(t.Context(), 1, 1); !ds.HasErrors() {
		t.Errorf("a run began on a state that is not there any more")
	}
	if ds := working.Write(t.Context(), with(0)); !says(ds.Errors(), "State was changed meanwhile") {
		t.Errorf("the state was written over: %v", ds)
	}
	if ds := working.End(with(0)); !ds.HasErrors() || !journal.Exists(o.Journal) {
		t.Errorf("%v", ds)
	}
	must(t, working.Release().Err())
	if s, _ := o.Store.Read(t.Context()); !has(s, 7) || has(s, 0) {
		t.Error("the state was written over")
	}
	if ds := other.Start(t.Context(), 1, 1); !says(ds.Errors(), "State was changed meanwhile") {
		t.Errorf("a run began on a state that is not there any more: %v", ds)
	}
}

// Without the lock, a journal in the store of a run on another machine is not changed.
func TestUnlockedLeavesSegmentsAlone(t *testing.T) {
	shared, s := t.TempDir(), &shelf{all: map[string][]byte{}, left: -1}
	other, ds := take(t, unlocked(machine(t, shared, s, 1)))
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	h := begun(t, machine(t, shared, s, 2)) // after the other has read
	names, _ := s.ListBlobs(t.Context(), "")
	if ds := other.Start(t.Context(), 1, 1); !store.IsLocked(ds) {
		t.Errorf("a second apply was started: %v", ds)
	}
	if after, _ := s.ListBlobs(t.Context(), ""); len(names) == 0 || len(after) != len(names) {
		t.Errorf("the journal was touched: %v, %v", names, after)
	}
	must(t, h.Answer(1, answer(1)), h.Write(t.Context(), with(1)).Err(), h.End(with(1)).Err(), h.Release().Err())
}

// A damaged journal in the store is kept in the directory.
func TestDamagedSegments(t *testing.T) {
	shared, s := t.TempDir(), &shelf{all: map[string][]byte{}, left: -1}
	h := begun(t, machine(t, shared, s, 1))
	h.Abandon()
	must(t, h.Release().Err())
	names, _ := s.ListBlobs(t.Context(), "")
	s.all[names[0]][60] ^= 4
	o := machine(t, shared, s, 2)
	h, ds := take(t, o)
	if !has(h.Current(), 0) || !says(ds, "Damaged journal") || !journal.Exists(o.Journal+".damaged.1") || len(s.all) > 0 {
		t.Errorf("%v", ds)
	}
	must(t, h.Release().Err())
}

// A journal that was damaged on this machine is replaced by its copy in the store.
func TestDamagedHereWholeInStore(t *testing.T) {
	shared, s := t.TempDir(), &shelf{all: map[string][]byte{}, left: -1}
	o := machine(t, shared, s, 1)
	h := begun(t, o)
	h.Abandon()
	must(t, h.Release().Err())
	raw, err := os.ReadFile(o.Journal)
	must(t, err)
	at := strings.Index(string(raw), `"name":"x"`) // in the answer about the first object
	raw[at] ^= 4
	must(t, os.WriteFile(o.Journal, raw, 0o600))
	h, ds := take(t, o)
	if !has(h.Current(), 0) || !says(ds, "Damaged journal") || says(ds, "Journal of another state") || !journal.Exists(o.Journal+".damaged.1") || len(s.all) > 0 {
		t.Errorf("%v", ds)
	}
	must(t, h.Release().Err())
}

// Whichever byte of a journal is damaged, on this machine or in the store: every answered
// object is in the state or named, the damage is reported, and unreadable bytes are kept, also
// without the lock.
func TestDamagedAnywhere(t *testing.T) {
	shared, s := t.TempDir(), &shelf{all: map[string][]byte{}, left: -1}
	first := machine(t, shared, s, 1)
	h := begun(t, first)
	h.Abandon()
	must(t, h.Release().Err())
	names, _ := s.ListBlobs(t.Context(), "")
	whole := s.all[names[0]]
	here, err := os.ReadFile(first.Journal)
	must(t, err, os.Remove(first.Journal))
	before, err := os.ReadDir(shared)
	must(t, err)
	for _, in := range []string{"file", "store"} {
		for at := range whole {
			dir := t.TempDir()
			for _, f := range before {
				raw, err := os.ReadFile(filepath.Join(shared, f.Name()))
				must(t, err, os.WriteFile(filepath.Join(dir, f.Name()), raw, 0o600))
			}
			blobs := &shelf{all: map[string][]byte{}, left: -1}
			o := machine(t, dir, blobs, 2)
			if in == "file" {
				o.Journal, o.User = first.Journal, first.User // the user to whom the journal is bound
				damaged := bytes.Clone(here)
				damaged[at] ^= 1 << (at % 8)
				must(t, os.WriteFile(o.Journal, damaged, 0o600))
			} else {
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1 << (at % 8)
				blobs.all[names[0]] = damaged
			}
			seen, ds := Read(t.Context(), o)
			if !says(ds, "Damaged journal") || !has(seen, 0) && !says(ds, "x[0]") {
				t.Fatalf("%s, byte %d, read: %s", in, at, text(ds))
			}
			if at%16 != 0 { // testing all takes too long
				continue
			}
			h, ds := take(t, o)
			if !says(ds, "Damaged journal") || !has(h.Current(), 0) && !says(ds, "x[0]") || !journal.Exists(o.Journal+".damaged.1") {
				t.Fatalf("%s, byte %d: %s", in, at, text(ds))
			}
			must(t, h.Release().Err(), os.Remove(o.Journal+".damaged.1"))
		}
	}
}
