package workdir

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/state/encryption"
)

// ManifestName is the name, in a saved plan, of the file that lists the installed modules.
const ManifestName = ".terraform/modules/modules.json"

// A Saved is the configuration of a saved plan, with the settings that come from the working
// directory.
type Saved struct {
	Files map[string][]byte // by slash-separated path, relative to the root module
	// Encryption contains the settings of the working directory; nil means none. An encryption
	// block in Files is ignored: otherwise a plan file would decide how it is verified.
	Encryption *encryption.Config
}

// savedFiles is the file system of the configuration in a saved plan. Files on disk are not visible.
type savedFiles struct {
	files map[string][]byte
	dirs  map[string][]fs.DirEntry // sorted by name
}

func newSavedFiles(files map[string][]byte) savedFiles {
	s := savedFiles{files: files, dirs: map[string][]fs.DirEntry{".": nil}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		dir := path.Dir(name)
		s.dirs[dir] = append(s.dirs[dir], savedFile(path.Base(name)))
	}
	return s
}

// ReadDir implements config.FS.
func (s savedFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	list, ok := s.dirs[path.Clean(filepath.ToSlash(name))]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return list, nil
}

// ReadFile implements config.FS.
func (s savedFiles) ReadFile(name string) ([]byte, error) {
	src, ok := s.files[path.Clean(filepath.ToSlash(name))]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return src, nil
}

// savedFile is a directory entry: the name of a file.
type savedFile string

func (f savedFile) Name() string { return string(f) }

func (f savedFile) IsDir() bool { return false }

func (f savedFile) Type() fs.FileMode { return 0 }

func (f savedFile) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
