package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A state file is replaced by a new file, which is written next to it, synced, locked if the
// old one is locked, and renamed; then the directory is synced. At every moment the name refers
// to a complete state, and to a locked one.
//
// However, a process that waits for the lock (tofu plan -lock-timeout=1m) may have opened the
// old file and wait for a lock on that. It would get the lock on a file without a name, read an
// old state from it, and write a new state that would be lost. The first file therefore keeps a
// second name. Before the lock is released, it gets the content of the last file and its old
// name back. If that fails, the last file remains, and only such waiting processes are
// affected.

// keepSuffix ends the second name, and tempSuffix the name of an incomplete file. The holder of
// the lock may delete files with these names, since a killed run left them. Processes without
// the lock use other names.
const (
	keepSuffix = ".lock.keep"
	tempSuffix = ".new"
)

// tempName returns the name of an incomplete file that will replace path.
func tempName(path string, locked bool) string {
	if locked {
		return beside(path, tempSuffix)
	}
	return beside(path, "."+store.NewID()+tempSuffix)
}

// cleanUp deletes the files that a killed run left. The caller holds the lock.
func cleanUp(path string) {
	os.Remove(beside(path, keepSuffix))
	os.Remove(beside(path, tempSuffix))
	// Backups of state commands have the time in their names.
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, mine := strings.CutPrefix(e.Name(), "."+filepath.Base(path)+".")
		stamp, whole := strings.CutSuffix(rest, ".backup"+tempSuffix)
		if _, err := strconv.ParseUint(stamp, 10, 64); mine && whole && err == nil {
			os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// A text writes the content of a file, any number of times. The text of a large state is
// therefore not in memory.
type text func(io.Writer) error

func textOf(b []byte) text {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// contentOf returns the text of an open file. It does not move the file's position.
func contentOf(f *os.File) text {
	return func(w io.Writer) error {
		_, err := io.CopyBuffer(w, struct{ io.Reader }{io.NewSectionReader(f, 0, math.MaxInt64)}, make([]byte, 128<<10))
		return err
	}
}

// holds reports whether a file has this content.
func (t text) holds(f *os.File) (bool, error) {
	c := &comparison{f: f, buf: make([]byte, 16<<10)}
	switch err := t(c); {
	case errors.Is(err, errDiffers):
		return false, nil
	case err != nil:
		return false, err
	}
	info, err := f.Stat()
	return err == nil && info.Size() == c.at, err
}

// equals reports whether a reader returns this content.
func (t text) equals(r io.Reader) (bool, error) {
	c := &matching{r: r, buf: make([]byte, 16<<10)}
	switch err := t(c); {
	case errors.Is(err, errDiffers):
		return false, nil
	case err != nil:
		return false, err
	}
	n, err := io.ReadFull(r, c.buf[:1])
	if err == io.EOF {
		err = nil
	}
	return n == 0, err
}

// A matching compares written bytes with those of a reader.
type matching struct {
	r   io.Reader
	buf []byte
}

func (m *matching) Write(b []byte) (int, error) {
	for part := range slices.Chunk(b, len(m.buf)) {
		n, err := io.ReadFull(m.r, m.buf[:len(part)])
		switch {
		case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
			return 0, err
		case !bytes.Equal(m.buf[:n], part):
			return 0, errDiffers
		}
	}
	return len(b), nil
}

// errDiffers ends a comparison.
var errDiffers = errors.New("the content is another one")

// A comparison compares written bytes with a file.
type comparison struct {
	f   *os.File
	at  int64
	buf []byte
}

func (c *comparison) Write(b []byte) (int, error) {
	for part := range slices.Chunk(b, len(c.buf)) {
		n, err := c.f.ReadAt(c.buf[:len(part)], c.at)
		switch {
		case err != nil && err != io.EOF:
			return 0, err
		case !bytes.Equal(c.buf[:n], part):
			return 0, errDiffers
		}
		c.at += int64(n)
	}
	return len(b), nil
}

// Write replaces the state file. The first write of a Store that changes the file saves the old
// content in the backup file.
func (s *Store) Write(_ context.Context, st *state.State) diag.List {
	return s.write(func(w io.Writer) error { return statefile.Write(w, st, true) }, st)
}

func (s *Store) write(content text, st *state.State) diag.List {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	path, err := resolve(s.out)
	if err != nil {
		return s.writeError(s.out, err)
	}
	var before text // content of the backup; nil means the content of the file
	if s.o.Sealer != nil {
		var done bool
		if content, before, done, err = s.sealed(path, content, st); err != nil {
			return diag.Errorf(diag.CodeBackendWriteFailed, store.PlaceOf(err), "Failed to encrypt the state", "The state file %s was not written, since the state cannot be encrypted: %s. It holds what it held before.", path, reason(err))
		}
		if done {
			return nil
		}
	}
	same := false
	var ds diag.List
	_, err = process.open(path, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil || info.Size() == 0 {
			return err
		}
		if same, err = content.holds(f); same || err != nil {
			return err
		}
		if before == nil {
			before = contentOf(f)
		}
		ds = s.keepBackup(path, before)
		return nil
	})
	switch {
	case ds.HasErrors() || same:
		return ds
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s.writeError(path, err)
	}
	if h := s.run.held; h != nil {
		err = h.write(content)
	} else {
		err = replaceUnlocked(path, content)
	}
	if err != nil {
		return s.writeError(path, err)
	}
	return nil
}

// keepBackup writes the backup before the first write that changes the file.
func (s *Store) keepBackup(path string, before text) diag.List {
	if s.run.backedUp || s.backup == "" {
		return nil
	}
	if err := s.unlinkBackup(); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "Failed to back up state", "The backup file %s is a link, which cannot be removed: %s. The state was not changed.", s.backup, reason(err))
	}
	if err := replace(s.backup, before, modeOf(path), s.run.held != nil); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "Failed to back up state", "The backup file %s cannot be written: %s. The state was not changed.", s.backup, reason(err))
	}
	s.run.backedUp = true
	return nil
}

// sealed encrypts the content to write. It also encrypts the old content if it is not encrypted
// in the same way, since it becomes the backup. done means that the file has the content
// already and must not be changed.
func (s *Store) sealed(path string, content text, st *state.State) (after, before text, done bool, err error) {
	migrate, err := s.old(path, func(plain io.Reader) (err error) {
		done, err = content.equals(plain)
		return err
	})
	// If a file cannot be decrypted, it was never read: it has another key, or is not a state.
	if done = done && err == nil && !migrate; done {
		return nil, nil, true, nil
	}
	if migrate && err == nil {
		if before, err = s.resealed(path); err != nil {
			return nil, nil, false, err
		}
	}
	sealed, err := s.o.Sealer.Seal(sealing.Plaintext{Write: content, Serial: st.Serial, Lineage: st.Lineage, Indent: true})
	return sealed, before, false, err
}

// resealed returns the state in the file with the current encryption; nil if the file contains
// no state.
func (s *Store) resealed(path string) (text, error) {
	var plain []byte
	if _, err := s.old(path, func(r io.Reader) (err error) {
		plain, err = io.ReadAll(r)
		return err
	}); err != nil {
		return nil, err
	}
	was, ds := statefile.Parse(path, plain)
	if was == nil || ds.HasErrors() {
		return nil, nil
	}
	return s.o.Sealer.Seal(sealing.Plaintext{Write: textOf(plain), Serial: was.Serial, Lineage: was.Lineage, Indent: true})
}

// old passes the decrypted content of the file to read.
func (s *Store) old(path string, read func(plain io.Reader) error) (migrate bool, err error) {
	open := func(r io.Reader, size int64) error {
		if size == 0 {
			return read(r)
		}
		plain, m, err := s.o.Sealer.Open(r, size)
		if err != nil {
			return err
		}
		migrate = m
		return read(plain)
	}
	var small []byte
	_, err = process.open(path, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() >= large {
			return open(io.NewSectionReader(f, 0, info.Size()), info.Size())
		}
		small, err = readAt(f)
		return err
	})
	if err == nil && small != nil {
		err = open(bytes.NewReader(small), int64(len(small)))
	}
	return migrate, err
}

// unlinkBackup removes a link with the default name of the backup. It may have come with a
// checkout, and its target must not be overwritten. A name that the user gave is not affected.
func (s *Store) unlinkBackup() error {
	if s.backup != s.out+".backup" {
		return nil
	}
	if info, err := os.Lstat(s.backup); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	return os.Remove(s.backup)
}

func (s *Store) writeError(path string, err error) diag.List {
	return diag.Errorf(diag.CodeStateFile, nil, "Failed to write state", "The state file %s cannot be written: %s. It holds what it held before.", path, reason(err))
}

// replaceUnlocked replaces a file in a run with -lock=false.
func replaceUnlocked(path string, content text) error {
	process.mu.RLock()
	defer process.mu.RUnlock()
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	if h := process.find(path, info); h != nil { // another store of this process has the lock
		return h.write(content)
	}
	if _, err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	return replace(path, content, modeOf(path), false)
}

// byDefault means the default permissions of new files.
const byDefault fs.FileMode = 0

// modeOf returns the permissions of a file.
func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return byDefault
}

// replace replaces a file by one with the given content, completely or not at all. Processes
// that have the file open keep the old one. locked means that the lock of the file is held.
func replace(path string, content text, mode fs.FileMode, locked bool) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	temp := tempName(path, locked)
	f, err := create(temp, content, mode)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// create creates a new file with its content on disk. It first deletes a file with this name,
// which a killed run left.
func create(temp string, content text, mode fs.FileMode) (*os.File, error) {
	f, err := temporary(temp, mode)
	if err != nil {
		return nil, err
	}
	return filled(f, content, mode)
}

// temporary creates a new file, and deletes one that a killed run left.
func temporary(temp string, mode fs.FileMode) (*os.File, error) {
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	first := fs.FileMode(0o600)
	if mode == byDefault {
		first = 0o666
	}
	return os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, first)
}

// filled writes the content of a temporary file. With errors the file is deleted.
func filled(f *os.File, content text, mode fs.FileMode) (*os.File, error) {
	if mode != byDefault {
		_ = f.Chmod(mode) // if that fails, the stricter permissions remain
	}
	if err := overwrite(f, content); err != nil {
		discard(f)
		return nil, err
	}
	return f, nil
}

// discard deletes a temporary file.
func discard(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

// reserve creates the file for the next write with disk space for size bytes, after it checked
// that there is space for all bytes.
func (h *held) reserve(size, all int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.spare
	if f == nil {
		var err error
		if f, err = temporary(beside(h.path, tempSuffix), modeOf(h.path)); err != nil {
			return err
		}
	}
	h.spare = nil
	if err := errors.Join(room(f, all), f.Truncate(size)); err != nil {
		discard(f)
		return err
	}
	h.spare = f
	return nil
}

// next returns the file that replaces the current one: the reserved one, or a new one.
func (h *held) next(content text) (*os.File, error) {
	mode := modeOf(h.path)
	f := h.spare
	h.spare = nil
	if f != nil && !isAt(f, f.Name()) { // another process has deleted it
		f.Close()
		f = nil
	}
	if f == nil {
		return create(beside(h.path, tempSuffix), content, mode)
	}
	return filled(f, content, mode)
}

// isAt reports whether path is the name of an open file.
func isAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(have, now)
}

// errReplaced is the error that another program has written a state file although it was
// locked.
var errReplaced = errors.New("another program, which did not take the lock, has replaced the file since it was locked")

// write replaces a locked file.
func (h *held) write(content text) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := os.Stat(h.path); err == nil && !isAt(h.current(), h.path) {
		return errReplaced
	}
	f, err := h.next(content)
	if err != nil {
		return err
	}
	if !renameOverOpen {
		err := overwrite(h.current(), content)
		f.Close()
		if err == nil {
			os.Remove(f.Name())
		}
		return err
	}
	if err := lockFile(f); err != nil {
		discard(f)
		return err
	}
	if len(h.files) == 1 {
		_ = os.Link(h.path, beside(h.path, keepSuffix)) // some file systems do not support links
	}
	if err := os.Rename(f.Name(), h.path); err != nil {
		discard(f)
		return err
	}
	h.list.Lock()
	h.files = append(h.files, f)
	h.list.Unlock()
	return syncDir(filepath.Dir(h.path))
}

// returnToFirst copies the current content to the file that was locked first, and restores its
// name.
func (h *held) returnToFirst() {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := beside(h.path, keepSuffix)
	if len(h.files) == 1 {
		return
	}
	defer os.Remove(keep)
	kept, err := os.Stat(keep)
	if err != nil {
		return
	}
	first := h.files[0]
	if have, err := first.Stat(); err != nil || !os.SameFile(have, kept) || !isAt(h.current(), h.path) {
		return
	}
	if overwrite(first, contentOf(h.current())) != nil {
		return
	}
	if now, err := os.Stat(h.path); err != nil || first.Chmod(now.Mode().Perm()) != nil {
		return
	}
	// The directory need not be synced: both files are on disk and contain the state.
	_ = os.Rename(keep, h.path)
}

// overwrite changes the content of a file in place.
func overwrite(f *os.File, content text) error {
	w := io.NewOffsetWriter(f, 0)
	if err := content(w); err != nil {
		return err
	}
	size, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// Prepare checks that a state of about size bytes could be written. The directories of the
// state and the backup must be writable, with disk space for the new state, the backup and a
// journal. With a lock, the space for the state is reserved until it is written or the lock is
// released.
func (s *Store) Prepare(_ context.Context, size, _ int64) diag.List {
	path, err := resolve(s.out)
	if err != nil {
		return s.writeError(s.out, err)
	}
	var old int64
	if info, err := os.Stat(path); err == nil {
		old = info.Size()
	}
	if err := s.hasRoom(path, max(old, size)); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "State cannot be written", "The state file %s could not be written at the end: %s. Nothing was changed.", path, reason(err))
	}
	if s.backup == "" || old == 0 {
		return nil
	}
	if err := probe(s.backup, 1, s.isLocked()); err != nil {
		return diag.Errorf(diag.CodeStateFile, nil, "State cannot be backed up", "The backup file %s could not be written: %s. Nothing was changed.", s.backup, reason(err))
	}
	return nil
}

// hasRoom checks that there is disk space for a state of size bytes, its backup and a journal.
// With a lock, the space for the state is reserved.
func (s *Store) hasRoom(path string, size int64) error {
	all := 3*size + 1<<16
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if h := s.run.held; h != nil {
		return h.reserve(size, all)
	}
	made, err := makeDirs(filepath.Dir(path))
	if err == nil {
		err = probe(path, all, false)
	}
	for i := len(made) - 1; i >= 0; i-- {
		os.Remove(made[i])
	}
	return err
}

func (s *Store) isLocked() bool {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.held != nil
}

// probe creates a file of the given size next to path and deletes it.
func probe(path string, size int64, locked bool) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	f, err := temporary(tempName(path, locked), 0o600)
	if err != nil {
		return err
	}
	return errors.Join(room(f, size), f.Close(), os.Remove(f.Name()))
}

// room allocates disk space for size bytes of a new file, if the system can do that.
func room(f *os.File, size int64) error {
	err := reserve(f.Fd(), size)
	if err == nil {
		_, err = f.WriteAt([]byte{'\n'}, 0)
	}
	return err
}
