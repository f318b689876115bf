package local

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes an exclusive lock on the whole file, or returns errBusy.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, math.MaxUint32, math.MaxUint32, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errBusy
	}
	return err
}

func unlockFile(f *os.File) {
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, math.MaxUint32, math.MaxUint32, new(windows.Overlapped))
}

func syncDir(string) error { return nil }

func reserve(uintptr, int64) error { return nil }

// renameOverOpen is false because an open file cannot be replaced on Windows.
const renameOverOpen = false
