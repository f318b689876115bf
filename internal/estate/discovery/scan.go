package discovery

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/unit"
)

// finding contains the files found below a directory, sorted by path.
type finding struct {
	units  []string // unit files
	stacks []string // stack files
}

// scan returns the unit and stack files below a directory: files with the usual names, and other
// files that contain a module block.
func scan(s *Settings, root string) (finding, diag.List) {
	f, maybe, ds := walk(s, root)
	if ds.HasErrors() {
		return f, ds
	}
	holds := parallel.Map(len(maybe), 0, func(i int) bool { return holdsModule(s.Files, maybe[i].from) })
	for i, c := range maybe {
		if holds[i] {
			f.units = append(f.units, c.path)
		}
	}
	slices.Sort(f.units)
	return f, nil
}

// A candidate is a file that may contain module blocks, according to its name. from is the path
// from which it is read.
type candidate struct{ path, from string }

// walk finds files below a directory by their names and reads none. It skips private directories
// of programs, working directories of units, the directory of --download-dir and, with NoHidden,
// hidden directories except those with generated stacks.
func walk(s *Settings, root string) (f finding, maybe []candidate, ds diag.List) {
	name := s.ConfigName
	if name == "" {
		name = unit.DefaultName
	}
	add := func(p, from string) {
		switch base := filepath.Base(p); {
		case base == name:
			f.units = append(f.units, p)
		case base == unit.DefaultJSONName && name == unit.DefaultName:
			if n := len(f.units); n > 0 && filepath.Dir(f.units[n-1]) == filepath.Dir(p) {
				f.units = f.units[:n-1] // the JSON file takes precedence
			}
			f.units = append(f.units, p)
		case base == unit.StackName:
			f.stacks = append(f.stacks, p)
		case isCandidate(base):
			maybe = append(maybe, candidate{p, from})
		}
	}
	err := s.Files.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			hidden := s.NoHidden && strings.HasPrefix(d.Name(), ".") && d.Name() != unit.StackDir
			if p != root && (s.Overlay.Holds(p) || copytree.Private(d.Name()) || hidden || p == s.DownloadDir) {
				return filepath.SkipDir
			}
		case d.Name() == copytree.WorkingName && filepath.Dir(p) != root:
			return filepath.SkipDir // the marker sorts before the files of the copied directory
		default:
			add(p, p)
		}
		return nil
	})
	if err == nil {
		err = s.Overlay.Walk(s.Files, root, add)
	}
	if err != nil {
		return f, nil, diag.Errorf(diag.CodeFilesRead, nil, "Failed to look for units", "The directory cannot be read: %s.", err)
	}
	slices.Sort(f.units)
	slices.Sort(f.stacks)
	return f, maybe, nil
}

// clashes returns errors about directories that contain both a unit and a stack.
func (f *finding) clashes(lenient bool) diag.List {
	var ds diag.List
	dirs := map[string]bool{}
	for _, path := range f.stacks {
		dirs[filepath.Dir(path)] = true
	}
	for _, u := range f.units {
		if dir := filepath.Dir(u); dirs[dir] && strings.HasPrefix(filepath.Base(u), "terragrunt.hcl") {
			ds = append(ds, &diag.Message{
				Code: diag.CodeEstateUnitAndStack, Summary: "Unit and stack in one directory",
				Detail: "The directory " + dir + " holds a unit file and a stack file. A directory is a unit or a stack: move one of them to a directory of its own.",
			})
		}
	}
	if lenient {
		return ds.AsWarnings()
	}
	return ds
}

func isCandidate(name string) bool {
	return strings.HasSuffix(name, ".hcl") && (name == unit.StackName || unit.OrdinaryName(name))
}

// holdsModule reports whether a file has module blocks that are units. The loader reports syntax errors.
func holdsModule(files *readfile.Kept, path string) bool {
	src, err := files.Whole(path)
	return err == nil && unit.HasModules(src)
}

func isUnitName(name, configName string) bool {
	return name == unit.DefaultName || name == unit.DefaultJSONName || name == configName
}

// EnvironmentFiles returns the environment files directly in a directory. It returns none if the
// only candidate is the unit file, which the loader reads anyway. files reads them and may be
// nil.
func EnvironmentFiles(files *readfile.Kept, dir string) []string {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil
	}
	entries = slices.DeleteFunc(entries, func(en fs.DirEntry) bool {
		return en.IsDir() || !isCandidate(en.Name()) || en.Name() == unit.StackName
	})
	if len(entries) == 1 && entries[0].Name() == unit.DefaultName {
		return nil // it is the unit file of the directory; the loader opens it
	}
	var out []string
	for _, en := range entries {
		if path := filepath.Join(dir, en.Name()); holdsModule(files, path) {
			out = append(out, path)
		}
	}
	return out
}
