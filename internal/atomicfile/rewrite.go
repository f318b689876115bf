package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Rewrite replaces a file that exists by another text with the same permissions.
// Where the path is a link, the file that it leads to is replaced.
func Rewrite(path string, text []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return &fs.PathError{Op: "write", Path: real, Err: errors.New("the file is read-only")}
	}
	return WriteMode(real, text, info.Mode().Perm())
}
