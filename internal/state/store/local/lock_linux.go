package local

import "golang.org/x/sys/unix"

var lockCommands = []int{unix.F_OFD_SETLK, unix.F_SETLK}

// reserve allocates disk space for size bytes of a file.
func reserve(fd uintptr, size int64) error {
	err := unix.Fallocate(int(fd), 0, 0, size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil
	}
	return err
}
