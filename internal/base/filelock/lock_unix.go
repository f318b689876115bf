//go:build unix

package filelock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error {
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EAGAIN):
			return errHeld
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}
