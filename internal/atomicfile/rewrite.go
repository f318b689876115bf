package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Rewrite replaces a file that exists by another text with the same permissions.
// Where the path is a link, the file that it leads to is replaced. After a crash of the
// machine the file has the old text or the new; when the name gets to disk is left to the
// system, which may be a second later: either text will do for who rewrites.
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
	return swap(real, info.Mode().Perm(), bytesTo(text), (*os.File).Sync)
}
