//go:build unix

package schemacache

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapFile maps a file into memory for reading. unmap ends the mapping.
func mapFile(f *os.File, size int64) (data []byte, unmap func([]byte), err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return data, func(data []byte) { _ = unix.Munmap(data) }, err
}

// own reports whether a file belongs to the user of the process.
func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}

// writable reports whether other users can write to a file.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// exposed reports whether other users can read or write a file.
func exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
