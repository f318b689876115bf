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

// Whether the run that writes a journal is still at work, its file tells: the run
// holds a lock on it, which the system drops when the process ends, however it ends.
// That holds whatever the state is locked with, and if it is not locked at all.
//
// Who only looks asks for a shared lock for a moment, and takes nothing. Who folds a
// journal in for good claims it, that is, locks it as the run did, so that of two
// who come at once one folds it in and no run begins meanwhile.

// A Run tells who writes a journal.
type Run struct {
	Operation string // e.g. "OperationTypeApply"
	Who       string // user@host
	Process   int
	Since     time.Time
}

// String tells a user of the run.
func (r Run) String() string {
	if r == (Run{}) {
		return "another run"
	}
	what := strings.ToLower(strings.TrimPrefix(r.Operation, "OperationType"))
	return fmt.Sprintf("another run (%s by %s, process %d, since %s)", what, r.Who, r.Process, r.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// printable is the run with texts that can be shown on a terminal, whoever wrote them.
func (r Run) printable() Run {
	r.Operation, r.Who = printable(r.Operation), printable(r.Who)
	return r
}

// printable drops control characters, and what is longer than any name.
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

// errBusy says that somebody else has the lock.
var errBusy = errors.New("another process has locked it")

// A LiveError says that a journal belongs to a run that is at work.
type LiveError struct{ Run Run }

func (e *LiveError) Error() string { return "it belongs to a run that is at work: " + e.Run.String() }

// lock takes the lock of a new journal. Who only looks may have it for a moment.
func lock(f *os.File) error {
	for try := 0; ; try++ {
		err := tryLock(f, false)
		if !errors.Is(err, errBusy) || try == 100 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// stillAt reports whether an open file has this name.
func stillAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(have, now)
}

// Inspect reads a journal and leaves everything as it is. Recovered.Live tells whether its
// run is at work, Recovered.Foreign whether it is that of another user than u. Without a file
// the error is fs.ErrNotExist.
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
	if rec != nil && live { // what is just being written may look damaged
		rec.Live, rec.Bad, rec.BadTail = true, nil, 0
	}
	return rec, err
}

// read reads a journal and its tail. u is the user whose journal it may be; nil: nobody asks.
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
			t.Into = true // format 2 said it so
		}
		err = rec.decide(*u)
	}
	return rec, err
}

// notLinked refuses a link in the place of a journal: it could lead to the journal of
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

// A Claim is a journal whose run has ended, and which nobody else can claim.
type Claim struct {
	path string
	f    *os.File
}

// TakeOver claims a journal whose run has ended. The error is a *LiveError if it has
// not, and fs.ErrNotExist if there is no journal. The caller calls Close at the end.
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
		} // where files cannot be locked, the lock of the state must do
		if stillAt(f, path) {
			return &Claim{path, f}, nil
		}
		f.Close()
	}
}

// Recover reads the journal. Recovered.Foreign tells whether it is that of another user than u.
func (c *Claim) Recover(sealer sealing.Sealer, u User) (*Recovered, error) {
	if _, err := c.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return read(c.f, c.path, sealer, &u)
}

// Discard removes the journal once the state that it was folded into is written, or
// what it knew is saved apart.
func (c *Claim) Discard() error {
	if !removeOpen {
		c.Close()
	}
	if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeTail(tailPath(c.path))
}

// KeepAside gives a journal that is damaged another name, for who wants to look into
// it, and returns that.
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

// asideOf is a name that is free for a damaged journal.
func asideOf(path string) string {
	for n := 1; ; n++ {
		if aside := fmt.Sprintf("%s.damaged.%d", path, n); !Exists(aside) {
			return aside
		}
	}
}

// KeepCopy puts the bytes of a damaged journal that is no file into one beside where
// that would be, and returns its name.
func KeepCopy(path string, b []byte) (string, error) {
	aside := asideOf(path)
	return aside, os.WriteFile(aside, b, 0o600)
}

// Close gives the claim up. It may be called more than once.
func (c *Claim) Close() { _ = c.f.Close() }
