package readfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/terrace-iac/terrace/internal/base/parallel"
)

// A snapshot caches what the system says about files, for a command during which nothing changes them. nil
// caches nothing. Its methods may be called concurrently.
type snapshot struct {
	stats, lstats parallel.Memo[string, snapshotStat] // by path
	dirs          parallel.Memo[string, snapshotDir]  // by path
	size          atomic.Int64

	mu    sync.Mutex
	files map[string]*snapshotFile // by path
}

type snapshotStat struct {
	info fs.FileInfo
	err  error
}

type snapshotDir struct {
	entries []fs.DirEntry
	err     error
}

type snapshotFile struct {
	mu   sync.Mutex
	done bool
	text []byte
	err  error
}

// Snapshot returns a Kept that asks the system once about each file and directory, for a command during
// which nothing changes the files that it reads. k may be nil.
func (k *Kept) Snapshot() *Kept {
	n := &Kept{fixed: &snapshot{}}
	if k != nil {
		n.Replace, n.Missing = k.Replace, k.Missing
	}
	return n
}

// snapshot returns the snapshot of the files on disk, or nil. k may be nil.
func (k *Kept) snapshot() *snapshot {
	switch {
	case k == nil:
		return nil
	case k.disk != nil:
		return k.disk.fixed
	}
	return k.fixed
}

func (s *snapshot) stat(path string) (fs.FileInfo, error) {
	if s == nil {
		return os.Stat(path)
	}
	return s.ask(&s.stats, path, os.Stat)
}

func (s *snapshot) lstat(path string) (fs.FileInfo, error) {
	if s == nil {
		return os.Lstat(path)
	}
	return s.ask(&s.lstats, path, os.Lstat)
}

func (s *snapshot) ask(known *parallel.Memo[string, snapshotStat], path string, ask func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	if s.absent(path) {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: syscall.ENOENT}
	}
	r := known.Of(path, func() (snapshotStat, bool) {
		info, err := ask(path)
		return snapshotStat{info, err}, true
	})
	return r.info, r.err
}

// absent reports whether a listed directory shows that nothing is at a path, so that the system need not be
// asked. On other systems than Linux, a file can be opened by a name that differs in case from the one in the
// list.
func (s *snapshot) absent(path string) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	path = filepath.Clean(path)
	for {
		dir := filepath.Dir(path)
		if dir == path || dir == "." {
			return false
		}
		if list, ok := s.dirs.Get(dir); ok && list.err == nil {
			_, found := slices.BinarySearchFunc(list.entries, filepath.Base(path), func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
			return !found
		}
		path = dir
	}
}

func (s *snapshot) readDir(path string) ([]fs.DirEntry, error) {
	if s == nil {
		return os.ReadDir(path)
	}
	r := s.dirs.Of(path, func() (snapshotDir, bool) {
		entries, err := os.ReadDir(path)
		return snapshotDir{entries, err}, true
	})
	return slices.Clone(r.entries), r.err
}

// whole is like the function Whole.
func (s *snapshot) whole(path string) ([]byte, error) {
	path = filepath.Clean(path)
	if s.absent(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	f := s.file(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return f.text, f.err
	}
	text, err := Whole(path)
	if n := int64(len(text)); s.size.Add(n) > mostKept {
		s.size.Add(-n)
		if info, fails := os.Stat(path); fails != nil || !stream(info) { // a stream cannot be read twice
			return text, err
		}
	}
	f.done, f.text, f.err = true, text, err
	return text, err
}

func (s *snapshot) file(path string) *snapshotFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		if s.files == nil {
			s.files = map[string]*snapshotFile{}
		}
		f = &snapshotFile{}
		s.files[path] = f
	}
	return f
}

// walkDir is like filepath.WalkDir.
func (s *snapshot) walkDir(root string, visit fs.WalkDirFunc) error {
	if s == nil {
		return filepath.WalkDir(root, visit)
	}
	info, err := s.lstat(root)
	if err != nil {
		err = visit(root, nil, err)
	} else {
		err = walk(s.readDir, root, fs.FileInfoToDirEntry(info), visit)
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}
