package project

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cliconfig"
)

// Settings reads the user's CLI configuration.
func Settings(c *command.Call) (*cliconfig.Config, diag.List) {
	return cliconfig.Load(c.Env, c.Home(), c.Launch)
}

// AsSentence ends an error's text with a period.
func AsSentence(err error) string { return strings.TrimRight(err.Error(), ".") + "." }

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
