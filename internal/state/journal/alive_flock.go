//go:build unix && !aix && !illumos && !solaris

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks an open file until the process ends, or returns errBusy. The lock belongs to
// this open file description: opening and closing the file elsewhere in the process does not
// release it.
func tryLock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errBusy
		default:
			return err
		}
	}
}

// removeOpen is true because an open file can be removed and renamed.
const removeOpen = true
