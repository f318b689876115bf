package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// process is the one table of all state files that this process has open. It
// is a variable of the package because what it guards belongs to the process:
// the kernel drops a lock when any descriptor of the file is closed, whoever
// opened it.
var process table

// A table knows which state files are locked, and keeps others from opening
// and closing them behind the lock's back.
type table struct {
	// mu is held for reading while a file that is not locked is read, and for
	// writing while a lock is taken or given up: a lock must not come into being
	// between somebody's open and close of the same file.
	mu   sync.RWMutex
	held []*held
}

// held is one locked state file.
type held struct {
	path  string // resolved
	store *Store

	mu    sync.Mutex // held while the file is written
	spare *os.File   // made and given room for the next write; nil if there is none
	list  sync.Mutex // held for a moment to look at files or, together with mu, to change them
	files []*os.File // every file that was at the path since the lock was taken, all locked, the present one last
}

// current is the file at the path.
func (h *held) current() *os.File { return h.files[len(h.files)-1] }

// find looks for a locked file by resolved path, or by identity where info is
// not nil: there may be more than one way to a file. The caller holds mu.
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

// is reports whether a file is one of those that are held open.
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

// read returns the content of a state file. held tells that this process has
// it locked, so that nobody else writes it.
func (t *table) read(path string) (b []byte, isHeld bool, err error) {
	isHeld, err = t.open(path, func(f *os.File) (err error) {
		b, err = readAt(f)
		return err
	})
	return b, isHeld, err
}

// open lets do read a state file, whose position it must not move. held is as for read.
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
		return false, errors.New("it is a folder")
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
