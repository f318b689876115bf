package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Rewrite replaces the text of an existing file and keeps its permissions. It follows a
// symbolic link. After a crash of the machine, the file has the old or the new text: the
// rename is not synced, since either text is valid for the caller.
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
