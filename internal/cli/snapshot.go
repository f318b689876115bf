package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/module"
)

// snapshot gathers the configuration files of all modules, for a saved plan,
// and the list of installed modules. Names are relative to the root module.
func (r *run) snapshot() (map[string][]byte, diag.List) {
	files := make(map[string][]byte)
	seen := make(map[*config.Module]bool)
	r.engine.Tree().Walk(func(n *module.Node) {
		if seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for _, f := range n.Config.Files {
			if f.Role != config.RoleBase && f.Role != config.RoleOverride {
				continue
			}
			if src := r.Report.Set.File(f.Path); src != nil {
				files[path.Clean(filepath.ToSlash(f.Path))] = src.Bytes
			}
		}
	})
	manifest, err := os.ReadFile(r.DataPath("modules", "modules.json"))
	if err == nil {
		files[manifestName] = manifest
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(nil, "Failed to read module manifest", "The list of installed modules cannot be saved with the plan: %s.", err)
	}
	return files, nil
}

// manifestName is the list of installed modules in a saved plan.
const manifestName = ".terraform/modules/modules.json"

// savedFiles are the configuration files of a saved plan: nothing else is seen,
// whatever lies in the folder by now.
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

// savedFile is an entry of a folder.
type savedFile string

func (f savedFile) Name() string               { return string(f) }
func (f savedFile) IsDir() bool                { return false }
func (f savedFile) Type() fs.FileMode          { return 0 }
func (f savedFile) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// quoteArg quotes a word for a command line to be typed.
func quoteArg(s string) string { return strconv.Quote(s) }
