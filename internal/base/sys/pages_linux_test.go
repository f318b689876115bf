package sys

import (
	"os"
	"strings"
	"testing"
)

// advised reports whether large pages were requested for some memory of the process.
func advised(t *testing.T) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("SKIP: " + err.Error())
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && strings.Contains(flags+" ", " hg ") {
			return true
		}
	}
	return false
}

// Large pages are not requested for a small heap. They are for a heap that is expected to
// grow.
func TestLargePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("SKIP: this system has no large pages")
	}
	before := advised(t)
	if inLargePages(manyPages - 1); !before && advised(t) {
		t.Error("large pages for a small heap")
	}
	if inLargePages(manyPages); !advised(t) {
		t.Error("no large pages for a large heap")
	}
}
