package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// A write to a file can wait in the system for as long as a sync of that file
// takes, and a process that is killed meanwhile takes the answer along. So an
// answer that comes during a sync is first put into a tail: a small file beside
// the journal that is mapped into memory and never synced, where writing is
// copying. Its place is free again when the answer is in the journal. A tail outlives the process; what
// outlives the machine is in the journal.
//
// A place holds the number of the record (8 bytes, from 1; 0: free), its length (4
// bytes), the CRC-32C of both and the record (4 bytes), and the record, all
// little-endian. The number is written last. A record that is too long for its place lies in a file of the
// place's own, which is never synced either.

const (
	tailPlaces = 64 // at most
	tailPlace  = 8 << 10
	tailHead   = 16
)

// tailPath is where the tail of a journal lies.
func tailPath(path string) string { return path + "-tail" }

// asidePath is where the long record of a place of a tail lies.
func asidePath(tail string, place int) string { return tail + "-" + strconv.Itoa(place) }

// tail is a file once something was put there. It has no places where the system
// cannot map files: then every answer goes to the journal at once.
type tail struct {
	mu     sync.Mutex
	places int // to be made; 0 once that was tried
	memory []byte
	free   []int
	next   uint64
	path   string
	unmap  func()
	asides map[int]bool // places that have a file
}

func newTail(path string, places int) *tail {
	return &tail{places: places, next: 1, path: path, asides: map[int]bool{}}
}

// open makes the file. The caller holds mu.
func (t *tail) open() {
	if t.memory, t.unmap = mapFile(t.path, t.places*tailPlace); t.memory != nil {
		for i := range t.places {
			t.free = append(t.free, i)
		}
	}
	t.places = 0
}

// put keeps a record and returns its place, or -1 if there is none for it.
func (t *tail) put(record []byte) int {
	i := t.take()
	if i < 0 {
		return -1
	}
	long := len(record) > tailPlace-tailHead
	if long && os.WriteFile(asidePath(t.path, i), record, 0o600) != nil {
		t.done(i)
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == nil {
		return -1
	}
	p := t.memory[i*tailPlace : (i+1)*tailPlace]
	if long {
		t.asides[i] = true
	} else {
		copy(p[tailHead:], record)
	}
	binary.LittleEndian.PutUint32(p[8:], uint32(len(record)))
	binary.LittleEndian.PutUint32(p[12:], placeChecksum(t.next, record))
	binary.LittleEndian.PutUint64(p, t.next)
	t.next++
	return i
}

// take takes a free place, -1 if there is none.
func (t *tail) take() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places > 0 {
		t.open()
	}
	if len(t.free) == 0 || t.memory == nil {
		return -1
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	return i
}

// done frees a place.
func (t *tail) done(i int) {
	if i < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory != nil {
		binary.LittleEndian.PutUint64(t.memory[i*tailPlace:], 0)
	}
	t.free = append(t.free, i)
}

// close unmaps the tail; remove takes its files away too.
func (t *tail) close(remove bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places = 0
	if t.memory == nil {
		return
	}
	t.unmap()
	t.memory = nil
	if remove {
		for i := range t.asides {
			_ = os.Remove(asidePath(t.path, i))
		}
		_ = os.Remove(t.path)
	}
}

// removeTail removes the files of a tail that a run left.
func removeTail(path string) error {
	for i := range tailPlaces {
		if err := os.Remove(asidePath(path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// placeChecksum is of a number and a record, so that a place that is free is not taken
// for one that is not.
func placeChecksum(number uint64, record []byte) uint32 {
	head := binary.LittleEndian.AppendUint64(nil, number)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(record)))
	return crc32.Update(checksum(head), crc32.MakeTable(crc32.Castagnoli), record)
}

// moveTail gives the files of a tail that a run left other names.
func moveTail(from, to string) error {
	names := map[string]string{from: to}
	for i := range tailPlaces {
		names[asidePath(from, i)] = asidePath(to, i)
	}
	for from, to := range names {
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readTail returns the records of a tail that a run left, in the order in which
// they were put there, and how many are not whole. old: it belongs to a journal of
// format 1, whose checksum was the CRC-32 of the record alone.
func readTail(path string, old bool) (records [][]byte, bad int) {
	b, err := readfile.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0
	}
	if err != nil {
		return nil, 1
	}
	type found struct {
		n      uint64
		record []byte
	}
	var all []found
	for i := 0; len(b) >= tailPlace; i, b = i+1, b[tailPlace:] {
		n := binary.LittleEndian.Uint64(b)
		if n == 0 {
			continue
		}
		record, sum := recordOf(path, i, b[:tailPlace]), binary.LittleEndian.Uint32(b[12:])
		if record == nil || !old && placeChecksum(n, record) != sum || old && crc32.ChecksumIEEE(record) != sum {
			bad++
			continue
		}
		all = append(all, found{n, record})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.n, b.n) })
	out := make([][]byte, len(all))
	for i, f := range all {
		out[i] = f.record
	}
	return out, bad
}

// recordOf is what lies in a place of a tail, nil if that is less than the place says.
func recordOf(path string, place int, b []byte) []byte {
	size := int64(binary.LittleEndian.Uint32(b[8:]))
	if size <= tailPlace-tailHead {
		return b[tailHead : tailHead+size]
	}
	info, err := os.Lstat(asidePath(path, place))
	if err != nil || info.Size() != size || !info.Mode().IsRegular() {
		return nil
	}
	record, err := readfile.Whole(asidePath(path, place))
	if err != nil {
		return nil
	}
	return record
}
