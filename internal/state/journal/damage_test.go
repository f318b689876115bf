package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

// created is the number of objects that the journals of these tests create, besides those of
// base.
const created = 5

// begunAndWritten returns a journal of format 1 in which objects were created, and the state
// that was written in the middle of it.
func begunAndWritten() ([]byte, *state.State) {
	seal1 := func(b, body []byte) []byte {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		b = binary.LittleEndian.AppendUint32(b, checksum(body))
		return append(b, body...)
	}
	head, _ := appendJSON([]byte("H"), HeaderOf(base()))
	b := seal1([]byte(magic1), head)
	d := base().Edit()
	var half *state.State
	for i := range created {
		body, _ := appendJSON([]byte("B"), Intent{i, inst(10 + i).String(), "create"})
		b = seal1(b, body)
		body, _ = appendAnswer([]byte("A"), i, []state.Change{set(10+i, `{"a":1}`)})
		b = seal1(b, body)
		d.Apply(set(10+i, `{"a":1}`))
		if i == created/2 {
			half = d.Freeze().WithMeta("lin", 8, "")
			sum, _ := digest(half)
			body, _ = appendJSON([]byte("W"), mark{HeaderOf(half), sum})
			b = seal1(b, body)
			d = half.Edit()
		}
	}
	return b, half
}

// written is like begunAndWritten in the current format.
func written(t *testing.T, sealer sealing.Sealer) ([]byte, *state.State) {
	j, path := create(t, HeaderOf(base()), sealer)
	_, half := begunAndWritten()
	for i := range created {
		must(t, j.Begin(i, inst(10+i).String(), "create"), j.Answer(i, []state.Change{set(10+i, `{"a":1}`)}))
		if i == created/2 {
			must(t, j.Written(half))
		}
	}
	must(t, j.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	return b, half
}

// TestFlippedBits flips every bit of a journal in turn. One bit affects at most one record,
// whose content is then named. Readable content is never lost, whether the state is the one
// with which the run began or the one that it wrote.
func TestFlippedBits(t *testing.T) {
	v1, half := begunAndWritten()
	for name, c := range map[string]struct {
		whole  []byte
		sealer sealing.Sealer
	}{"plain": {first(written(t, nil)), nil}, "sealed": {first(written(t, flip{})), flip{}}, "format 1": {v1, nil}} {
		t.Run(name, func(t *testing.T) {
			for bit := range 8 * len(c.whole) {
				if name != "plain" && bit%8 != bit/8%8 { // one bit of each byte
					continue
				}
				b := bytes.Clone(c.whole)
				b[bit/8] ^= 1 << (bit % 8)
				rec, err := parse(b, noTail, c.sealer, nil)
				if err != nil {
					if name == "format 1" && bit < 8*len(magic1) && errors.Is(err, errNoJournal) {
						continue // the file cannot be recognized as a journal
					}
					t.Fatalf("bit %d: %v", bit, err)
				}
				if name == "format 1" && bit >= 8*len(magic1) {
					old(t, bit, rec, half)
					continue
				}
				if !rec.Damaged() || rec.Torn > 0 {
					t.Fatalf("bit %d: the damage was not noticed", bit)
				}
				if lost := rec.Bad[0].Records; len(rec.Bad) > 1 || lost > 1 {
					t.Fatalf("bit %d: bad: %v", bit, rec.Bad)
				}
				folded(t, bit, rec, base())
				if bit%8 == bit/8%8 {
					folded(t, bit, rec, half)
				}
			}
		})
	}
}

// old checks the effect of a flipped bit in a journal of format 1. It has only one header and
// one mark, so that it may not continue the state. The objects are never lost.
func old(t *testing.T, bit int, rec *Recovered, half *state.State) {
	t.Helper()
	if !rec.Damaged() && rec.Torn == 0 {
		t.Fatalf("bit %d: the damage was not noticed", bit)
	}
	apart, ds := StateOfJournal(rec, half)
	missing(t, bit, rec, apart)
	if rec.Damaged() && len(ds) == 0 {
		t.Fatalf("bit %d: nothing is said", bit)
	}
}

// folded checks the result of merging a journal into a state.
func folded(t *testing.T, bit int, rec *Recovered, s *state.State) {
	t.Helper()
	got, fits, _ := Fold(s, rec)
	if !fits {
		t.Fatalf("bit %d: the journal does not continue the state with serial %d any more", bit, s.Serial)
	}
	missing(t, bit, rec, got)
}

// missing checks that at most one object is missing, and that it is named.
func missing(t *testing.T, bit int, rec *Recovered, got *state.State) {
	t.Helper()
	var lost []string
	for i := range created {
		if _, _, ok := got.Object(addr.Object{Instance: inst(10 + i)}); !ok {
			lost = append(lost, inst(10+i).String())
		}
	}
	if len(lost) > 1 {
		t.Fatalf("bit %d: lost %v", bit, lost)
	}
	for _, a := range lost {
		if !slices.ContainsFunc(rec.Pending, func(i Intent) bool { return i.Address == a }) {
			t.Fatalf("bit %d: %s is lost and not named", bit, a)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestDamage removes and inserts larger parts.
func TestDamage(t *testing.T) {
	whole, _ := written(t, nil)
	begin := func(n int) int {
		return bytes.LastIndex(whole[:bytes.Index(whole, fmt.Appendf(nil, `t.x[%d]`, 10+n))], []byte(marker))
	}
	for name, c := range map[string]struct {
		b       []byte
		records uint32
		objects int
	}{
		"two actions are zeros":    {slices.Concat(whole[:begin(1)], make([]byte, begin(3)-begin(1)), whole[begin(3):]), 6, created - 2},
		"two actions are gone":     {slices.Concat(whole[:begin(1)], whole[begin(3):]), 6, created - 2},
		"a stranger's bytes":       {slices.Concat(whole[:begin(2)], []byte("xyz"), whole[begin(2):]), 0, created},
		"older records once again": {slices.Concat(whole[:begin(4)], whole[begin(1):begin(3)], whole[begin(4):]), 0, created},
		"the end is zeros":         {slices.Concat(whole[:begin(4)], make([]byte, 4096)), 1, created - 1},
		"the beginning is gone":    {whole[begin(1):], 4, created - 1},
	} {
		rec, err := parse(c.b, noTail, nil, nil)
		must(t, err)
		if len(rec.Bad) != 1 || rec.Bad[0].Records != c.records {
			t.Errorf("%s: bad %v", name, rec.Bad)
		}
		if rec.started == (name == "the beginning is gone") {
			t.Errorf("%s: has a header: %t", name, rec.started)
		}
		got, ds := StateOfJournal(rec, nil)
		if n := len(got.Resources[inst(0).Abs()].Instances); n != c.objects {
			t.Errorf("%s: %d objects, want %d: %v", name, n, c.objects, ds)
		}
	}
}

// TestKeptAside renames a damaged journal with its tail.
func TestKeptAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for n := 1; n <= 2; n++ {
		must(t, os.WriteFile(path, []byte(magic+"x"), 0o600), os.WriteFile(tailPath(path), nil, 0o600), os.WriteFile(asidePath(tailPath(path), 3), nil, 0o600))
		c, err := TakeOver(path, nil)
		must(t, err)
		aside, err := c.KeepAside()
		must(t, err)
		if aside != fmt.Sprintf("%s.damaged.%d", path, n) || !Exists(aside) || !Exists(tailPath(aside)) || !Exists(asidePath(tailPath(aside), 3)) || Exists(path) || Exists(tailPath(path)) {
			t.Errorf("kept as %s", aside)
		}
		c.Close()
	}
}

// TestTailOfAnEarlierJournal checks that the tail of an earlier journal is not read.
func TestTailOfAnEarlierJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	tl := newTail(tailPath(path), 2)
	body, err := appendAnswer([]byte{byte(kindAnswer)}, 1, []state.Change{set(0, `{"a":"old"}`)})
	must(t, err)
	if tl.put(body) < 0 {
		t.Skip("this system maps no files")
	}
	tl.close(false)
	j, err := Create(path, Options{})
	must(t, err, j.Begin(1, "t.x[0]", "update"), j.Close())
	rec, err := Recover(path, nil)
	must(t, err)
	if len(rec.Changes) != 0 || len(rec.Pending) != 1 {
		t.Errorf("%+v", rec)
	}
}

// TestUnreadable checks the error for a journal that cannot be read.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"terrace journal 3\nanything": "first line", "{}": "first line", magic1[:5] + "!" + magic1[6:]: "first line", sealedMagic + "x": "encrypted",
	} {
		if _, err := parse([]byte(text), noTail, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	sealed, _ := written(t, flip{})
	if _, err := parse(sealed, noTail, wrong{}, nil); err == nil || !strings.Contains(err.Error(), "wrong key") {
		t.Errorf("%v", err)
	}
}

type wrong struct{ flip }

func (wrong) Open(io.Reader, int64) (io.Reader, bool, error) {
	return nil, false, errors.New("wrong key")
}
