package estate

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/unit"
)

// # The folder of a unit, without making it
//
// Terragrunt copies the package of the module (what stands left of // in its
// source) to a folder of its own, the unit's files over the module in it, and
// generated files over both. files answers as that folder would, from where things
// lie. Names are relative to the module's folder; those that lead out of the
// package do not exist, as in the copy.

// files is the folder of a unit as the loader sees it.
type files struct {
	pkg  string // folder of the package
	sub  string // the module's folder in it, "" for the package itself
	unit string // folder of the unit; "" if it is the package
	dir  string // the folder on disk, for what is installed there
	copy copyRules

	// generated are files by name; nil contents means that there is no such file.
	generated map[string][]byte
	own       map[string]bool // names at the top of the unit's folder that count
	secret    []string        // generated files with something secret in them
}

// newFiles reads what the unit's folder holds.
func newFiles(pkg, sub, unitDir, dir string, rules copyRules) (*files, error) {
	f := &files{pkg: pkg, sub: sub, dir: dir, copy: rules, generated: map[string][]byte{}, own: map[string]bool{}}
	if unitDir == pkg {
		return f, nil
	}
	f.unit = unitDir
	entries, err := os.ReadDir(unitDir)
	for _, en := range entries {
		if rules.takes(en.Name()) {
			f.own[en.Name()] = true
		}
	}
	return f, err
}

// copyRules say which files of a unit's folder belong to the copy.
type copyRules struct {
	include, exclude []string
	all              bool // hidden files too
}

// takes reports whether a file belongs to the copy: hidden ones do only if they
// are known or asked for. rel has slashes.
func (r copyRules) takes(rel string) bool {
	for _, g := range r.exclude {
		if glob(g, rel) {
			return false
		}
	}
	first, _, _ := strings.Cut(rel, "/")
	if first == ".terragrunt-cache" || first == ".terraform" || first == unit.StackDir {
		return false
	}
	hidden := false
	for part := range strings.SplitSeq(rel, "/") {
		hidden = hidden || strings.HasPrefix(part, ".") && part != lockFile && part != ".tflint.hcl"
	}
	if !hidden || r.all {
		return true
	}
	return slices.ContainsFunc(r.include, func(g string) bool { return glob(g, rel) || strings.HasPrefix(rel, strings.TrimSuffix(g, "/")+"/") })
}

// where tells the places that a name may lie at, the first that exists wins.
func (f *files) where(name string) []string {
	if filepath.IsAbs(name) {
		return []string{name}
	}
	name = filepath.ToSlash(filepath.Clean(name))
	first, _, _ := strings.Cut(name, "/")
	if first == ".terraform" {
		return []string{filepath.Join(f.dir, name)}
	}
	rel := filepath.ToSlash(filepath.Join(f.sub, name))
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return nil
	}
	var out []string
	if f.unit != "" && (f.own[first] || name == ".") {
		out = append(out, filepath.Join(f.unit, name))
	}
	if f.unit == "" && !f.copy.takes(name) && name != "." {
		return out
	}
	return append(out, filepath.Join(f.pkg, rel))
}

// ReadFile implements config.FS.
func (f *files) ReadFile(name string) ([]byte, error) {
	if b, ok := f.generated[filepath.ToSlash(filepath.Clean(name))]; ok {
		if b == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return b, nil
	}
	return f.readBelow(name)
}

// Locate implements config.Locator.
func (f *files) Locate(name string) string {
	if _, ok := f.generated[filepath.ToSlash(filepath.Clean(name))]; ok {
		return ""
	}
	for _, p := range f.where(name) {
		if info, err := os.Stat(p); err == nil && !info.IsDir() {
			return p
		}
	}
	return ""
}

// readBelow reads what generated files would be put over.
func (f *files) readBelow(name string) ([]byte, error) {
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	for _, p := range f.where(name) {
		var b []byte
		if b, err = os.ReadFile(p); err == nil {
			return b, nil
		}
	}
	return nil, err
}

// ReadDir implements config.FS.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	clean := filepath.ToSlash(filepath.Clean(name))
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	found := false
	byName := map[string]fs.DirEntry{}
	for i, p := range f.where(name) {
		entries, e := os.ReadDir(p)
		if e != nil {
			if !found {
				err = e
			}
			continue
		}
		found = true
		for _, en := range entries {
			if i == 0 && f.unit != "" && clean == "." && !f.own[en.Name()] {
				continue
			}
			if _, have := byName[en.Name()]; !have {
				byName[en.Name()] = en
			}
		}
	}
	for file, b := range f.generated {
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

// made is the entry of a generated file.
type made string

func (m made) Name() string               { return string(m) }
func (m made) IsDir() bool                { return false }
func (m made) Type() fs.FileMode          { return 0 }
func (m made) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// isConfig reports whether a file name is one that the loader reads.
func isConfig(name string) bool {
	for _, end := range [...]string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// isValues reports whether a file name is one of values of variables that are
// taken by themselves.
func isValues(name string) bool {
	return name == "terraform.tfvars" || name == "terraform.tfvars.json" || strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json")
}
