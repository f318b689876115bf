package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData brings what was written to a file to disk, and of what is known about the file
// only its length, which takes half the time.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			failed = syscall.Fdatasync(int(fd))
			if !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if err == nil && failed != nil {
		err = os.NewSyscallError("fdatasync", failed)
	}
	return err
}
