package project

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/terrace-iac/terrace/diag"
)

// AsSentence ends an error's text with a period.
func AsSentence(err error) string { return strings.TrimRight(diag.Reason(err), ".") + "." }

// IsDir says why a path is no folder; nil if it is one.
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
