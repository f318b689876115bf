package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sealing"
)

// The file of a journal shows whether its run is still working: the run holds a lock on it,
// which the operating system releases when the process ends in any way. This is independent of
// how or whether the state is locked.
//
// A process that only reads a journal takes a shared lock briefly. A process that merges a
// journal permanently claims it, that is, it takes the same lock as the run. Of two such
// processes only one merges the journal, and no run can begin meanwhile.

// A Run describes the run that writes a journal.
type Run struct {
	Operation string // e.g. "OperationTypeApply"
	Who       string // user@host
	Process   int
	Since     time.Time
}

// String returns a description for the user.
func (r Run) String() string {
	if r == (Run{}) {
		return "another run"
	}
	what := strings.ToLower(strings.TrimPrefix(r.Operation, "OperationType"))
	return fmt.Sprintf("another run (%s by %s, process %d, since %s)", what, r.Who, r.Process, r.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// printable returns the run with texts that are safe to show on a terminal, whatever their
// origin.
func (r Run) printable() Run {
	r.Operation, r.Who = printable(r.Operation), printable(r.Who)
	return r
}

// printable removes control characters and truncates long texts.
func printable(text string) string {
	const most = 4096
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// errBusy is the error that another process holds the lock.
var errBusy = errors.New("another process has locked it")

// A LiveError reports that a journal belongs to a run that is still working.
type LiveError struct{ Run Run }

func (e *LiveError) Error() string { return "it belongs to a run that is at work: " + e.Run.String() }

// lock takes the lock of a new journal. A reader may hold a shared lock briefly.
func lock(f *os.File) error {
	for try := 0; ; try++ {
		err := tryLock(f, false)
		if !errors.Is(err, errBusy) || try == 100 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// stillAt reports whether path is the name of an open file.
func stillAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(have, now)
}

// Inspect reads a journal without changing anything. Recovered.Live reports whether its run is
// still working, and Recovered.Foreign whether it belongs to another user than u. If there is
// no file, the error is fs.ErrNotExist.
func Inspect(path string, sealer sealing.Sealer, u User) (*Recovered, error) {
	if err := notLinked(path); err != nil {
		return nil, err
	}
	f, err := readfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	live := errors.Is(tryLock(f, true), errBusy)
	if !live && !stillAt(f, path) {
		return nil, fs.ErrNotExist // its run has just ended
	}
	rec, err := read(f, path, sealer, &u)
	if rec != nil && live { // a record that is being written may look damaged
		rec.Live, rec.Bad, rec.BadTail = true, nil, 0
	}
	return rec, err
}

// read reads a journal and its tail. u is the user to whom it must belong; nil means that this
// is not checked.
func read(f *os.File, path string, sealer sealing.Sealer, u *User) (*Recovered, error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var j *judge
	if u != nil {
		j = &judge{*u, path}
	}
	rec, err := parse(b, func(old bool) ([][]byte, int) { return readTail(tailPath(path), old) }, sealer, j)
	if err == nil && u != nil {
		if t := rec.Transfer; t != nil && t.Decision == filepath.Base(path)+"-moved-"+t.ID {
			t.Into = true // the record in format 2
		}
		err = rec.decide(*u)
	}
	return rec, err
}

// notLinked returns an error if a journal is a link, which could refer to the journal of
// another state.
func notLinked(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Stat(path); err == nil {
			if err := readfile.Regular(path, to); err != nil {
				return err
			}
		}
		return errors.New("it is a symbolic link, which no run of Terrace makes")
	}
	return err
}

// A Claim is a journal whose run has ended, locked so that no other process can claim it.
type Claim struct {
	path string
	f    *os.File
}

// TakeOver claims a journal whose run has ended. The error is a *LiveError if the run is still
// working, and fs.ErrNotExist if there is no journal. The caller must call Close.
func TakeOver(path string, sealer sealing.Sealer) (*Claim, error) {
	for {
		if err := notLinked(path); err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil {
			if err := readfile.Regular(path, info); err != nil {
				return nil, err
			}
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err := lock(f); errors.Is(err, errBusy) {
			rec, _ := read(f, path, sealer, nil)
			f.Close()
			if rec == nil {
				rec = &Recovered{}
			}
			return nil, &LiveError{rec.Run}
		} // file systems without locks rely on the lock of the state
		if stillAt(f, path) {
			return &Claim{path, f}, nil
		}
		f.Close()
	}
}

// Recover reads the journal. Recovered.Foreign reports whether it belongs to another user than
// u.
func (c *Claim) Recover(sealer sealing.Sealer, u User) (*Recovered, error) {
	if _, err := c.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return read(c.f, c.path, sealer, &u)
}

// Discard removes the journal. The caller must have written the state with its contents, or
// saved them to a separate file.
func (c *Claim) Discard() error {
	if !removeOpen {
		c.Close()
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeTail(tailPath(c.path))
}

// KeepAside renames a damaged journal, so that it can be examined, and returns the new name.
func (c *Claim) KeepAside() (string, error) {
	if !removeOpen {
		c.Close()
	}
	aside := asideOf(c.path)
	if err := moveTail(tailPath(c.path), tailPath(aside)); err != nil {
		return "", err
	}
	return aside, os.Rename(c.path, aside)
}

// asideOf returns an unused name for a damaged journal.
func asideOf(path string) string {
	for n := 1; ; n++ {
		if aside := fmt.Sprintf("%s.damaged.%d", path, n); !Exists(aside) {
			return aside
		}
	}
}

// KeepCopy writes the bytes of a damaged journal that is not a file to a new file next to path,
// and returns its name.
func KeepCopy(path string, b []byte) (string, error) {
	aside := asideOf(path)
	return aside, os.WriteFile(aside, b, 0o600)
}

// Close releases the claim. It may be called more than once.
func (c *Claim) Close() { _ = c.f.Close() }
