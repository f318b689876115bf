//go:build !unix

package readfile

const nonblocking = 0
