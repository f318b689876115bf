package statemgr

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
)

func adopted(string, *journal.Recovered) diag.List { return nil }

// The journal of another user is only used if the user agrees, with or without the lock, and is
// kept.
func TestForeignJournal(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	must(t, h.Release().Err())
	me := o
	me.User = journal.User{Dir: t.TempDir()}
	for _, o := range []Options{me, unlocked(me)} {
		if h, ds := Take(t.Context(), o); h != nil || !ds.HasErrors() || ds[0].Code != codeForeign {
			t.Errorf("taken: %v", ds)
		}
	}
	s, ds := Read(t.Context(), me)
	if s != nil || ds.HasErrors() || len(ds) != 1 || !strings.Contains(ds[0].Detail, "terraform_data.x[0]") || !strings.Contains(ds[0].Detail, "terraform_data.x[1] (create)") {
		t.Errorf("read: %v", ds)
	}
	refusing := me
	refusing.Adopt = func(where string, rec *journal.Recovered) diag.List {
		if where != o.Journal || len(rec.Changes) != 1 {
			t.Errorf("asked about %s, %d changes", where, len(rec.Changes))
		}
		return diag.Errorf("", nil, "No", "No.")
	}
	if h, ds := Take(t.Context(), refusing); h != nil || !journal.Exists(o.Journal) {
		t.Errorf("refused: %v", ds)
	}
	var said []string
	adopting := me
	adopting.Adopt, adopting.Host = adopted, testHost{note: func(text string) { said = append(said, text) }}
	h, _ = take(t, adopting)
	if !has(h.Current(), 0) || journal.Exists(o.Journal) || len(said) != 1 {
		t.Errorf("adopted: %v", said)
	}
	must(t, h.Release().Err())
}

// testHost calls its functions, which may be nil.
type testHost struct {
	note   func(string)
	rescue func([]byte) diag.List
}

func (h testHost) Note(sentence string) {
	if h.note != nil {
		h.note(sentence)
	}
}

func (h testHost) Rescue(text []byte) diag.List {
	if h.rescue == nil {
		return nil
	}
	return h.rescue(text)
}

// A message is sent before the user's own journal is written into the state.
func TestRecoveringIsSaid(t *testing.T) {
	o := options(t.TempDir())
	h := begun(t, o)
	h.Abandon()
	must(t, h.Release().Err())
	o.Host = testHost{note: func(text string) {
		if now, ds := o.Store.Read(t.Context()); has(now, 0) || ds.HasErrors() || !strings.Contains(text, "terraform_data.x[0]") {
			t.Errorf("%s, when the state has it already", text)
		}
	}}
	h, _ = take(t, o)
	if !has(h.Current(), 0) {
		t.Error("not recovered")
	}
	must(t, h.Release().Err())
}

// A journal in the store that was written for another state is only used if the user agrees.
func TestForeignSegments(t *testing.T) {
	shared, s := t.TempDir(), &shelf{all: map[string][]byte{}, left: -1}
	h := begun(t, machine(t, shared, s, 1))
	h.Abandon()
	must(t, h.Release().Err())
	o := machine(t, shared, s, 2)
	o.StateID = "another"
	for _, o := range []Options{o, unlocked(o)} {
		if h, ds := Take(t.Context(), o); h != nil || !ds.HasErrors() || ds[0].Code != codeForeign || len(s.all) == 0 {
			t.Errorf("taken: %v", ds)
		}
	}
	if seen, ds := Read(t.Context(), o); seen != nil || ds.HasErrors() || ds[0].Code != codeForeign {
		t.Errorf("read: %v", ds)
	}
	o.Adopt = adopted
	h, _ = take(t, o)
	if !has(h.Current(), 0) || len(s.all) > 0 {
		t.Error("not adopted")
	}
	must(t, h.Release().Err())
}

// If the decision of a killed move is lost, for example with the home directory of a container,
// each object is in at least one of the states after the journals are merged.
func TestForeignTransfer(t *testing.T) {
	for _, step := range []string{stepFromNoted, stepIntoNoted, stepDecided, stepInto, stepFrom, stepFromDone} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			from, into := pair(t)
			moveOne(t, from, into, step)
			all := [2]Options{from, into}
			for i := range all {
				all[i].User, all[i].Adopt = journal.User{Dir: filepath.Join(from.Dir, "..", "new")}, adopted
			}
			for _, i := range order {
				h, _ := take(t, all[i])
				must(t, h.Release().Err())
			}
			a, ds := Read(t.Context(), all[0])
			b, more := Read(t.Context(), all[1])
			if !has(a, 0) && !has(b, 0) || !has(a, 1) || len(ds) > 0 || len(more) > 0 {
				t.Errorf("killed after %q, order %v: from %t, into %t: %v %v", step, order, has(a, 0), has(b, 0), ds, more)
			}
			if left := clean(t, from, into); left != "" {
				t.Errorf("killed after %q: %s is left", step, left)
			}
		}
	}
}

// Without a directory for its decision, a move is refused before anything changes.
func TestTransferWithoutHome(t *testing.T) {
	from, into := pair(t)
	from.User, into.User = journal.User{}, journal.User{}
	if ds := moveOne(t, from, into, ""); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "HOME") || clean(t, from, into) != "" {
		t.Errorf("%v", ds)
	}
}
