package journal

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"slices"
	"sync"
)

// A write to a file can wait in the system for as long as a sync of that file
// takes, and a process that is killed meanwhile takes the answer along. So an
// answer is first put into a tail: a small file beside the journal that is mapped
// into memory and never synced, where writing is copying. Its place is free
// again when the answer is in the journal. A tail outlives the process; what
// outlives the machine is in the journal.
//
// A place holds the number of the record (8 bytes, from 1; 0: free), its length
// and its checksum (4 bytes each), and the record, all little-endian. The number
// is written last.

const (
	tailPlaces = 64      // at most
	tailPlace  = 8 << 10 // a longer record goes to the journal at once
	tailHead   = 16
)

// tailPath is where the tail of a journal lies.
func tailPath(path string) string { return path + "-tail" }

// tail is nil where the system cannot map files: then every answer goes to the
// journal at once.
type tail struct {
	mu     sync.Mutex
	memory []byte
	free   []int
	next   uint64
	path   string
	unmap  func()
}

func newTail(path string, places int) *tail {
	memory, unmap := mapFile(path, places*tailPlace)
	if memory == nil {
		return nil
	}
	t := &tail{memory: memory, next: 1, path: path, unmap: unmap}
	for i := range places {
		t.free = append(t.free, i)
	}
	return t
}

// put copies a record and returns its place, or -1 if there is none for it.
func (t *tail) put(record []byte) int {
	if t == nil || len(record) > tailPlace-tailHead {
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 || t.memory == nil {
		return -1
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	p := t.memory[i*tailPlace : (i+1)*tailPlace]
	copy(p[tailHead:], record)
	binary.LittleEndian.PutUint32(p[8:], uint32(len(record)))
	binary.LittleEndian.PutUint32(p[12:], crc32.ChecksumIEEE(record))
	binary.LittleEndian.PutUint64(p, t.next)
	t.next++
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

// close unmaps the tail; remove takes the file away too.
func (t *tail) close(remove bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory != nil {
		t.unmap()
		t.memory = nil
	}
	if remove {
		_ = os.Remove(t.path)
	}
}

// readTail returns the records of a tail that a run left, in the order in which
// they were put there. What is not whole is left out.
func readTail(path string) [][]byte {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	type found struct {
		n      uint64
		record []byte
	}
	var all []found
	for ; len(b) >= tailPlace; b = b[tailPlace:] {
		n, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
		if n == 0 || size > tailPlace-tailHead {
			continue
		}
		record := b[tailHead : tailHead+size]
		if crc32.ChecksumIEEE(record) == binary.LittleEndian.Uint32(b[12:]) {
			all = append(all, found{n, record})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if a.n < b.n {
			return -1
		}
		return 1
	})
	out := make([][]byte, len(all))
	for i, f := range all {
		out[i] = f.record
	}
	return out
}
