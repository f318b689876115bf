//go:build !unix

package servers

import "syscall"

// process starts a server as whoever runs the tests: there is no root here that it
// would have to become another account for.
func process(*account) *syscall.SysProcAttr { return nil }
