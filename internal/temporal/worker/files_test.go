package worker

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRemoveUnused(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 8 * 24 * time.Hour, "touched": 8 * 24 * time.Hour, "new": time.Hour, "rest.unused": 9 * 24 * time.Hour} {
		sub := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(sub, "unit"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(sub, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	touch(filepath.Join(dir, "touched"), now)
	removeUnused(dir, now.Add(-keepUnused))
	for name, stays := range map[string]bool{"old": false, "touched": true, "new": true, "rest.unused": false} {
		if isDir(filepath.Join(dir, name)) != stays {
			t.Errorf("%s stays: %t, want %t", name, !stays, stays)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}
