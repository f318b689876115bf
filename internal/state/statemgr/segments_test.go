package statemgr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/state"
)

// A shelf implements Segments in memory. After a number of writes its machine is lost.
type shelf struct {
	mu   sync.Mutex
	all  map[string][]byte
	left int // remaining writes; negative means no limit
}

var errBurnt = errors.New("the machine is gone")

func (s *shelf) change() error {
	if s.left == 0 {
		return errBurnt
	}
	s.left--
	return nil
}

func (s *shelf) PutBlob(_ context.Context, name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.change(); err != nil {
		return err
	}
	s.all[name] = slices.Clone(data)
	return nil
}

func (s *shelf) GetBlob(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[name]), nil
}

func (s *shelf) ListBlobs(_ context.Context, prefix string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.all)), func(n string) bool { return !strings.HasPrefix(n, prefix) }), nil
}

func (s *shelf) DeleteBlob(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.change(); err != nil {
		return err
	}
	delete(s.all, name)
	return nil
}

// machine returns the options of a run on a separate machine: with another directory for its
// journal.
func machine(t *testing.T, shared string, s *shelf, n int) Options {
	st := local.Open(local.Options{Dir: shared, Who: "me@here", Now: time.Now})
	dir := t.TempDir()
	return Options{
		Store: st, Journal: dir + "/journal", Dir: dir, User: journal.User{Dir: dir + "/user"}, StateID: "state", Segments: s, KeepSegments: true,
		Lock: &store.LockInfo{Operation: "test", Who: fmt.Sprintf("run%d@here", n), Created: time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC)},
	}
}

// Whenever the machine is lost, the next run on another machine has everything that was
// answered and synced, and names the calls whose results are unknown.
func TestMachineGone(t *testing.T) {
	const calls = 12
	for n := range 60 {
		shared := t.TempDir()
		s := &shelf{all: map[string][]byte{}, left: n}
		begun, safe, ended := gone(t, machine(t, shared, s, n), calls)
		s.left = -1
		h, ds := Take(t.Context(), machine(t, shared, s, n+1000))
		if ds.HasErrors() {
			t.Fatalf("gone after %d: %v", n, ds.Err())
		}
		for i := range calls {
			named := slices.ContainsFunc(ds, func(m *diag.Message) bool { return strings.Contains(m.Detail, fmt.Sprintf("x[%d] ", i)) })
			if i < safe && !has(h.Current(), i) {
				t.Errorf("gone after %d: object %d was answered and is lost", n, i)
			}
			if i < begun && !has(h.Current(), i) && !named {
				t.Errorf("gone after %d: nothing is said of object %d", n, i)
			}
		}
		if ds := h.Release(); ds.HasErrors() {
			t.Error(ds.Err())
		}
		if len(s.all) > 0 {
			t.Errorf("gone after %d: left in the store: %v", n, slices.Collect(maps.Keys(s.all)))
		}
		if again, ds := Take(t.Context(), machine(t, shared, s, n+2000)); len(ds) > 0 {
			t.Errorf("gone after %d, the run after the next: %v", n, ds)
		} else {
			again.Release()
		}
		if ended && n < 27 {
			t.Errorf("ended though the machine was gone after %d writes", n)
		}
	}
}

// gone runs until its machine is lost. It returns the number of calls that were begun, and of
// answers that were safe.
func gone(t *testing.T, o Options, calls int) (begun, safe int, ended bool) {
	h, ds := Take(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	defer h.Release() // the lock service releases the lock of a lost machine
	if ds := h.Start(t.Context(), calls, calls); ds.HasErrors() {
		return 0, 0, false
	}
	var all []state.Change
	for i := range calls {
		if h.Begin(i, object(i).String(), "create") != nil {
			return begun, safe, false
		}
		begun++
		all = append(all, answer(i)...)
		if h.Answer(i, answer(i)) != nil || h.Sync() != nil {
			return begun, safe, false
		}
		safe++
	}
	d := (&state.State{}).Edit()
	for _, c := range all {
		d.Apply(c)
	}
	final := d.Freeze()
	if ds := h.Write(t.Context(), final); ds.HasErrors() {
		return begun, safe, false
	}
	return begun, safe, len(h.End(final)) == 0
}

// A journal that is larger than a segment is divided and joined again.
func TestSegmentsAreJoined(t *testing.T) {
	s := &shelf{all: map[string][]byte{}, left: -1}
	m := newMirror(t.Context(), s, journal.Run{}, func() error { return nil })
	var want []byte
	for i := range 50 {
		b := []byte(strings.Repeat(string(rune('a'+i%26)), 10_000))
		want = append(want, b...)
		if err := m.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	var got []byte
	names, _ := s.ListBlobs(t.Context(), "")
	for _, name := range names {
		if len(s.all[name]) > segmentSize {
			t.Errorf("%s has %d bytes", name, len(s.all[name]))
		}
		got = append(got, s.all[name]...)
	}
	if string(got) != string(want) || len(names) != 4 {
		t.Errorf("%d bytes in %d segments", len(got), len(names))
	}
}

// A journal in the store that does not continue the state is saved to a file on this machine.
// It remains in the store under another name, since this machine may be lost, too.
func TestJournalKeptApart(t *testing.T) {
	shared := t.TempDir()
	s := &shelf{all: map[string][]byte{}, left: 7}
	if _, safe, _ := gone(t, machine(t, shared, s, 1), 12); safe == 0 {
		t.Fatal("nothing was answered before the machine was gone")
	}
	s.left = -1
	o := machine(t, shared, s, 2)
	o.Segments, o.KeepSegments = nil, false // another run, which does not know about the journal
	h, ds := Take(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	other := state.New()
	if ds := h.Write(t.Context(), other.WithMeta("another", 5, "1.12.6")); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	h.Release()
	o = machine(t, shared, s, 3)
	h, ds = Take(t.Context(), o)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	h.Release()
	names, _ := s.ListBlobs(t.Context(), "")
	if len(names) != 1 || !strings.HasPrefix(names[0], "journal-apart/") || !slices.ContainsFunc(ds, func(m *diag.Message) bool { return strings.Contains(m.Detail, names[0]) }) {
		t.Fatalf("%v %v", names, ds)
	}
	rec, err := journal.Parse(s.all[names[0]], nil, "state")
	if err != nil || len(rec.Changes) == 0 {
		t.Errorf("%v %v", rec, err)
	}
}

// One flipped bit in a journal in the store affects at most one object: each answered object is
// in the state afterwards, or the damage is reported, the object is named, and the bytes are
// kept on this machine.
func TestFlippedBitsInStore(t *testing.T) {
	const calls = 8
	shared := t.TempDir()
	s := &shelf{all: map[string][]byte{}, left: 17}
	_, safe, _ := gone(t, machine(t, shared, s, 1), calls)
	if safe < calls {
		t.Fatalf("only %d objects were answered before the machine was gone", safe)
	}
	names, _ := s.ListBlobs(t.Context(), segmentPrefix)
	if len(names) == 0 {
		t.Fatal("no journal is left in the store")
	}
	whole := s.all
	flips := 0
	for _, name := range names {
		for bit := 0; bit < 8*len(whole[name]); bit += 53 {
			flips++
			there := &shelf{all: maps.Clone(whole), left: -1}
			there.all[name] = slices.Clone(whole[name])
			there.all[name][bit/8] ^= 1 << (bit % 8)
			damaged := there.all[name]
			o := machine(t, t.TempDir(), there, 2)
			seen, ds := Read(t.Context(), o)
			checkFlipped(t, fmt.Sprintf("read, %s bit %d", name, bit), seen, ds, safe)
			h, ds := Take(t.Context(), o)
			if ds.HasErrors() { // then nothing is changed
				if !slices.Equal(there.all[name], damaged) {
					t.Errorf("%s bit %d: refused, and the journal was changed: %v", name, bit, ds.Err())
				}
				continue
			}
			checkFlipped(t, fmt.Sprintf("%s bit %d", name, bit), h.Current(), ds, safe)
			if slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Summary == "Damaged journal" }) {
				aside, err := filepath.Glob(filepath.Join(o.Dir, "journal.damaged.*"))
				if err != nil || len(aside) != 1 {
					t.Errorf("%s bit %d: kept aside: %v %v", name, bit, aside, err)
				}
			}
			h.Release()
		}
	}
	if flips < 40 {
		t.Errorf("only %d bits were flipped", flips)
	}
}

// checkFlipped checks that at most one object is missing, and that it is then named.
func checkFlipped(t *testing.T, when string, s *state.State, ds diag.List, safe int) {
	t.Helper()
	if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.Summary == "Damaged journal" }) {
		t.Errorf("%s: the damage was not noticed: %v", when, ds)
	}
	lost := 0
	for i := range safe {
		if has(s, i) {
			continue
		}
		lost++
		if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return strings.Contains(m.Detail, object(i).String()) }) {
			t.Errorf("%s: object %d is lost and not named: %v", when, i, ds)
		}
	}
	if lost > 1 {
		t.Errorf("%s: %d objects are lost", when, lost)
	}
}
