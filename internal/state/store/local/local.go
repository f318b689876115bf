// Package local keeps state in files, as the local backend of OpenTofu and
// Terraform does: the same names, the same lock, the same backups.
//
// Main types: Store, made by Open, and Workspaces. The one rule: whoever opens
// a state file goes through this package (Store.Read, ReadFile), since with the
// locks that the peers use, closing any descriptor of a file drops the locks
// that the process has on it.
//
// How a state file is replaced while a lock is held stands in write.go, how
// the lock works in lock.go, and who may open what in table.go.
package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// The names that the peers use.
const (
	DefaultPath         = "terraform.tfstate"
	DefaultWorkspaceDir = "terraform.tfstate.d"
)

// Options say where a state lives. Relative paths count from Dir.
type Options struct {
	Dir          string // base folder, absolute
	Path         string // file of the default workspace; "" is DefaultPath
	WorkspaceDir string // folder of the other workspaces; "" is DefaultWorkspaceDir
	Workspace    string // "" is the default one

	StatePath  string // -state: the file to read, whatever the workspace; "" if not given
	OutPath    string // -state-out: the file to write; "" is the one that is read
	BackupPath string // -backup: "" is OutPath with ".backup", "-" is none

	Unit string // names the unit that the state belongs to; two units with one file are an error. "" is no unit
	Who  string // user@host, for the lock
	Now  func() time.Time
	// Waiting is called once if the lock is held and waited for; nil: nobody wants to know.
	Waiting func(holder *store.LockInfo)
	// Locate gives messages about the lock their place, that of what configures the state;
	// nil: nothing does.
	Locate func(diag.List) diag.List
	// Sealer encrypts the state and its backup; nil leaves them in the clear.
	Sealer sealing.Sealer
}

// A Store is one state file. Its methods may be called concurrently.
type Store struct {
	unit, who string
	now       func() time.Time
	waiting   func(*store.LockInfo)
	locate    func(diag.List) diag.List
	sealer    sealing.Sealer

	in, out string // absolute, as given: links are not resolved
	shown   string // out as the user knows it
	backup  string // absolute; "" for none

	run     run
	migrate atomic.Bool // what was read is not encrypted as it is to be now
}

// Open makes a Store. It touches no file.
func Open(o Options) *Store {
	in := o.StatePath
	if in == "" {
		in = o.Path
		if in == "" {
			in = DefaultPath
		}
		if o.Workspace != "" && o.Workspace != store.Default {
			dir := o.WorkspaceDir
			if dir == "" {
				dir = DefaultWorkspaceDir
			}
			in = filepath.Join(dir, o.Workspace, DefaultPath)
		}
	}
	out := o.OutPath
	if out == "" {
		out = in
	}
	s := &Store{unit: o.Unit, who: o.Who, now: o.Now, waiting: o.Waiting, locate: o.Locate, sealer: o.Sealer, shown: out, in: under(o.Dir, in), out: under(o.Dir, out)}
	switch o.BackupPath {
	case "":
		s.backup = s.out + ".backup"
	case "-":
	default:
		s.backup = under(o.Dir, o.BackupPath)
	}
	return s
}

// located are messages about the lock with their place.
func (s *Store) located(ds diag.List) diag.List {
	if s.locate == nil {
		return ds
	}
	return s.locate(ds)
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Path is the file that is written, absolute.
func (s *Store) Path() string { return s.out }

// Place is the same with links resolved, for messages and to see whether two stores are one.
func (s *Store) Place() string {
	path, err := resolve(s.out)
	if err != nil {
		return s.out
	}
	return path
}

// OtherOutput reports whether the file that is written is not the one that is read.
func (s *Store) OtherOutput() bool { return s.in != s.out }

// JournalPath is where the journal of an apply belongs: beside the file that is
// written, links resolved, so that every way to the state finds it.
func (s *Store) JournalPath() string {
	return beside(s.Place(), ".journal")
}

// beside makes the name of a hidden file that belongs to a state file.
func beside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}

// Read returns the state, or nil if there is none. It may be called with and
// without a lock.
func (s *Store) Read(ctx context.Context) (*state.State, diag.List) {
	return s.readAs(ctx, false)
}

// ReadSummary implements store.SummaryReader.
func (s *Store) ReadSummary(ctx context.Context) (*state.State, diag.List) {
	return s.readAs(ctx, true)
}

func (s *Store) readAs(ctx context.Context, outline bool) (*state.State, diag.List) {
	st, migrate, ds := readFile(ctx, s.in, s.sealer, outline)
	s.migrate.Store(migrate)
	return st, ds
}

// Migrating reports whether the next write must happen even if nothing changed, since
// what was read was not encrypted as it is to be now.
func (s *Store) Migrating() bool { return s.migrate.Load() }

// ReadFile reads a state file that is not encrypted, without disturbing a lock on it. A
// file that does not exist or is empty gives nil.
func ReadFile(ctx context.Context, path string) (*state.State, diag.List) {
	st, _, ds := readFile(ctx, path, nil, false)
	return st, ds
}

func readFile(ctx context.Context, path string, sealer sealing.Sealer, outline bool) (st *state.State, migrate bool, ds diag.List) {
	if st, migrate, ok := streamed(path, sealer, outline); ok {
		return st, migrate, nil
	}
	for try := 0; ; try++ {
		b, held, err := process.read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, false, nil
		case err != nil:
			return nil, false, diag.Errorf(diag.CodeStateFile, nil, "Failed to read state", "The state file %s cannot be read: %s.", path, reason(err))
		}
		if b, migrate, err = opened(b, sealer); err != nil {
			st, ds = nil, diag.Errorf(diag.CodeBackendReadFailed, store.PlaceOf(err), "Failed to decrypt the state", "The state file %s cannot be decrypted: %s.", path, err)
		} else {
			st, ds = statefile.Parse(path, b)
		}
		// The peers write a state file in place, so one that another process
		// writes just now may be seen half done.
		again := ds.HasErrors() || len(b) == 0 && locked(path)
		if !again || held || try >= 4 || !sleep(ctx, time.Duration(10<<try)*time.Millisecond) {
			return st, migrate, ds
		}
	}
}

// streamed reads a state file without having its text in memory; of one that is encrypted
// it is there in one form alone. With anything unusual, from no file to an error in it, ok
// is false.
func streamed(path string, sealer sealing.Sealer, outline bool) (st *state.State, migrate, ok bool) {
	_, err := process.open(path, func(f *os.File) error {
		before, err := f.Stat()
		if err != nil || before.Size() == 0 || sealer != nil && before.Size() < large {
			return err
		}
		var content io.Reader = io.NewSectionReader(f, 0, before.Size())
		if sealer != nil {
			if content, migrate, err = sealer.Open(content, before.Size()); err != nil {
				return err
			}
		}
		st, ok = statefile.ParseStream(content, outline)
		after, err := f.Stat()
		// The peers write in place.
		ok = ok && err == nil && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime())
		return err
	})
	return st, migrate, ok && err == nil
}

// large is from which size on a sealed file is not read before it is opened. While it is
// read, nobody in this process can take a lock.
const large = 1 << 20

// opened is the content of a state file in the clear.
func opened(content []byte, sealer sealing.Sealer) (plain []byte, migrate bool, err error) {
	if sealer == nil || len(content) == 0 {
		return content, false, nil
	}
	r, migrate, err := sealer.Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, false, err
	}
	plain, err = io.ReadAll(r)
	return plain, migrate, err
}

// locked reports whether somebody says that they hold the lock.
func locked(path string) bool {
	_, err := os.Lstat(beside(path, ".lock.info"))
	return err == nil
}

// sleep waits, and reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reason is an error of the operating system without the path, which the
// message around it names.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err.Error()
	}
	return err.Error()
}

// resolve follows links, the last one even to a file that does not exist yet.
func resolve(path string) (string, error) {
	for range 40 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil // no folder, hence no link in it
		}
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links")}
}
