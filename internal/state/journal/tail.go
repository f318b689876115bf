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

// A write to a file can block while the operating system syncs that file, and a process that is
// killed meanwhile loses the answer. An answer that arrives during a sync is therefore first
// copied to a tail: a small file next to the journal that is mapped into memory and never
// synced. Its slot is free again when the answer is in the journal. The tail survives the
// process. It does not survive a crash of the machine; the journal does.
//
// A slot contains the number of the record (8 bytes, from 1; 0 means free), its length (4
// bytes), the CRC-32C of both and the record (4 bytes), and the record, all little-endian. The
// number is written last. A record that is too long for a slot is in a separate file, which is
// never synced either.

const (
	tailPlaces = 64 // maximum number of slots
	tailPlace  = 8 << 10
	tailHead   = 16
)

// tailPath returns the path of a journal's tail.
func tailPath(path string) string { return path + "-tail" }

// asidePath returns the path of the file for a long record in a slot.
func asidePath(tail string, place int) string { return tail + "-" + strconv.Itoa(place) }

// tail is a file that is created when the first answer is put into it. If the system cannot map
// files, it has no slots, and every answer goes to the journal directly.
type tail struct {
	mu     sync.Mutex
	places int // number of slots to create; 0 after that was attempted
	memory []byte
	free   []int
	next   uint64
	path   string
	unmap  func()
	asides map[int]bool // slots with a separate file
}

func newTail(path string, places int) *tail {
	return &tail{places: places, next: 1, path: path, asides: map[int]bool{}}
}

// open creates the file. The caller holds mu.
func (t *tail) open() {
	if t.memory, t.unmap = mapFile(t.path, t.places*tailPlace); t.memory != nil {
		for i := range t.places {
			t.free = append(t.free, i)
		}
	}
	t.places = 0
}

// put stores a record and returns its slot, or -1 if none is free.
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

// take reserves a free slot. It returns -1 if there is none.
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

// done frees a slot.
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

// close unmaps the tail. With remove it also deletes the files.
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

// removeTail deletes the files of an abandoned tail.
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

// placeChecksum returns the checksum of a number and a record. It distinguishes used slots from
// free ones.
func placeChecksum(number uint64, record []byte) uint32 {
	head := binary.LittleEndian.AppendUint64(nil, number)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(record)))
	return crc32.Update(checksum(head), crc32.MakeTable(crc32.Castagnoli), record)
}

// moveTail renames the files of an abandoned tail.
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

// readTail returns the records of an abandoned tail in the order in which they were stored, and
// the number of damaged ones. old means that it belongs to a journal of format 1, whose
// checksum is the CRC-32 of the record alone.
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

// recordOf returns the record in a slot, or nil if it is shorter than its length field.
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
