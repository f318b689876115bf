package format

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// extensions are the extensions of the files that fmt formats.
var extensions = []string{".tf", ".tofu", ".tfvars", ".tftest.hcl", ".tofutest.hcl", ".tfquery.hcl"}

// Formats reports whether fmt formats a file of this name. It never formats JSON.
func Formats(name string) bool {
	for _, ext := range extensions {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

// ErrExtension is returned for a file whose extension fmt does not format.
type ErrExtension struct{ Path string }

func (e *ErrExtension) Error() string {
	return fmt.Sprintf("%s has none of the extensions %s", e.Path, strings.Join(extensions, ", "))
}

// Find returns the files of a target, sorted: the target itself, or the files of a
// directory, with recursive also those below it. It skips hidden files and directories and
// backup files of editors. A relative target is relative to dir, and so are the results.
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

// leftover reports whether a name is that of a hidden file or of an editor's backup file.
func leftover(base string) bool {
	return base[0] == '.' || strings.HasSuffix(base, "~") || base[0] == '#' && strings.HasSuffix(base, "#")
}
