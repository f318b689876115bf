package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// The lock is the same as that of OpenTofu and Terraform: an exclusive record lock on the whole
// state file, which is created empty if it does not exist, and a file .NAME.lock.info that
// describes the holder. Only the record lock decides who has the lock. (OpenTofu waits for a
// lock only if the info file exists.)
//
// A record lock belongs to a file and not to its name. After a process gets the lock it checks
// that the file still has the name; if not, it starts again. A file that replaces a locked file
// is locked before it gets the name.

// run is the data of a Store about the current run.
type run struct {
	mu       sync.Mutex
	backedUp bool
	held     *held // nil without a lock
}

// errBusy is the error that another process has the lock.
var errBusy = errors.New("another process holds the lock")

// Lock locks the file that is written.
func (s *Store) Lock(ctx context.Context, info store.LockInfo, timeout time.Duration) (func() diag.List, diag.List) {
	s.complete(&info)
	limited, cancel := context.WithTimeout(ctx, max(timeout, 0))
	defer cancel()
	said := s.o.Waiting == nil
	over := timeout <= 0
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		l, err := s.tryLock(info)
		var shared *sharedError
		switch {
		case err == nil:
			return sync.OnceValue(l.unlock), nil
		case errors.As(err, &shared):
			return nil, diag.Errorf(diag.CodeEstateSharedState, nil, "Two units with one state", "%s", shared.Error())
		case !errors.Is(err, errBusy):
			return nil, s.located(diag.Errorf(diag.CodeBackendLockFailed, nil, "Error acquiring the state lock", "The state file %s cannot be locked: %s. It must be possible to create and change files in its directory.", s.shown, reason(err)))
		}
		if timeout > 0 && !said {
			said = true
			s.o.Waiting(s.holder())
		}
		if !over && !sleep(limited, wait) && ctx.Err() == nil { // the last attempt is at the end of the timeout
			over = true
			continue
		}
		if over || ctx.Err() != nil {
			return nil, s.located(store.Locked("The state file "+s.shown+" is locked: another process works on it", s.holder()))
		}
	}
}

func (s *Store) complete(info *store.LockInfo) {
	if info.ID == "" {
		info.ID = store.NewID()
	}
	if info.Who == "" {
		info.Who = s.o.Who
	}
	if info.Created.IsZero() && s.o.Now != nil {
		info.Created = s.o.Now().UTC()
	}
	if info.Path == "" {
		info.Path = s.shown
	}
}

// holder returns the holder of the lock, or nil if it is unknown.
func (s *Store) holder() *store.LockInfo {
	b, err := readfile.Whole(beside(s.out, ".lock.info"))
	if err != nil {
		return nil
	}
	i, err := store.ParseLockInfo(b)
	if err != nil {
		return nil
	}
	return &i
}

// A sharedError reports that two units have the same state file.
type sharedError struct{ path, first, second string }

func (e *sharedError) Error() string {
	return fmt.Sprintf("The units %s and %s both keep their state in %s. Each would treat the other's resources as its own and destroy them. Give each a path of its own.", e.first, e.second, e.path)
}

// A lock contains the data that is needed to release a lock.
type lock struct {
	s    *Store
	h    *held
	info string   // file that describes the holder
	made bool     // the state file was created for the lock
	dirs []string // directories that were created for the lock, innermost last
}

// tryLock takes the lock, or returns an error with the reason.
func (s *Store) tryLock(info store.LockInfo) (*lock, error) {
	path, err := resolve(s.out)
	if err != nil {
		return nil, err
	}
	s.run.mu.Lock() // always taken before the lock of the table
	defer s.run.mu.Unlock()
	process.mu.Lock()
	defer process.mu.Unlock()
	if err := process.conflict(path, s.o.Unit); err != nil {
		return nil, err
	}
	l := &lock{s: s, info: beside(s.out, ".lock.info")}
	if l.dirs, err = makeDirs(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := l.open(path)
	if err != nil {
		l.removeDirs()
		return nil, err
	}
	l.h = &held{path: path, store: s, files: []*os.File{f}}
	if err := writeInfo(l.info, info.JSON()); err != nil {
		l.release()
		return nil, err
	}
	cleanUp(path)
	process.add(l.h)
	s.run.held = l.h
	return l, nil
}

// writeInfo writes the holder of the lock. It first removes an existing file, which is outdated or
// was created by another program. A checkout may contain a link with this name, which must not be
// followed.
func writeInfo(path string, text []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// conflict returns an error if this process has the lock already, for the same or another unit.
func (t *table) conflict(path, unit string) error {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	if h := t.find(path, info); h != nil {
		if h.store.o.Unit != unit {
			return &sharedError{path: path, first: h.store.unitName(), second: unitName(unit)}
		}
		return fmt.Errorf("%w, in this same process", errBusy)
	}
	return nil
}

func (s *Store) unitName() string { return unitName(s.o.Unit) }

func unitName(unit string) string {
	if unit == "" {
		return "(the directory without a unit file)"
	}
	return unit
}

// open opens and locks the file that has the name after it was locked.
func (l *lock) open(path string) (*os.File, error) {
	for range 100 {
		info, err := os.Stat(path)
		l.made = errors.Is(err, fs.ErrNotExist)
		if err == nil {
			err = readfile.Regular(path, info)
		}
		if err != nil && !l.made {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		// Closing the file is safe: claim checked that this process has no lock on it.
		if err := lockFile(f); err != nil {
			f.Close()
			return nil, err
		}
		have, errHave := f.Stat()
		want, errWant := os.Stat(path)
		if errHave == nil && errWant == nil && os.SameFile(have, want) {
			return f, nil
		}
		unlockFile(f)
		f.Close()
	}
	return nil, errBusy
}

// unlock copies the state to the file that was locked first, releases the lock and removes its
// files.
func (l *lock) unlock() diag.List {
	l.s.run.mu.Lock()
	defer l.s.run.mu.Unlock()
	l.s.run.held = nil
	l.h.returnToFirst() // before the table is locked, because it may take some time
	process.mu.Lock()
	defer process.mu.Unlock()
	process.remove(l.h)
	return l.release()
}

// release closes the files, which releases the locks.
func (l *lock) release() diag.List {
	var ds diag.List
	if err := os.Remove(l.info); err != nil && !errors.Is(err, fs.ErrNotExist) {
		ds = diag.Warnf(diag.CodeStateLockInfo, nil, "Lock information left behind", "The file %s, which tells who has the lock, cannot be removed: %s. The lock itself is given up.", l.info, reason(err))
	}
	if st, err := l.h.current().Stat(); err == nil && l.made && st.Size() == 0 && isAt(l.h.current(), l.h.path) {
		os.Remove(l.h.path) // nothing was written, and no other process has created the file without the lock
	}
	if l.h.spare != nil {
		discard(l.h.spare)
	}
	for _, f := range l.h.files {
		unlockFile(f)
		f.Close()
	}
	l.removeDirs()
	return ds
}

// removeDirs removes directories that were created for the lock and are empty.
func (l *lock) removeDirs() {
	for i := len(l.dirs) - 1; i >= 0; i-- {
		if os.Remove(l.dirs[i]) != nil {
			return
		}
	}
}

// makeDirs creates a directory with its parents, and returns those that did not exist.
func makeDirs(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append([]string{d}, missing...)
	}
	return missing, os.MkdirAll(dir, 0o777)
}
