package readfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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
	// Under is the cache for files that are not replaced, if other callers read the same files. nil means
	// that this cache contains them.
	Under *Kept

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

// Whole is like the function Whole, with this cache.
func (k *Kept) Whole(path string) ([]byte, error) { return k.read(path, Whole) }

// Given is like the function Given, with this cache.
func (k *Kept) Given(path string) ([]byte, error) { return k.read(path, Given) }

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
	if k.Under != nil {
		return k.Under.read(path, read)
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
