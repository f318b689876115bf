package install

import "golang.org/x/sys/unix"

// exchange swaps two paths atomically. It fails if one of them does not exist, or if the
// file system does not support it.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
