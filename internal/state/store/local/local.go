// Package local stores state in files, with the same names, locks and backups as the local
// backend of OpenTofu and Terraform.
//
// Main types: Store, returned by Open, and Workspaces. The one rule: state files are opened
// only through this package (Store.Read, ReadFile). With the locks that OpenTofu and Terraform
// use, closing any descriptor of a file releases the locks that the process has on it.
//
// write.go describes how a locked state file is replaced, lock.go how the lock works, and
// table.go who may open which file.
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

// The file names that OpenTofu and Terraform use.
const (
	DefaultPath         = "terraform.tfstate"
	DefaultWorkspaceDir = "terraform.tfstate.d"
)

// Options configures Open. Relative paths are relative to Dir.
type Options struct {
	Dir          string // base directory, absolute
	Path         string // file of the default workspace; "" means DefaultPath
	WorkspaceDir string // directory of the other workspaces; "" means DefaultWorkspaceDir
	Workspace    string // "" means the default workspace

	StatePath  string // -state: the file to read in any workspace; "" if not given
	OutPath    string // -state-out: the file to write; "" means the file that is read
	BackupPath string // -backup: "" means OutPath with ".backup", "-" means none

	Unit string // the unit to which the state belongs; two units with one file are an error. "" means no unit
	Who  string // user@host, for the lock
	Now  func() time.Time
	// Waiting is called once if the lock is held by another process and waited for. nil means
	// no notification.
	Waiting func(holder *store.LockInfo)
	// Locate adds the source range of the state's configuration to messages about the lock. nil
	// means that there is none.
	Locate func(diag.List) diag.List
	// Sealer encrypts the state and its backup. nil means no encryption.
	Sealer sealing.Sealer
}

// A Store is one state file. It is safe for concurrent use.
type Store struct {
	o Options

	in, out string // absolute, without resolving links
	shown   string // out in the form that is shown to the user
	backup  string // absolute; "" means none

	run     run
	migrate atomic.Bool // the state that was read is not encrypted as configured
}

// Open returns a Store. It does not access any file.
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
	s := &Store{o: o, shown: out, in: under(o.Dir, in), out: under(o.Dir, out)}
	switch o.BackupPath {
	case "":
		s.backup = s.out + ".backup"
	case "-":
	default:
		s.backup = under(o.Dir, o.BackupPath)
	}
	return s
}

// located returns messages about the lock with their source range.
func (s *Store) located(ds diag.List) diag.List {
	if s.o.Locate == nil {
		return ds
	}
	return s.o.Locate(ds)
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Path returns the absolute path of the file that is written.
func (s *Store) Path() string { return s.out }

// Place returns Path with links resolved, for messages and to find out whether two stores are
// the same.
func (s *Store) Place() string {
	path, err := resolve(s.out)
	if err != nil {
		return s.out
	}
	return path
}

// OtherOutput reports whether the files that are written and read are different.
func (s *Store) OtherOutput() bool { return s.in != s.out }

// JournalPath returns the path of the journal of an apply. It is next to the file that is
// written, with links resolved, so that every path to the state leads to the same journal.
func (s *Store) JournalPath() string {
	return beside(s.Place(), ".journal")
}

// beside returns the name of a hidden file that belongs to a state file.
func beside(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}

// Read returns the state, or nil if there is none. It may be called with or without a lock.
func (s *Store) Read(ctx context.Context) (*state.State, diag.List) {
	return s.readAs(ctx, false)
}

// ReadSummary implements store.SummaryReader.
func (s *Store) ReadSummary(ctx context.Context) (*state.State, diag.List) {
	return s.readAs(ctx, true)
}

func (s *Store) readAs(ctx context.Context, outline bool) (*state.State, diag.List) {
	st, migrate, ds := readFile(ctx, s.in, s.o.Sealer, outline)
	s.migrate.Store(migrate)
	return st, ds
}

// Migrating reports whether the next write must happen even if nothing changed, because the
// state that was read is not encrypted as configured.
func (s *Store) Migrating() bool { return s.migrate.Load() }

// ReadFile reads an unencrypted state file without affecting a lock on it. It returns nil if
// the file does not exist or is empty.
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
		// OpenTofu and Terraform write a state file in place, so that a file may be incomplete
		// while another process writes it.
		again := ds.HasErrors() || len(b) == 0 && locked(path)
		if !again || held || try >= 4 || !sleep(ctx, time.Duration(10<<try)*time.Millisecond) {
			return st, migrate, ds
		}
	}
}

// streamed reads a state file without having its text in memory. For an encrypted file, only
// one form of the text is in memory at a time. In any unusual case, from a missing file to an
// error in it, ok is false.
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
		// OpenTofu and Terraform write in place, so the file may have changed.
		ok = ok && err == nil && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime())
		return err
	})
	return st, migrate, ok && err == nil
}

// large is the size in bytes from which an encrypted file is decrypted while it is read. During
// that time this process cannot take a lock.
const large = 1 << 20

// opened returns the decrypted content of a state file.
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

// locked reports whether there is a file with the holder of a lock.
func locked(path string) bool {
	_, err := os.Lstat(beside(path, ".lock.info"))
	return err == nil
}

// sleep waits for d. It returns false if ctx ends first.
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

// reason returns an error of the operating system without the path, which the surrounding
// message contains.
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

// resolve resolves links. The last one may refer to a file that does not exist yet.
func resolve(path string) (string, error) {
	for range 40 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil // a missing directory contains no links
		}
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links")}
}
