package format

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// extensions are those of the files that are formatted.
var extensions = []string{".tf", ".tofu", ".tfvars", ".tftest.hcl", ".tofutest.hcl"}

// Formats reports whether a file of this name is formatted. JSON never is.
func Formats(name string) bool {
	for _, ext := range extensions {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

// ErrExtension says that a file was named whose extension is none of those that are
// formatted.
type ErrExtension struct{ Path string }

func (e *ErrExtension) Error() string {
	return fmt.Sprintf("%s has none of the extensions %s", e.Path, strings.Join(extensions, ", "))
}

// Find lists the files that a target names, in order: itself, or those in a folder,
// and below it with recursive. Hidden files and folders and what editors leave behind
// are passed over. dir is the folder that a relative target starts from; the results
// start as the target does.
func Find(dir, target string, recursive bool) ([]string, error) {
	path := target
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, target)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !Formats(target) {
			return nil, &ErrExtension{target}
		}
		return []string{target}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(path, name)
		if err != nil {
			return err
		}
		switch base := d.Name(); {
		case rel == ".":
			return nil
		case d.IsDir() && (!recursive || base[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || leftover(base) || !Formats(base):
			return nil
		}
		out = append(out, filepath.Join(target, rel))
		return nil
	})
	return out, err
}

// leftover reports whether a name is that of a hidden file or of what an editor left.
func leftover(base string) bool {
	return base[0] == '.' || strings.HasSuffix(base, "~") || base[0] == '#' && strings.HasSuffix(base, "#")
}
