// Package installer installs the modules that a configuration calls, and maintains the same
// manifest as OpenTofu and Terraform.
//
// Main function: Install. Main types: Options, Manifest. The one rule: a suitable installed
// module is left unchanged, so that a second run neither accesses the network nor changes a
// file.
package installer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lang/module"
)

// A Manifest contains the installed modules by call path ("a.b"), without the root module.
// Directories are relative to the root module's.
type Manifest map[string]module.Installed

// manifestName is the path of the manifest in the data directory.
const manifestName = "modules/modules.json"

type manifestFile struct {
	Modules []manifestEntry
}

type manifestEntry struct {
	Key     string
	Source  string
	Version string `json:",omitempty"`
	Dir     string
}

// ReadManifest reads the manifest in a data directory (.terraform), with files if that is not
// nil. If the file does not exist, the manifest is empty.
func ReadManifest(files *readfile.Kept, dataDir string) (Manifest, diag.List) {
	path := filepath.Join(dataDir, filepath.FromSlash(manifestName))
	text, err := files.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, nil
	}
	if err != nil {
		return Manifest{}, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read module manifest", "The list of installed modules cannot be read: %s. Run \"terrace init\" to install the modules anew.", err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return Manifest{}, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read module manifest", "The list of installed modules in %s cannot be understood: %s. Delete it and run \"terrace init\" to install the modules anew.", path, err)
	}
	return m, nil
}

func parseManifest(text []byte) (Manifest, error) {
	var f manifestFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	out := make(Manifest, len(f.Modules))
	for _, e := range f.Modules {
		if e.Key != "" {
			out[e.Key] = module.Installed{Source: e.Source, Version: e.Version, Dir: e.Dir}
		}
	}
	return out, nil
}

// Bytes returns the manifest in the form of OpenTofu and Terraform.
func (m Manifest) Bytes() []byte {
	f := manifestFile{Modules: []manifestEntry{{Dir: "."}}}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		e := m[key]
		f.Modules = append(f.Modules, manifestEntry{key, e.Source, e.Version, filepath.ToSlash(e.Dir)})
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil // encoding these types cannot fail
	}
	return text
}

// write replaces the manifest, unless it is unchanged.
func (m Manifest) write(files *readfile.Kept, dataDir string) error {
	path := filepath.Join(dataDir, filepath.FromSlash(manifestName))
	have, err := files.Whole(path)
	text := m.Bytes()
	if err == nil && string(have) == string(text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteMode(path, text, 0o644)
}
