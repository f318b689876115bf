package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/state"
)

// A pageReader reads journals using only the specification in docs/journal.md, like an
// independent implementation.
type pageReader struct {
	lineage  string
	serial   uint64
	begun    []int64
	answered map[int64]int // id to number of changes
	order    []string      // kinds and ids in file order
	bad      bool

	path string // path of the journal
	user []byte // content of journal.key; nil means that codes are ignored
	key  []byte // key of the journal, after a header verified
}

var pageTable = crc32.MakeTable(crc32.Castagnoli)

func (r *pageReader) read(b []byte) error {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil // killed before it did anything
	}
	if string(line) != "terrace journal 4" {
		return fmt.Errorf("first line %q", line)
	}
	r.answered = map[int64]int{}
	marker, last := []byte{0xff, 'T', 'r', 'J', 0xfe, '\r', '\n'}, uint32(0)
	for at := 0; r.user != nil && r.key == nil; at++ {
		next := bytes.Index(rest[at:], marker)
		if next < 0 {
			return nil // foreign, or killed before it did anything
		}
		at += next
		r.header(rest[at:])
	}
	for len(rest) > 0 {
		kind, body, size := byte(0), []byte(nil), 0
		if len(rest) >= 24 && bytes.HasPrefix(rest, marker) && (rest[7] == 0 || rest[7] == 2) && binary.LittleEndian.Uint32(rest[20:]) == crc32.Checksum(rest[:20], pageTable) {
			number, length := binary.LittleEndian.Uint32(rest[8:]), int(binary.LittleEndian.Uint32(rest[12:]))
			if len(rest) < 24+length {
				return nil // truncated by a kill
			}
			whole := rest[24 : 24+length]
			body = whole
			if rest[7] == 2 {
				body = whole[:max(0, length-16)]
			}
			verified := r.key == nil || rest[7] == 2 && hmac.Equal(whole[len(body):], r.code(number, body))
			if verified && number > last && length >= 1 && binary.LittleEndian.Uint32(rest[16:]) == crc32.Checksum(whole, pageTable) {
				last, kind, size = number, body[0], 24+length
			}
		}
		if size == 0 {
			if len(rest) < 24 && bytes.HasPrefix(marker, rest[:min(len(rest), len(marker))]) {
				return nil
			}
			r.bad = true
			next := bytes.Index(rest[1:], marker)
			if next < 0 {
				return nil
			}
			rest = rest[1+next:]
			continue
		}
		if err := r.record(kind, body[1:]); err != nil {
			return err
		}
		rest = rest[size:]
	}
	return nil
}

// header derives the key of the journal from a header record that verifies.
func (r *pageReader) header(b []byte) {
	if len(b) < 24 || b[7] != 2 {
		return
	}
	length := int(binary.LittleEndian.Uint32(b[12:]))
	if length < 18 || len(b) < 24+length || b[24] != 'H' {
		return
	}
	body, code := b[24:24+length-16], b[24+length-16:24+length]
	var h struct{ Nonce string }
	if json.Unmarshal(body[1:], &h) != nil {
		return
	}
	mac := hmac.New(sha256.New, r.user)
	fmt.Fprintf(mac, "terrace journal\x00%s\x00%s", r.path, h.Nonce)
	r.key = mac.Sum(nil)
	if !hmac.Equal(code, r.code(binary.LittleEndian.Uint32(b[8:]), body)) {
		r.key = nil
	}
}

func (r *pageReader) code(number uint32, body []byte) []byte {
	mac := hmac.New(sha256.New, r.key)
	binary.Write(mac, binary.LittleEndian, number)
	mac.Write(body)
	return mac.Sum(nil)[:16]
}

func (r *pageReader) record(kind byte, body []byte) error {
	switch kind {
	case 'H':
		var h struct {
			Lineage string
			Serial  uint64
			Run     struct{ Operation, Who string }
		}
		if err := json.Unmarshal(body, &h); err != nil {
			return err
		}
		r.lineage, r.serial = h.Lineage, h.Serial
	case 'B':
		var b struct {
			ID              int64
			Address, Action string
		}
		if err := json.Unmarshal(body, &b); err != nil || b.Address == "" || b.Action == "" {
			return fmt.Errorf("B %s: %w", body, err)
		}
		r.begun = append(r.begun, b.ID)
		r.order = append(r.order, fmt.Sprint("B", b.ID))
	case 'A':
		id, n := binary.Varint(body)
		if n <= 0 {
			return fmt.Errorf("A without an id")
		}
		changes := 0
		for body = body[n:]; len(body) > 0; changes++ {
			if len(body) < 4 || len(body) < 4+int(binary.LittleEndian.Uint32(body)) {
				return fmt.Errorf("A %d: a change is cut", id)
			}
			size := 4 + int(binary.LittleEndian.Uint32(body))
			var change struct {
				Mode, Type, Name, Provider string
				Instance, Remove           json.RawMessage
			}
			if err := json.Unmarshal(body[4:size], &change); err != nil || (change.Instance == nil) == (change.Remove == nil) || change.Type == "" {
				return fmt.Errorf("A %d: %s: %w", id, body[4:size], err)
			}
			body = body[size:]
		}
		r.answered[id] += changes
		r.order = append(r.order, fmt.Sprint("A", id))
	case 'W':
		var w struct {
			Lineage, Digest string
			Serial          uint64
		}
		if err := json.Unmarshal(body, &w); err != nil || len(w.Digest) != 64 {
			return fmt.Errorf("W %s: %w", body, err)
		}
		r.order = append(r.order, fmt.Sprint("W", w.Serial))
	default:
		return fmt.Errorf("no kind %q", kind)
	}
	return nil
}

// A reader that follows the specification can read all journals that are written: complete,
// truncated anywhere, and with a changed byte.
func TestPageIsEnough(t *testing.T) {
	for round := range 40 {
		rnd := rand.New(rand.NewPCG(uint64(round), 13))
		path := filepath.Join(t.TempDir(), ".a.journal")
		var u User
		var user []byte
		if round%2 == 0 {
			u.Dir = t.TempDir()
		}
		j, err := Create(path, Options{Header: HeaderOf(base()), Answers: 100, User: u})
		if err == nil && u.Dir != "" {
			user, err = os.ReadFile(filepath.Join(u.Dir, "journal.key"))
		}
		real, e := filepath.EvalSymlinks(path)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		read := func(b []byte) (pageReader, error) {
			r := pageReader{user: user, path: filepath.ToSlash(real)}
			return r, r.read(b)
		}
		mine := func(b []byte) (*Recovered, error) {
			if user == nil {
				return Parse(b, nil, "")
			}
			return parse(b, noTail, nil, &judge{u, path})
		}
		var want []string
		answers, open := map[int64]int{}, []int64(nil)
		for id := int64(1); id <= 12; id++ {
			if err := j.Begin(int(id), fmt.Sprintf("t.x[%d]", id), "create"); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprint("B", id))
			if rnd.IntN(4) == 0 {
				open = append(open, id)
				continue
			}
			changes := []state.Change{set(int(id), `{"a":1}`), gone(100 + int(id))}[:rnd.IntN(3)]
			if err := j.Answer(int(id), changes); err != nil {
				t.Fatal(err)
			}
			answers[id] = len(changes)
			want = append(want, fmt.Sprint("A", id))
			if rnd.IntN(5) == 0 {
				if err := j.Written(base()); err != nil {
					t.Fatal(err)
				}
				want = append(want, "W7", "W7")
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := read(text)
		if err != nil || r.bad || !slices.Equal(r.order, want) || r.lineage != "lin" || r.serial != 7 {
			t.Fatalf("%v, bad %v, %s %d\n%v\nwant\n%v", err, r.bad, r.lineage, r.serial, r.order, want)
		}
		for id, n := range answers {
			if r.answered[id] != n {
				t.Errorf("the answer of %d has %d changes, want %d", id, r.answered[id], n)
			}
		}
		rec, err := mine(text)
		if err != nil || rec.Foreign != nil {
			t.Fatal(err, rec.Foreign)
		}
		if got := len(rec.Unanswered()); got != len(open) {
			t.Errorf("%d are named, want %d", got, len(open))
		}
		for range 50 {
			at := rnd.IntN(len(text))
			cut, err := read(text[:at])
			if err != nil && at > len("terrace journal 4") || cut.bad || len(cut.order) > len(want) || !slices.Equal(cut.order, want[:len(cut.order)]) {
				t.Fatalf("cut at %d: %v, bad %v, %v", at, err, cut.bad, cut.order)
			}
			at = len("terrace journal 4\n") + rnd.IntN(len(text)-len("terrace journal 3\n"))
			spoilt := bytes.Clone(text)
			spoilt[at] ^= byte(1 + rnd.IntN(255))
			r, err := read(spoilt)
			theirs, parsed := mine(spoilt)
			if err != nil || parsed != nil || r.bad != theirs.Damaged() || len(want)-len(r.order) > 1 {
				t.Fatalf("byte %d: %v, %v, bad %v and %v, %v", at, err, parsed, r.bad, theirs.Damaged(), r.order)
			}
		}
	}
}
