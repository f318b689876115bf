package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until the process ends, or returns errBusy. The locked range is beyond
// the end of the file, since other processes could not read it otherwise.
func tryLock(f *os.File, shared bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errBusy
	}
	return err
}

// removeOpen is false because an open file cannot be removed or renamed.
const removeOpen = false
