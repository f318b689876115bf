//go:build unix

package readfile

import "syscall"

// nonblocking has a pipe opened without waiting for somebody at its other end.
const nonblocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
