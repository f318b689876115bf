//go:build unix && !aix && !illumos && !solaris

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes a lock on an open file that ends with its process, or gives errBusy.
// It belongs to this opening of the file: opening and closing the file elsewhere in
// the process does not drop it.
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

// removeOpen: a file that is open can be removed and renamed.
const removeOpen = true
