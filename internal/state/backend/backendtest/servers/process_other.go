//go:build !unix

package servers

import "syscall"

// process returns nil: the server runs as the user of the tests.
func process(*account) *syscall.SysProcAttr { return nil }
