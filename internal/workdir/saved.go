package workdir

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/state/encryption"
)

// ManifestName is the list of installed modules in a saved plan.
const ManifestName = ".terraform/modules/modules.json"

// A Saved is the configuration of a saved plan, and the settings that do not come from it.
type Saved struct {
	Files map[string][]byte // by path from the root module's directory
	// Encryption is that of the working directory; nil means none. An encryption block in Files
	// is ignored: it would decide how the file that it comes from is checked.
	Encryption *encryption.Config
}

// savedFiles are the configuration files of a saved plan: nothing else is seen,
// whatever lies in the directory by now.
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

// savedFile is an entry of a directory.
type savedFile string

func (f savedFile) Name() string { return string(f) }

func (f savedFile) IsDir() bool { return false }

func (f savedFile) Type() fs.FileMode { return 0 }

func (f savedFile) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
