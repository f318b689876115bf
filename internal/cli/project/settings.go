package project

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/terrace-iac/terrace/diag"
)

// AsSentence returns the text of an error with a period at its end.
func AsSentence(err error) string { return strings.TrimRight(diag.Reason(err), ".") + "." }

// IsDir returns nil if the path is a directory, and otherwise the reason why not.
func IsDir(path string) error {
	info, err := os.Stat(path)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}
