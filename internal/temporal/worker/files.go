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

// keepUnused is how long the files of an estate stay on a worker's disk that no run asks
// for. The time of their folder says when that was.
const keepUnused = 7 * 24 * time.Hour

// touch notes that the files in a folder are in use. Where that fails they may be removed
// too early, and are unpacked again.
func touch(dir string, now time.Time) { _ = os.Chtimes(dir, now, now) }

// removeUnused removes the folders in a folder that were last used before a time. What
// cannot be removed stays for the next time.
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
		gone := dir + ".unused" // so that nobody takes what is left of it for whole
		if os.Rename(dir, gone) == nil {
			_ = os.RemoveAll(gone)
		}
	}
}

// noInterrupts is for command lines that run for somebody else.
func noInterrupts() (<-chan os.Signal, func()) { return nil, func() {} }
