package rules

import (
	"io/fs"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
)

// Files reads directories and files. Paths are absolute.
type Files interface {
	ReadDir(path string) ([]fs.DirEntry, error)
	ReadFile(path string) ([]byte, error)
}

// Nearest reads the files with rules of the nearest directory that has any: dir or one of its parents, up
// to the root of the repository. So the directory in which a command runs does not change which rules
// apply. name returns the name of a file in messages. There are no texts if there are no rules.
func Nearest(files Files, dir string, name func(path string) string) (at string, texts []Text, ds diag.List) {
	for ; ; dir = filepath.Dir(dir) {
		texts, root, ds := read(files, dir, IsFile, name)
		if len(texts) > 0 || ds.HasErrors() {
			return dir, texts, ds
		}
		if root || filepath.Dir(dir) == dir {
			return "", nil, nil
		}
	}
}

// Read reads the files of a directory whose names are wanted, sorted by name.
func Read(files Files, dir string, wanted func(name string) bool, name func(path string) string) ([]Text, diag.List) {
	out, _, ds := read(files, dir, wanted, name)
	return out, ds
}

// read is Read. root reports whether the directory is the root of a repository.
func read(files Files, dir string, wanted func(name string) bool, name func(path string) string) (out []Text, root bool, ds diag.List) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, false, nil // a parent that cannot be read has no rules
	}
	for _, e := range entries { // sorted by name
		root = root || e.Name() == ".git"
		if e.IsDir() || !wanted(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := files.ReadFile(path)
		if err != nil {
			ds = append(ds, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "The file %q cannot be read: %s.", e.Name(), err)...)
			continue
		}
		out = append(out, Text{Name: name(path), Text: text})
	}
	return out, root, ds
}
