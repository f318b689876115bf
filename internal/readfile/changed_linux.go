package readfile

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when the system last changed anything about a file, which no program can set.
func changed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}
