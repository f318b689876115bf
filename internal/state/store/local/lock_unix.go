//go:build unix

package local

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes an exclusive lock on the whole file, or gives errBusy.
//
// Where the system has locks that belong to the open file instead of the
// process, those are taken: they exclude the peers' locks just the same, but do
// not vanish when some other part of the process, say the function that reads a
// file into a string, closes the same file. The table of this package makes up
// for that where they do not exist.
func lockFile(f *os.File) error {
	err := setLock(f, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errBusy
	}
	return err
}

// unlockFile gives the lock up, for a child process too that is just being
// started and has not closed its copy of the descriptor yet.
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

// syncDir makes a rename in a folder last.
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
