//go:build unix

package local

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes an exclusive lock on the whole file, or returns errBusy.
//
// If the system has locks that belong to the open file description instead of the process, it
// uses these. They conflict with the locks of OpenTofu and Terraform in the same way, but
// remain when another part of the process closes the same file, for example the function that
// reads a file. On other systems the table of this package prevents that.
func lockFile(f *os.File) error {
	err := setLock(f, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errBusy
	}
	return err
}

// unlockFile releases the lock. It also releases it for a child process that is being started
// and still has a copy of the descriptor.
func unlockFile(f *os.File) { _ = setLock(f, unix.F_UNLCK) }

func setLock(f *os.File, typ int16) error {
	for _, cmd := range lockCommands {
		l := unix.Flock_t{Type: typ, Whence: io.SeekStart}
		err := unix.FcntlFlock(f.Fd(), cmd, &l)
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return unix.ENOLCK
}

// syncDir writes a rename in a directory to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

const renameOverOpen = true
