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

// A state file is replaced by a new one: written beside it, synced, locked if
// the old one is, renamed, folder synced. So at every moment the name leads to
// a whole state, and to one that is locked.
//
// But somebody who waits for the lock (tofu plan -lock-timeout=1m) may have
// opened the old file and wait for that: they would get the lock on a file
// without a name, read old state from it and write new state into it, which
// would be lost. So the first file keeps a second name, and before the lock is
// given up it gets the content of the last one and its old name back. If that
// fails, the last one stays: nothing is lost but the courtesy.

// keepSuffix is that of the second name, tempSuffix that of a file in the making:
// who has the lock may take away what is there under it, since it was left by a run
// that was killed. Who has no lock makes names of its own.
const (
	keepSuffix = ".lock.keep"
	tempSuffix = ".new"
)

// tempName is the name of a file in the making that is to replace path.
func tempName(path string, locked bool) string {
	if locked {
		return beside(path, tempSuffix)
	}
	return beside(path, "."+store.NewID()+tempSuffix)
}

// cleanUp takes away what a run left that was killed. The caller holds the lock.
func cleanUp(path string) {
	os.Remove(beside(path, keepSuffix))
	os.Remove(beside(path, tempSuffix))
	// Backups with the time in their names, which state commands make.
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

// A text writes the content of a file, as often as it is asked to: a large state is not
// in memory as a text.
type text func(io.Writer) error

func textOf(b []byte) text {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// contentOf is the text of an open file, whose position stays where it is.
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

// equals reports whether a reader gives this content.
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

// A matching holds what is written to it to what is read.
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

// A comparison holds what is written to it to a file.
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

// Write replaces the state file. The first write of a Store that changes the
// file leaves the old content in the backup file.
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
	var before text // what the backup is to hold; nil: what the file holds
	if s.sealer != nil {
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

// keepBackup writes the backup, before the first write that changes the file.
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

// sealed encrypts what is to be written, and the old content if it is not encrypted in the
// same way, since it becomes the backup. done says that the file holds the content already,
// and is not to be changed.
func (s *Store) sealed(path string, content text, st *state.State) (after, before text, done bool, err error) {
	migrate, err := s.old(path, func(plain io.Reader) (err error) {
		done, err = content.equals(plain)
		return err
	})
	// A file that cannot be opened nobody has read: another key, or no state at all.
	if done = done && err == nil && !migrate; done {
		return nil, nil, true, nil
	}
	if migrate && err == nil {
		if before, err = s.resealed(path); err != nil {
			return nil, nil, false, err
		}
	}
	sealed, err := s.sealer.Seal(sealing.Plaintext{Write: content, Serial: st.Serial, Lineage: st.Lineage, Indent: true})
	return sealed, before, false, err
}

// resealed is the state of the file as it is encrypted now; nil if it holds none.
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
	return s.sealer.Seal(sealing.Plaintext{Write: textOf(plain), Serial: was.Serial, Lineage: was.Lineage, Indent: true})
}

// old gives what the file holds to read, in the clear.
func (s *Store) old(path string, read func(plain io.Reader) error) (migrate bool, err error) {
	open := func(r io.Reader, size int64) error {
		if size == 0 {
			return read(r)
		}
		plain, m, err := s.sealer.Open(r, size)
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

// unlinkBackup removes a link that has the name of the backup, unless the user gave that
// name: it may have come with a checkout, and what it leads to is none of ours.
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

// replaceUnlocked is for runs with -lock=false.
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

// byDefault stands for the permissions that the process gives new files.
const byDefault fs.FileMode = 0

// modeOf is the permissions that a file has.
func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return byDefault
}

// replace puts content in the place of a file, wholly or not at all. Whoever
// has the file open keeps the old one. locked tells whether the lock is held that
// the file belongs to.
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

// create makes a new file with its content safely on disk. A file of the name
// that a killed run left is removed first.
func create(temp string, content text, mode fs.FileMode) (*os.File, error) {
	f, err := temporary(temp, mode)
	if err != nil {
		return nil, err
	}
	return filled(f, content, mode)
}

// temporary makes a new file, in the place of one that a killed run left.
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

// filled gives a temporary file its content. With errors the file is gone.
func filled(f *os.File, content text, mode fs.FileMode) (*os.File, error) {
	if mode != byDefault {
		_ = f.Chmod(mode) // where that is impossible the stricter one stays
	}
	if err := overwrite(f, content); err != nil {
		discard(f)
		return nil, err
	}
	return f, nil
}

// discard takes a temporary file away.
func discard(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

// reserve makes the file of the next write, with room for size bytes, having found
// out that there is room for all bytes.
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

// next is the file that takes the place of the present one: what was reserved for
// that, or a new one.
func (h *held) next(content text) (*os.File, error) {
	mode := modeOf(h.path)
	f := h.spare
	h.spare = nil
	if f != nil && !isAt(f, f.Name()) { // somebody took it away
		f.Close()
		f = nil
	}
	if f == nil {
		return create(beside(h.path, tempSuffix), content, mode)
	}
	return filled(f, content, mode)
}

// isAt reports whether an open file has this name.
func isAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(have, now)
}

// errReplaced says that somebody wrote a state file although it was locked.
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
		_ = os.Link(h.path, beside(h.path, keepSuffix)) // some file systems have no links
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

// returnToFirst gives the file that was locked first the present content and
// its name back.
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
	// The folder need not be synced: both files hold the state, and both are on disk.
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

// Prepare finds out whether a state of about size bytes could be written. It
// needs the folder of the state and that of the backup to be writable, and room
// for the new state, the backup and a journal. With a lock, the room for the
// state is kept until it is written or the lock is given up.
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

// hasRoom finds out whether there is room for a state of size bytes, its backup and a
// journal; with a lock, that for the state is kept.
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

// probe makes a file of the given size beside path and takes it away again.
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

// room makes a new file as large as size, where the system can promise that.
func room(f *os.File, size int64) error {
	err := reserve(f.Fd(), size)
	if err == nil {
		_, err = f.WriteAt([]byte{'\n'}, 0)
	}
	return err
}
