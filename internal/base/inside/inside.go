// Package inside detects symbolic links below a directory that lead out of it: a checkout
// can contain a link with the name of a directory that Terrace fills.
//
// Main function: Check. The one rule: code calls Check before it replaces, writes or
// removes files below a directory that a checkout can fill.
package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Check returns an error that names the first symbolic link in the part of path below root,
// including path itself. root itself may be a link, or contain links. Missing parts are
// ignored. A path that is not below root is an error.
func Check(root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	if rel == "." {
		return nil
	}
	if !filepath.IsLocal(rel) {
		return fmt.Errorf("%s is not in %s", path, root)
	}
	at := root
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a symbolic link, which could lead to files elsewhere: remove it", at)
		}
	}
	return nil
}

// Below is like Check for the first of several roots that contains path. If none does, it
// returns nil.
func Below(path string, roots ...string) error {
	for _, root := range roots {
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return Check(root, path)
		}
	}
	return nil
}

// dataNames are the names of files in a data directory (.terraform). Other names that begin
// with ".terraform" are files that are being replaced.
var dataNames = []string{"cache", "environment", "modules", "plugin_path", "plugins", "providers", "terraform.tfstate", "terraform.tfstate.backup", "terrace-backend", "terrace-hooks.json"}

// CheckData is like Check for a path below a data directory. The data directory may be a
// link to a directory that contains only files of a data directory.
func CheckData(data, path string) error {
	if info, err := os.Lstat(data); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		entries, err := os.ReadDir(data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if !slices.Contains(dataNames, e.Name()) && !strings.HasPrefix(e.Name(), ".terraform") {
				return fmt.Errorf("%s is a symbolic link to a directory with other files, such as %s, which could be replaced: remove the link, or set TF_DATA_DIR to a directory", data, e.Name())
			}
		}
	}
	return Check(data, path)
}
