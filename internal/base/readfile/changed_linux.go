package readfile

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns the change time (ctime) of a file, which programs cannot set.
func changed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}
