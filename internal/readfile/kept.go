package readfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Kept reads files and keeps their texts, so that what a command reads in several places is
// opened once. A text is given out again only while the file has the identity, the size and
// the times that it had when it was read, so what a hook, a provider or another step of the
// command wrote meanwhile is read. A file that changed within settled before it was read is
// not kept: it might change again without showing it. What was read from a stream is kept to
// the end, since it cannot be read twice.
//
// The zero value is ready, and nil keeps nothing. It may be used concurrently. The texts are
// shared and must not be changed.
type Kept struct {
	mu    sync.Mutex
	files map[string]*keptFile
	size  int64 // of all texts
}

type keptFile struct {
	mu   sync.Mutex
	text []byte
	info fs.FileInfo // when the text was read; nil: there is none
}

const (
	settled  = 2 * time.Second // no file system keeps time more coarsely
	mostKept = 64 << 20
)

// Whole is the function of the package.
func (k *Kept) Whole(path string) ([]byte, error) { return k.read(path, Whole) }

// Given is the function of the package.
func (k *Kept) Given(path string) ([]byte, error) { return k.read(path, Given) }

func (k *Kept) read(path string, read func(string) ([]byte, error)) ([]byte, error) {
	if k == nil {
		return read(path)
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

// file is what is kept of a path.
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

// keep replaces what is kept of a file; nothing if info is nil, or if the text is more than
// there is room for.
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

// stream reports whether what a file gives is gone once it was read.
func stream(info fs.FileInfo) bool { return info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 }

// unchanged reports whether a file is as it was.
func unchanged(was, is fs.FileInfo) bool {
	if stream(was) {
		return os.SameFile(was, is)
	}
	return is.Mode().IsRegular() && os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime()) && changed(was) == changed(is)
}
