package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// process is the table of all state files that this process has open. It is a package variable
// because locks belong to the process: the kernel releases a lock when any part of the process
// closes any descriptor of the file.
var process table

// A table records which state files are locked, and prevents other parts of the process from
// opening and closing them.
type table struct {
	// mu is read-locked while an unlocked file is read, and locked while a lock is taken or
	// released. A lock must not be taken between another goroutine's open and close of the same
	// file.
	mu   sync.RWMutex
	held []*held
}

// held is one locked state file.
type held struct {
	path  string // with links resolved
	store *Store

	mu    sync.Mutex // held while the file is written
	spare *os.File   // created with disk space for the next write; nil if there is none
	list  sync.Mutex // held briefly to read files, or together with mu to change them
	files []*os.File // every file that had the path since the lock was taken, all locked, the current one last
}

// current returns the file at the path.
func (h *held) current() *os.File { return h.files[len(h.files)-1] }

// find returns a locked file by its resolved path, or if info is not nil by its identity, since
// a file can have several paths. The caller holds mu.
func (t *table) find(path string, info fs.FileInfo) *held {
	for _, h := range t.held {
		if h.path == path {
			return h
		}
		if info != nil && h.is(info) {
			return h
		}
	}
	return nil
}

// is reports whether a file is one of those in files.
func (h *held) is(info fs.FileInfo) bool {
	h.list.Lock()
	defer h.list.Unlock()
	for _, f := range h.files {
		if have, err := f.Stat(); err == nil && os.SameFile(have, info) {
			return true
		}
	}
	return false
}

// read returns the content of a state file. isHeld means that this process has locked it, so
// that no other process writes it.
func (t *table) read(path string) (b []byte, isHeld bool, err error) {
	isHeld, err = t.open(path, func(f *os.File) (err error) {
		b, err = readAt(f)
		return err
	})
	return b, isHeld, err
}

// open calls do to read a state file. do must not move the file's position. isHeld is as for
// read.
func (t *table) open(path string, do func(*os.File) error) (isHeld bool, err error) {
	path, err = resolve(path)
	if err != nil {
		return false, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if h := t.find(path, info); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		return true, do(h.current())
	}
	if err != nil {
		return false, err
	}
	if info.IsDir() {
		return false, errors.New("it is a directory")
	}
	f, err := readfile.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return false, do(f)
}

// readAt reads a whole file without moving its position.
func readAt(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.ReadAt(b[len(b):cap(b)], int64(len(b)))
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		b = append(b, 0)[:len(b)]
	}
}

func (t *table) add(h *held) { t.held = append(t.held, h) }

func (t *table) remove(h *held) {
	for i, o := range t.held {
		if o == h {
			t.held = append(t.held[:i], t.held[i+1:]...)
			return
		}
	}
}
