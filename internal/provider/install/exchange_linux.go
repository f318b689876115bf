package install

import "golang.org/x/sys/unix"

// exchange swaps two names in one step. It fails where one does not exist, or the file
// system cannot.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
