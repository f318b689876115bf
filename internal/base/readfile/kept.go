package readfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Kept is a cache of file contents for one command. It returns a cached content only while
// the file has the same identity, size and times, so that changes by hooks, providers or
// other steps of the command are read. It does not cache a file that changed less than
// settled before it was read, because a second change could have the same times. The
// content of a stream is cached for the whole command, since a stream cannot be read twice.
//
// The zero value is ready to use; a nil *Kept caches nothing. It may be used concurrently.
// Callers must not change the returned content.
type Kept struct {
	// Replace returns the text that replaces a file on disk, such as the unsaved buffer of an
	// editor. ok is false if there is none. nil replaces no files.
	Replace func(path string) (text []byte, ok bool)
	// Missing is called for each path for which Stat returns an error. nil means no calls.
	Missing func(path string)

	// patch contains the differences of the files from those on disk, and disk the cache for what is
	// read from disk. nil means none.
	patch *Patch
	disk  *Kept
	fixed *snapshot // of the files on disk; nil: they may change

	mu    sync.Mutex
	files map[string]*keptFile
	size  int64 // of all contents, in bytes
}

type keptFile struct {
	mu   sync.Mutex
	text []byte
	info fs.FileInfo // at the time of reading; nil: nothing is cached
}

const (
	settled  = 2 * time.Second // the coarsest resolution of file times in use
	mostKept = 64 << 20
)

// Patched returns a Kept that reads the files of a tree that differs from the disk, with the cache of
// k for what is equal. It does not replace other files. k may be nil.
func (k *Kept) Patched(p *Patch) *Kept {
	if k != nil && k.disk != nil {
		k = k.disk
	}
	return &Kept{patch: p, disk: k}
}

// tree returns the differences from the files on disk, or nil. k may be nil.
func (k *Kept) tree() *Patch {
	if k == nil {
		return nil
	}
	return k.patch
}

// Stat is like os.Stat. It does not know replaced files. k may be nil.
func (k *Kept) Stat(path string) (fs.FileInfo, error) {
	info, err := k.tree().stat(k.snapshot(), "stat", path, true)
	if err != nil && k != nil && k.Missing != nil {
		k.Missing(filepath.Clean(path))
	}
	return info, err
}

// ReadDir is like os.ReadDir. It does not know replaced files. k may be nil.
func (k *Kept) ReadDir(path string) ([]fs.DirEntry, error) {
	return k.tree().readDir(k.snapshot(), path)
}

// WalkDir is like filepath.WalkDir. It does not know replaced files. k may be nil.
func (k *Kept) WalkDir(root string, visit fs.WalkDirFunc) error {
	return k.tree().walkDir(k.snapshot(), root, visit)
}

// EvalSymlinks is like filepath.EvalSymlinks. k may be nil.
func (k *Kept) EvalSymlinks(path string) (string, error) { return k.tree().EvalSymlinks(path) }

// Readlink is like os.Readlink. k may be nil.
func (k *Kept) Readlink(path string) (string, error) { return k.tree().Readlink(path) }

// Fixed reports whether the files are those of a revision, and not those on disk. k may be nil.
func (k *Kept) Fixed() bool { return k.tree() != nil }

// Whole is like the function Whole, with this cache.
func (k *Kept) Whole(path string) ([]byte, error) {
	s := k.snapshot()
	if s == nil {
		return k.read(path, Whole)
	}
	if text, ok := k.Replacement(path); ok {
		return text, nil
	}
	text, at, ok, err := k.tree().Content(path)
	if ok {
		return text, err
	}
	return s.whole(at)
}

// Given is like the function Given, with this cache.
func (k *Kept) Given(path string) ([]byte, error) { return k.read(path, Given) }

// ReadFile is like the function Whole. It does not use the cache. k may be nil.
func (k *Kept) ReadFile(path string) ([]byte, error) {
	if text, ok := k.Replacement(path); ok {
		return text, nil
	}
	text, at, ok, err := k.tree().Content(path)
	if ok {
		return text, err
	}
	if s := k.snapshot(); s != nil && s.absent(at) {
		return nil, &fs.PathError{Op: "open", Path: at, Err: syscall.ENOENT}
	}
	return Whole(at)
}

// Replacement returns the text that replaces a file on disk. ok is false if there is none. k may be
// nil.
func (k *Kept) Replacement(path string) (text []byte, ok bool) {
	if k == nil || k.Replace == nil {
		return nil, false
	}
	return k.Replace(filepath.Clean(path))
}

func (k *Kept) read(path string, read func(string) ([]byte, error)) ([]byte, error) {
	if k == nil {
		return read(path)
	}
	if text, ok := k.Replacement(path); ok {
		return text, nil
	}
	if k.patch != nil {
		text, at, ok, err := k.patch.Content(path)
		if ok {
			return text, err
		}
		return k.disk.read(at, read)
	}
	f := k.file(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		k.keep(f, nil, nil)
		return read(path)
	}
	if f.info != nil && unchanged(f.info, info) {
		return f.text, nil
	}
	text, err := read(path)
	k.keep(f, nil, nil)
	switch after, gone := os.Stat(path); {
	case err != nil || gone != nil:
	case stream(info), unchanged(info, after) && time.Since(info.ModTime()) > settled:
		k.keep(f, text, info)
	}
	return text, err
}

// file returns the cache entry of a path.
func (k *Kept) file(path string) *keptFile {
	path = filepath.Clean(path)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files == nil {
		k.files = map[string]*keptFile{}
	}
	f := k.files[path]
	if f == nil {
		f = &keptFile{}
		k.files[path] = f
	}
	return f
}

// keep replaces the cached content of a file. It caches nothing if info is nil or the
// content is too large.
func (k *Kept) keep(f *keptFile, text []byte, info fs.FileInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.size -= int64(len(f.text))
	f.text, f.info = nil, nil
	if info == nil || k.size+int64(len(text)) > mostKept && !stream(info) {
		return
	}
	f.text, f.info = text, info
	k.size += int64(len(text))
}

// stream reports whether a file can be read only once.
func stream(info fs.FileInfo) bool { return info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 }

// unchanged reports whether a file has the same identity, size and times.
func unchanged(was, is fs.FileInfo) bool {
	if stream(was) {
		return os.SameFile(was, is)
	}
	return is.Mode().IsRegular() && os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime()) && changed(was) == changed(is)
}
