//go:build unix

package readfile

import "syscall"

// nonblocking lets an open of a pipe return before a program opens its other end.
const nonblocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
