package install

import (
	"io/fs"
	"syscall"
)

// identify returns the device, inode and change time of a file.
func identify(info fs.FileInfo) (identity, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	sec, nsec := st.Ctimespec.Unix()
	return identity{Device: uint64(st.Dev), Inode: st.Ino, Changed: sec*1e9 + nsec}, true
}
