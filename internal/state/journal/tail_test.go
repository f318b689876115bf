//go:build unix

package journal

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

func tailOf(path string) [][]byte {
	records, _ := readTail(tailPath(path), false)
	return records
}

// during makes a journal treat answers as if a sync were in progress.
func during(j *Journal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = true
}

// Only an answer that might have to wait uses the tail, and is safe while it waits.
func TestAnswersThatWaitAreSafe(t *testing.T) {
	j, path := create(t, HeaderOf(nil), flip{})
	must(t, j.Begin(1, "t.x[0]", "create"), j.Answer(1, []state.Change{set(0, `{}`)}), j.Begin(2, "t.x[1]", "create"), j.Begin(3, "t.x[2]", "create"))
	if _, err := os.Stat(tailPath(path)); !os.IsNotExist(err) {
		t.Errorf("there is a tail though nothing had to wait: %v", err)
	}
	during(j)
	must(t, j.Answer(2, []state.Change{set(1, `{}`)}))
	if _, err := os.Stat(tailPath(path)); err != nil {
		t.Errorf("an answer during a sync did not go by the tail: %v", err)
	}
	j.mu.Lock() // like a write that waits for the sync
	var wg sync.WaitGroup
	wg.Go(func() { must(t, j.Answer(3, []state.Change{set(2, `{}`)})) })
	for len(tailOf(path)) == 0 {
		runtime.Gosched()
	}
	rec, err := Recover(path, flip{})
	j.mu.Unlock()
	wg.Wait()
	must(t, err)
	if len(rec.Changes) != 3 || len(rec.Pending) != 0 {
		t.Errorf("%d changes, %d pending", len(rec.Changes), len(rec.Pending))
	}
}

// An answer in the tail of a killed run is not lost.
func TestTailKeepsWhatWasOnItsWay(t *testing.T) {
	j, path := create(t, HeaderOf(nil), nil)
	must(t, j.Begin(1, "t.x[0]", "create"), j.Begin(2, "t.x[1]", "create"), j.Begin(3, "t.x[2]", "create"), j.Answer(3, []state.Change{set(2, `{}`)}))
	for id, at := range map[int]int{1: 0, 2: 1} {
		body, err := appendAnswer([]byte{byte(kindAnswer)}, id, []state.Change{set(at, `{"a":1}`)})
		must(t, err)
		if j.tail.put(body) < 0 {
			t.Fatal("there is no place in the tail")
		}
	}
	rec, err := Recover(path, nil)
	must(t, err)
	if len(rec.Pending) != 0 || len(rec.Changes) != 3 {
		t.Errorf("%d pending, %d changes", len(rec.Pending), len(rec.Changes))
	}
	must(t, j.Close(), Discard(path))
	if _, err := os.Stat(tailPath(path)); !os.IsNotExist(err) {
		t.Errorf("the tail was not removed: %v", err)
	}
}

func TestTailPlacesAreUsedAgain(t *testing.T) {
	j, path := create(t, HeaderOf(nil), nil)
	during(j)
	for i := range 10 * tailPlaces {
		must(t, j.Begin(i, "t.x", "create"), j.Answer(i, []state.Change{set(i%7, `{"a":1}`)}))
	}
	if left := tailOf(path); len(left) != 0 {
		t.Errorf("%d answers are left in the tail, though all are in the journal", len(left))
	}
	must(t, j.Remove())
}

// An answer that is too long for a slot is just as safe, and leaves no file behind.
func TestTailKeepsLongRecords(t *testing.T) {
	j, path := create(t, HeaderOf(nil), flip{})
	must(t, j.Begin(1, "t.x[0]", "create"), j.Begin(2, "t.x[1]", "create"))
	change := set(0, `{"a":"`+strings.Repeat("long", tailPlace)+`"}`)
	body, err := appendAnswer([]byte{byte(kindAnswer)}, 1, []state.Change{change})
	must(t, err)
	sealed, err := sealing.Append(flip{}, nil, body)
	must(t, err)
	place := j.tail.put(sealed)
	if place < 0 {
		t.Fatal("there is no place in the tail")
	}
	aside := asidePath(tailPath(path), place)
	if info, err := os.Stat(aside); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	rec, err := Recover(path, flip{})
	must(t, err)
	if len(rec.Changes) != 1 || len(rec.Pending) != 1 || !bytes.Equal(rec.Changes[0].New.JSON, change.New.JSON) {
		t.Errorf("%d changes, %d pending", len(rec.Changes), len(rec.Pending))
	}
	must(t, os.Truncate(aside, int64(len(sealed)-1)))
	if left := tailOf(path); len(left) != 0 {
		t.Error("a record that is cut off was read")
	}
	must(t, j.Close(), Discard(path))
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	j, path = create(t, HeaderOf(nil), nil)
	during(j)
	must(t, j.Begin(1, "t.x[0]", "create"), j.Answer(1, []state.Change{change}), j.Remove())
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A damaged slot is skipped.
func TestTailReadsOnlyWholePlaces(t *testing.T) {
	path := t.TempDir() + "/tail"
	tl := newTail(path, tailPlaces)
	a := tl.put([]byte("first"))
	b := tl.put([]byte("second"))
	tl.put([]byte("third"))
	tl.memory[b*tailPlace+tailHead] = 'S'
	tl.done(a)
	got, bad := readTail(path, false)
	if d := cmp.Diff([][]byte{[]byte("third")}, got); d != "" || bad != 1 {
		t.Error(d, bad)
	}
	binary.LittleEndian.PutUint64(tl.memory[a*tailPlace:], 1<<40) // a flipped bit, so that a free slot contains a number
	if got, bad := readTail(path, false); len(got) != 1 || bad != 2 {
		t.Errorf("a free place was read: %q, %d", got, bad)
	}
	tl.close(true)
	if tl.put([]byte("late")) != -1 {
		t.Error("a closed tail took a record")
	}
}

// A journal that was created for few answers accepts more of them, too.
func TestFewPlaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Create(path, Options{Answers: 2})
	if err != nil {
		t.Fatal(err)
	}
	during(j)
	const n = 50
	for i := range n {
		if err := j.Begin(i, "a", "create"); err != nil {
			t.Fatal(err)
		}
		if err := j.Answer(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(tailPath(path)); err != nil || len(text) != 2*tailPlace {
		t.Errorf("the tail has %d bytes (%v)", len(text), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := Recover(path, nil)
	if err != nil || len(rec.Pending) != 0 {
		t.Errorf("recovered %+v, %v", rec, err)
	}
}
