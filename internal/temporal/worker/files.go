package worker

import (
	"os"
	"path/filepath"
	"time"
)

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// keepUnused is the time for which unused files of an estate are kept on a worker's disk. The
// modification time of their directory is the time of the last use.
const keepUnused = 7 * 24 * time.Hour

// touch records that the files in a directory are in use. If that fails, they may be deleted too
// early and are then unpacked again.
func touch(dir string, now time.Time) { _ = os.Chtimes(dir, now, now) }

// removeUnused deletes the directories in a directory that were last used before a time. It
// ignores errors; the next call tries again.
func removeUnused(in string, before time.Time) {
	entries, err := os.ReadDir(in)
	if err != nil {
		return
	}
	for _, en := range entries {
		info, err := en.Info()
		if err != nil || !info.IsDir() || !info.ModTime().Before(before) {
			continue
		}
		dir := filepath.Join(in, en.Name())
		gone := dir + ".unused" // so that partly deleted files are not used
		if os.Rename(dir, gone) == nil {
			_ = os.RemoveAll(gone)
		}
	}
}

// noInterrupts ignores interrupts, for estates that are open on behalf of a job.
func noInterrupts() (<-chan os.Signal, func()) { return nil, func() {} }
