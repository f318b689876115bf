// Package overlay provides the content of a unit's working directory without creating it on disk.
//
// Terragrunt copies the package of the module (the part before // in its source) to a new
// directory, then the unit's files over the module, and then writes the generated files. An FS
// returns the same content from the original files. Names are relative to the module's directory.
// Names outside of the package do not exist, as in the copy.
//
// Main type: FS. The one rule: nothing is written.
package overlay

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
)

// An FS is the working directory of a unit as the loader reads it.
type FS struct {
	Package string // directory of the package
	Sub     string // directory of the module in the package; "" for the package itself
	Unit    string // directory of the unit; "" if it is the package
	dir     string // working directory on disk, which contains installed modules
	data    string // directory for installed modules and providers, absolute; "" for .terraform in dir
	Copy    copytree.Rules

	// Generated contains generated files by name. nil content means that the file does not exist.
	Generated map[string][]byte
	Own       map[string]bool // names in the unit's directory that are copied
	Secret    []string        // generated files that contain secrets

	// Parsed returns the text of a file that a parser has already read, given its path and name.
	// It may be nil.
	Parsed func(path, name string) ([]byte, bool)

	// Disk reads the files; nil reads from disk each time.
	Disk *readfile.Kept

	read sync.Map // text of configuration files by path, so that each file is read once
}

// New returns the FS of a module with the files of unitDir over it; "" means none. dir is the
// working directory. data is the directory for installed modules and providers, relative to dir
// or absolute. disk reads the files and may be nil.
func New(disk *readfile.Kept, pkg, sub, unitDir, dir, data string, rules copytree.Rules) (*FS, error) {
	f := &FS{Disk: disk, Package: pkg, Sub: sub, dir: dir, Copy: rules, Generated: map[string][]byte{}, Own: map[string]bool{}}
	if data != "" && data != ".terraform" {
		f.data = sys.Join(dir, data) + string(filepath.Separator)
	}
	if unitDir == "" || unitDir == pkg && sub == "" {
		return f, nil
	}
	f.Unit = unitDir
	entries, err := disk.ReadDir(unitDir)
	for _, en := range entries {
		if rules.Takes(en.Name()) {
			f.Own[en.Name()] = true
		}
	}
	return f, err
}

// Where returns the paths at which a file may exist. The first that exists is used.
func (f *FS) Where(name string) []string {
	if filepath.IsAbs(name) {
		return []string{name}
	}
	name = filepath.ToSlash(filepath.Clean(name))
	first, _, _ := strings.Cut(name, "/")
	if path := filepath.Join(f.dir, name); first == ".terraform" || f.data != "" && strings.HasPrefix(path+string(filepath.Separator), f.data) {
		return []string{path}
	}
	rel := filepath.ToSlash(filepath.Join(f.Sub, name))
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return nil
	}
	var out []string
	if f.Unit != "" && (f.Own[first] || name == ".") {
		out = append(out, filepath.Join(f.Unit, name))
	}
	if !f.takes(rel) {
		return out
	}
	return append(out, filepath.Join(f.Package, rel))
}

// takes reports whether a path of the package is copied to the working directory. The package
// itself and the module's directory always are.
func (f *FS) takes(rel string) bool { return rel == "." || rel == f.Sub || f.Copy.Takes(rel) }

// Above implements config.Above: the files of the package are above the module's directory.
func (f *FS) Above() int {
	sub := filepath.ToSlash(filepath.Clean(f.Sub))
	if sub == "." || sub == "" {
		return 0
	}
	return strings.Count(sub, "/") + 1
}

// ReadFile implements config.FS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	if b, ok := f.Generated[filepath.ToSlash(filepath.Clean(name))]; ok {
		if b == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return b, nil
	}
	return f.ReadBelow(name)
}

// Locate implements config.Locator.
func (f *FS) Locate(name string) string {
	if _, ok := f.Generated[filepath.ToSlash(filepath.Clean(name))]; ok {
		return ""
	}
	for _, p := range f.Where(name) {
		if info, err := f.Disk.Stat(p); err == nil && !info.IsDir() {
			return p
		}
	}
	return ""
}

// ReadBelow reads a file as if there were no generated files.
func (f *FS) ReadBelow(name string) ([]byte, error) {
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	keep := IsConfig(name) && !strings.HasPrefix(filepath.ToSlash(name), ".terraform/")
	for _, p := range f.Where(name) {
		if b, ok := f.read.Load(p); ok {
			return b.([]byte), nil
		}
		if b, ok := f.Disk.Replacement(p); ok {
			return b, nil
		}
		if keep && f.Parsed != nil {
			if b, ok := f.Parsed(p, name); ok {
				return b, nil
			}
		}
		var b []byte
		if !keep {
			if b, err = f.Disk.Whole(p); err == nil {
				return b, nil
			}
			continue
		}
		if b, err = f.Disk.ReadFile(p); err == nil {
			f.read.Store(p, b)
			return b, nil
		}
	}
	return nil, err
}

// ReadDir implements config.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	clean := filepath.ToSlash(filepath.Clean(name))
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	found := false
	byName := map[string]fs.DirEntry{}
	for i, p := range f.Where(name) {
		entries, e := f.Disk.ReadDir(p)
		if e != nil {
			if !found {
				err = e
			}
			continue
		}
		found = true
		for _, en := range entries {
			if i == 0 && f.Unit != "" && clean == "." && !f.Own[en.Name()] {
				continue
			}
			if len(f.Copy.Exclude) > 0 && p == filepath.Join(f.Package, f.Sub, name) && !f.takes(filepath.ToSlash(filepath.Join(f.Sub, name, en.Name()))) {
				continue
			}
			if _, have := byName[en.Name()]; !have {
				byName[en.Name()] = en
			}
		}
	}
	for file, b := range f.Generated {
		if filepath.ToSlash(filepath.Dir(file)) != clean {
			continue
		}
		base := filepath.Base(file)
		if b == nil {
			delete(byName, base)
			continue
		}
		found = true
		byName[base] = made(base)
	}
	if !found {
		return nil, err
	}
	out := make([]fs.DirEntry, 0, len(byName))
	for _, en := range byName {
		out = append(out, en)
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// made is the fs.DirEntry of a generated file.
type made string

func (m made) Name() string               { return string(m) }
func (m made) IsDir() bool                { return false }
func (m made) Type() fs.FileMode          { return 0 }
func (m made) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// IsConfig reports whether the loader reads files with this name.
func IsConfig(name string) bool {
	for _, end := range [...]string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// ConfigBelow reports whether there are configuration files in the module's directory or below
// it.
func (f *FS) ConfigBelow() bool { return f.configBelow(".") }

func (f *FS) configBelow(dir string) bool {
	entries, _ := f.ReadDir(dir) // the loader reports errors
	for _, en := range entries {
		name := path.Join(dir, en.Name())
		if en.IsDir() && f.takes(path.Join(filepath.ToSlash(f.Sub), name)) && f.configBelow(name) || !en.IsDir() && IsConfig(name) {
			return true
		}
	}
	return false
}

// HasValues reports whether the module's directory contains variable files that are loaded automatically.
// It does not read the unit's directory again: ReadDir takes no files that New has not seen there.
func (f *FS) HasValues() bool {
	removed := map[string]bool{}
	for file, b := range f.Generated {
		if filepath.ToSlash(filepath.Dir(file)) != "." || !IsValues(filepath.Base(file)) {
			continue
		}
		if b != nil {
			return true
		}
		removed[filepath.Base(file)] = true
	}
	for name := range f.Own {
		if IsValues(name) && !removed[name] {
			return true
		}
	}
	rel := filepath.ToSlash(filepath.Clean(f.Sub))
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	entries, _ := f.Disk.ReadDir(filepath.Join(f.Package, rel)) // the loader reports errors
	return slices.ContainsFunc(entries, func(en fs.DirEntry) bool {
		return IsValues(en.Name()) && !removed[en.Name()] && (len(f.Copy.Exclude) == 0 || f.takes(path.Join(rel, en.Name())))
	})
}

// IsValues reports whether variable files with this name are loaded automatically.
func IsValues(name string) bool {
	return name == "terraform.tfvars" || name == "terraform.tfvars.json" || strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json")
}
